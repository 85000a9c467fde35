"""Reads data sets into integer arrays. Uses NumPy and SciPy, but not jax."""
