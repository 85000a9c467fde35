"""Labels on disk to integer arrays: NumPy and SciPy only, never jax."""
