# ---
# jupyter:
#   accelerator: TPU
#   jupytext:
#     formats: ipynb,py:percent
#     notebook_metadata_filter: accelerator
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
# # CoKE on a TPU or GPU
#
# Installs coke_jax, lists the devices, trains, predicts and draws. In Google
# Colab, first select a TPU or GPU under *Runtime, Change runtime type*. The
# notebook also runs on any other machine, with or without an accelerator.

# %% tags=["skip-execution"]
# SOURCE is the folder of a clone (uploaded, or on a mounted drive), a wheel, or
# git+https://<a repository>. jax is not upgraded, because Colab's version is
# built for its accelerator.
SOURCE = '.'
# %pip install --quiet "$SOURCE" matplotlib scikit-learn pandas

# %%
import os
import pathlib

import IPython.display
import jax
import numpy as np

import coke_jax
from coke_jax import config, parallel
from coke_jax.plots import draw
from coke_jax.predict import export
from coke_jax.training import run

print(f'coke_jax {coke_jax.__version__}, jax {jax.__version__}')
print('training on', parallel.describe_devices())

# %% [markdown]
# ## Settings
#
# `countries` ships with the package, and training on it takes minutes on a CPU.
# `FB15k-237` and other data sets are downloaded. The settings below need few
# epochs. The paper's settings, with hundreds of epochs, are in `configs/`. To
# continue an interrupted run, execute the same cells again. After a restart of
# the machine, this works only if `FOLDER` is on a persistent drive.

# %%
DATASET = 'countries'  # or 'FB15k-237', 'WN18RR', 'CoDEx-S', ...
FOLDER = pathlib.Path('runs') / DATASET
ON_ACCELERATOR = jax.default_backend() != 'cpu'

settings = config.default_config()
settings.data.name = DATASET
settings.model.num_layers = 12 if ON_ACCELERATOR else 3
settings.model.dtype = 'bfloat16' if ON_ACCELERATOR else 'float32'
settings.train.rows = 'query'
settings.train.target_mass = 0.9
settings.train.learning_rate = 1e-3
settings.train.num_epochs = 60
settings.train.validate_every_epochs = 10

# A batch is split among all devices.
settings.train.batch_size = 512 * parallel.num_devices()

if os.environ.get('COKE_NOTEBOOK_SIZE') == 'small':  # for tests
  settings.model.num_layers = 1
  settings.model.hidden_size = 32
  settings.model.feed_forward_size = 64
  settings.train.num_epochs = 1
  settings.train.validate_every_epochs = 1

# %% [markdown]
# ## Train
#
# The first step compiles the model. After training, the test split is ranked
# with the checkpoint that had the best validation.

# %%
run.train_and_evaluate(settings, FOLDER)

# %% [markdown]
# ## Predict

# %%
model = coke_jax.load(FOLDER)
words = model.data.vocabulary
first = np.asarray(model.data.test)[0]  # a test triple, as ids
head, relation, tail = (
  words.entities[first[0]],
  words.relations[first[1]],
  words.entities[first[2]],
)
print(f'{head}, {relation}, ? (in the test split: {tail})')
model.predict((head, relation, '?'), top=5).to_pandas()

# %%
model.rank((head, relation, tail)).to_pandas()

# %% [markdown]
# ## Draw
#
# Training curves, ranks by relation category, and a map of the contextual
# embeddings of the most frequent entity.

# %%
counts = np.bincount(np.asarray(model.data.train)[:, [0, 2]].reshape(-1))
entity = model.data.vocabulary.entities[int(counts.argmax())]
written = draw.draw(FOLDER, FOLDER / 'pictures', entity=entity, model=model)
for path in written:
  if path.suffix == '.png':
    IPython.display.display(IPython.display.Image(str(path), width=700))

# %% [markdown]
# ## Export
#
# Writes the model as plain files to download or publish. `coke_jax.load` reads
# them.

# %%
target = FOLDER.with_name(f'{DATASET}_exported')
if not target.exists():
  export.write(FOLDER, target)
