"""Adds the files of configs/ to the package; setup.cfg has everything else."""

import setuptools

setuptools.setup(
  packages=[
    *setuptools.find_packages(include=['coke_jax', 'coke_jax.*']),
    'coke_jax.configs',
  ],
  package_dir={'coke_jax.configs': 'configs'},
)
