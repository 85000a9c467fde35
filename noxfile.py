"""Runs the tests with the newest dependencies, and with those of Colab.

`nox -s newest` runs only the session `newest`.
"""

import nox

nox.options.sessions = ['newest', 'colab']
nox.options.reuse_existing_virtualenvs = True

# Versions that Google Colab ships. A notebook on Colab must not upgrade jax.
COLAB = (
  'jax==0.7.2',
  'jaxlib==0.7.2',
  'flax==0.11.2',
  'optax==0.2.8',
  'orbax-checkpoint==0.12.4',
)


@nox.session(python='3.11')
def newest(session: nox.Session) -> None:
  """Checks style and types, and runs the tests with the newest versions."""
  session.install('.[test]')
  session.run('ruff', 'check', '.')
  session.run('ruff', 'format', '--check', '.')
  session.run('mypy')
  session.run('python', '-m', 'pytest', '-m', '', *session.posargs)


@nox.session(python='3.12')
def colab(session: nox.Session) -> None:
  """Runs the tests with the versions that Google Colab ships."""
  session.install('.[test]', *COLAB)
  session.run('python', '-m', 'pytest', '-m', '', *session.posargs)
