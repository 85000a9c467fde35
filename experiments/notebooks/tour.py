# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A tour of coke_jax
#
# This notebook reads triples, trains a model and predicts with it. The data are
# the graph of countries that ships with the package. The notebook takes a few
# minutes on a laptop and downloads nothing.
#
# Requires `pip install '.[plots]' pandas` in a clone of the repository.

# %%
import os
import pathlib
import tempfile

import jax
import numpy as np

import coke_jax
from coke_jax import config
from coke_jax.data import benchmarks, queries, triple_files
from coke_jax.evaluate import link_prediction
from coke_jax.evaluate import ranker as ranker_lib
from coke_jax.evaluate import ranks as ranks_lib
from coke_jax.model import parameters
from coke_jax.storage import workdir
from coke_jax.training import run

print('coke_jax', coke_jax.__version__, 'on', jax.devices())

# %% [markdown]
# ## 1. Predict
#
# A small model ships with the package. It was trained on paths with one or two
# relations, so it answers questions of one or two hops. `known_in` names the
# split that contains the answer; it is empty if no split does.

# %%
model = coke_jax.load(coke_jax.EXAMPLE_MODEL)
model.predict(('Kenya', 'region', '?'), top=3).to_pandas()

# %%
# Several questions at once: one with two hops, one for the head.
questions = [
  ('Mali', 'borders', 'currency', '?'),
  ('?', 'subregion', 'Western Europe'),
]
model.predict(questions, top=4).to_pandas()

# %%
# Shows only answers that are in no split and have the right type.
model.predict(
  ('Japan', 'official_language', '?'),
  top=3,
  new_only=True,
  type_matching=True,
).to_pandas()

# %% [markdown]
# ## 2. Rank facts
#
# `rank` gives the rank of the correct answer. The candidates are all entities
# except the other known answers. MRR and hits@k are computed from these ranks.

# %%
model.rank(
  [('Kenya', 'region', 'Africa'), ('Japan', 'region', 'Africa')]
).to_pandas()

# %% [markdown]
# ## 3. Contextual embeddings
#
# The embedding of an entity depends on its context. The cell compares the
# final hidden states of Kenya in two facts.

# %%
states = model.embed(
  [
    ('Kenya', 'region', 'Africa'),
    ('Kenya', 'currency', 'Kenyan shilling (KES)'),
  ]
)
print(states.vectors.shape, '= sequences, positions, width')
first, second = states.vectors[:, 0]
cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
print(f'cosine of the two Kenyas: {cosine:.2f}')

# %% [markdown]
# ## 4. Data
#
# A graph consists of three files of triples. Each label becomes an id, in the
# order `[entities | relations | MASK, PAD]`. Each triple becomes two queries. A
# query has tokens with one MASK, and the entities that can replace MASK.

# %%
countries = triple_files.read_graph(
  benchmarks.locate('countries', None), 'countries', triple_files.TripleFormat()
)
print(countries.summary())

# %%
training_queries = queries.from_triples(countries.train, countries.vocabulary)
distinct = training_queries.grouped()
print(f'{len(training_queries):,} queries, {len(distinct):,} distinct ones')
labels = countries.vocabulary.token_labels
row = int(distinct.num_answers.argmax())
print('most answers:', [labels[token] for token in distinct.tokens[row]])
print(int(distinct.num_answers[row]), 'answers')

# %% [markdown]
# ## 5. Train
#
# Does the same as `python -m coke_jax.main`, with a smaller model and fewer
# epochs.

# %%
settings = config.default_config()
settings.data.name = 'countries'
settings.model.num_layers = 2
settings.model.hidden_size = 64
settings.model.feed_forward_size = 128
settings.train.rows = 'query'
settings.train.learning_rate = 2e-3
settings.train.num_epochs = 4
settings.train.validate_every_epochs = 2
if os.environ.get('COKE_NOTEBOOK_SIZE') == 'small':  # for tests
  settings.model.num_layers = 1
  settings.model.hidden_size = 32
  settings.train.num_epochs = 1
  settings.train.validate_every_epochs = 1

folder = pathlib.Path(tempfile.mkdtemp()) / 'tour'
run.train_and_evaluate(settings, folder)

# %% [markdown]
# The work folder contains settings, data, checkpoints, metrics and results;
# `load` reads the model from it.

# %%
sorted(path.name for path in folder.iterdir() if not path.name.startswith('.'))

# %%
mine = coke_jax.load(folder)
mine.predict(('Kenya', 'region', '?'), top=3).to_pandas()

# %% [markdown]
# ## 6. Evaluate
#
# The cell ranks the test split with the parameters of the best checkpoint.

# %%
files = workdir.Workdir(folder)
params, step = files.best_params(parameters.param_shapes(mine.encoder))
ranker = ranker_lib.Ranker(mine.encoder)
ranks = link_prediction.LinkPrediction(countries).rank(ranker, params, 'test')
metrics = ranks_lib.rank_metrics(ranks.realistic, ranks.candidates)
print(
  f'step {step}:', {name: round(value, 3) for name, value in metrics.items()}
)
