"""Compares the speed of training and ranking with an equal PyTorch model.

benchmark.py    the command that measures both
throughput.py   the expected time of the paper's trainings
accelerator.py  the paper's model of FB15k-237 on a GPU or TPU; see run.sh
profile_step.py the time of a step by part of the model
stopwatch.py    times the steps of a training
plan.py         the settings that are measured and compared
processes.py    one process for each setting, measured in turns
worker.py       the program of such a process
data_sets.py    FB15k-237, or random data with the same counts
torch_model.py  the equal model
torch_steps.py  its training steps
ranking.py      times the full test evaluation
matrices.py     the rate of large matrix products
flops.py        the operations of a model, from its shapes
memory.py       the memory of a process
report.py       tables and JSON
README.md       how to read the numbers
"""
