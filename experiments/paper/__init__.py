"""The tables and figures of the paper (Wang et al. 2019, arXiv:1911.02168).

all.py                    all tables and figures, in order
link_prediction.py        FB15k, WN18, FB15k-237 and WN18RR
parameters.py             numbers of parameters
path_queries.py           PathQueryWN and PathQueryFB
single_hop_from_paths.py  link prediction with models trained on paths
contextual_maps.py        t-SNE maps of contextual embeddings
published.py              the numbers that the paper prints
settings.py               the config of each model, at each budget
options.py                the flags of the scripts
runs.py                   trains or reuses a model and writes its record
provenance.py             commit, versions and devices of a record
report.py                 measured and published numbers as Markdown and JSON
formats.py                numbers and tables as text
document.py               the tables of docs/reproduction.md
"""
