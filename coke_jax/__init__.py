"""CoKE: contextualized knowledge graph embedding in JAX and Flax."""

from coke_jax.predict import Model, Prediction, load
from coke_jax.version import __version__

__all__ = ['Model', 'Prediction', '__version__', 'load']
