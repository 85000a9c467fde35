"""Short forms of `experiments/robustness`: kills and wrong input."""

import pathlib
import subprocess
import sys

SCRIPTS = pathlib.Path(__file__).parents[1] / 'experiments' / 'robustness'


def outcome(script: str, *flags: str) -> str:
  """The last line of what a script says; it must find nothing wrong."""
  done = subprocess.run(
    [sys.executable, str(SCRIPTS / f'{script}.py'), *flags],
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stdout + done.stderr
  return done.stdout.splitlines()[-1]


def test_a_killed_training_comes_to_the_same_numbers():
  said = outcome('kill', '--kills=3', '--stops=0', '--runs=1', '--epochs=60')
  assert said.startswith('3 kills')
  assert said.endswith('nothing lost')


def test_mutated_input_is_read_exactly_or_refused():
  said = outcome('mutate', '--inputs=2000', '--seed=1')
  assert said.startswith('2,000 mutated inputs')
  assert said.endswith('0 misread')
