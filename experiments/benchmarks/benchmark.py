"""How fast this machine trains and ranks, beside an equal PyTorch model.

    python -m experiments.benchmarks.benchmark

See README.md in this folder, and --help.
"""

from experiments.benchmarks import command

if __name__ == '__main__':
  command.main()
