"""Measures training and ranking, and compares training with PyTorch.

benchmark.py    the command that measures coke_jax and PyTorch
plan.py         the settings that are measured and compared
processes.py    one process for each setting, measured in turns
worker.py       what such a process executes
stopwatch.py    times the steps of a training
data_sets.py    FB15k-237, or random data with the same counts
torch_model.py  the equal model in PyTorch
torch_steps.py  training steps of the PyTorch model
ranking.py      times the full test evaluation
matrices.py     the rate of large matrix products
flops.py        the operations of a model, from its shapes
memory.py       the memory of a process
new_process.py  calls functions in a new process
report.py       tables and JSON
README.md       how to read the numbers

These modules are other commands:

throughput.py   the expected time of the paper's trainings
accelerator.py  trains the paper's model on a GPU or TPU; see run.sh
profile_step.py the time of a step by part of the model
large_graph.py  time and memory for graphs with millions of entities; the parts
                are in large_graph_parts.py
scaling.py      estimates of memory and time for large graphs
shard_memory.py the memory of a training with and without shards
load_server.py  questions per second of `coke serve`
peers.py        comparison with models of PyKEEN; see pykeen_models.py
"""
