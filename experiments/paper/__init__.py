"""What the scripts that reproduce the paper share.

paper.py             the numbers that the paper prints
settings.py          which model stands behind each number, at each budget
options.py           the flags that all scripts have
runs.py              training a model, or reusing one, and the record of it
provenance.py        commit, versions and device of a record
report.py            our numbers beside the paper's, as JSON and Markdown
formats.py           numbers and tables as text
throughput_table.py  how long the paper's settings take
document.py          the tables of docs/reproduction.md
"""
