"""How fast this machine trains and ranks, beside an equal PyTorch model.

    python experiments/benchmarks/benchmark.py

See README.md in this folder, and --help.
"""

import pathlib
import sys

if __name__ == '__main__':
  # The folder of the package `benchmarks` in the place of the package itself.
  sys.path[0] = str(pathlib.Path(__file__).resolve().parents[1])
  from benchmarks import command

  command.main()
