"""Scripts that make the paper's tables and figures, or measure something else.

Run them as modules from the root of the repository, for example with
`python -m experiments.paper.all --budget=smoke`.
"""
