"""The short forms of `experiments/robustness`: kills, damage, wrong input.

The long forms, with more of everything, are run by hand.
"""

import pathlib
import subprocess
import sys

import pytest

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
  said = outcome('kill', '--kills=3', '--stops=2', '--runs=1', '--epochs=60')
  assert said.startswith('3 kills')
  assert '2 stops' in said
  assert said.endswith('nothing lost')


def test_mutated_input_is_read_exactly_or_refused():
  said = outcome('mutate', '--inputs=2000', '--seed=1')
  assert said.startswith('2,000 mutated inputs')
  assert said.endswith('0 misread')


def test_a_damaged_folder_is_used_rightly_or_refused():
  assert outcome('damage', '--cases=5', '--seed=1').endswith('0 wrong')


@pytest.mark.skipif(
  not pathlib.Path('/proc/self/status').exists(), reason='needs /proc'
)
def test_memory_is_measured(tmp_path):
  folder = tmp_path / 'soak'
  # Too short a time to say that memory is flat.
  flags = ('--minutes=0.1', '--share=1', '--most-growth=1')
  said = outcome('soak', f'--folder={folder}', *flags)
  assert 'exit status 143 after SIGTERM' in said
  assert (folder / 'memory.csv').read_text().startswith('seconds,MiB')
