"""From labels on disk to integer arrays, with NumPy and SciPy only, no jax."""
