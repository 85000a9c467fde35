"""Contextualized knowledge graph embedding (CoKE) in JAX and Flax.

    import coke_jax

    model = coke_jax.load(coke_jax.EXAMPLE_MODEL)
    model.predict(('France', 'borders', '?'), top=3)

`coke_jax.predict.model` describes the methods of a model.
`coke_jax.train` trains a model on triples from a file, a data frame or a list.
`coke_jax.training.run` trains a model from a config and the data files that the
config names.
"""

from coke_jax.data.prepare import Prepared, prepare
from coke_jax.errors import CokeError
from coke_jax.fit import train
from coke_jax.predict.load import EXAMPLE_MODEL, load
from coke_jax.predict.model import Model
from coke_jax.predict.questions import QuestionError
from coke_jax.predict.records import Prediction, Ranking
from coke_jax.version import __version__

__all__ = [
  'EXAMPLE_MODEL',
  'CokeError',
  'Model',
  'Prediction',
  'Prepared',
  'QuestionError',
  'Ranking',
  '__version__',
  'load',
  'prepare',
  'train',
]
