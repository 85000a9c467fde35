"""CoKE: contextualized knowledge graph embedding in JAX and Flax."""

from coke_jax.version import __version__

__all__ = ['__version__']
