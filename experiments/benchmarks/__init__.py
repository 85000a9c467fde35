"""How fast we train and rank, beside an equal PyTorch model.

benchmark.py    the one command
command.py      its flags
plan.py         what is measured: settings, and which are compared
processes.py    a process for each setting, measured in turns
worker.py       what such a process does
data_sets.py    real data, or random ones with the same counts
stepping.py     a training, timed
coke_steps.py   our steps
torch_model.py  the equal model
torch_steps.py  and its steps
ranking.py      the full test evaluation, timed
matrices.py     the rate of large matrix products
flops.py        operations of a model, from its shapes
memory.py       what a process takes
report.py       tables and JSON
README.md       how to read the numbers
"""
