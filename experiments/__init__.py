"""Scripts for the paper's tables and figures, and for other experiments.

Run the scripts as modules from the root of the repository, for example with
`python -m experiments.paper.all --budget=smoke`.
"""
