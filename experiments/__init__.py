"""Scripts for the paper's tables and figures, benchmarks and a search.

They are run from the root of the repository as modules, such as
`python -m experiments.paper.all --budget=smoke`.
"""
