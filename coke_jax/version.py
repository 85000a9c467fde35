"""The version of coke_jax."""

__version__ = '0.2.0'
