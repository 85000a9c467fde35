"""Runs short forms of the scripts in this folder. See README.md."""

import pathlib
import re
import subprocess
import sys

import kill
import pytest

pytestmark = pytest.mark.slow
SCRIPTS = pathlib.Path(__file__).parent


def outcome(script: str, *flags: str) -> str:
  """Runs a script that must find no failure. Returns the last line printed."""
  done = subprocess.run(
    [sys.executable, str(SCRIPTS / f'{script}.py'), *flags],
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stdout + done.stderr
  return done.stdout.splitlines()[-1]


def test_a_killed_or_stopped_training_has_the_same_results() -> None:
  # With this seed, the training is killed while it writes the first checkpoint,
  # and stopped after it has written the second.
  flags = ('--kills=1', '--stops=1', '--runs=1', '--epochs=9', '--seed=24')
  said = outcome('kill', *flags)
  assert said.startswith('1 kills')
  assert '1 stops' in said
  assert said.endswith('nothing lost')


def test_a_damaged_work_folder_is_continued_or_refused() -> None:
  said = outcome('damage', '--cases=2', '--seed=4')
  assert said.startswith('2 faults injected')
  assert said.endswith('; 0 wrong')


@pytest.mark.skipif(
  not pathlib.Path('/proc/self/status').exists(), reason='needs /proc'
)
def test_memory_is_measured_until_a_stop() -> None:
  # The run is too short to test that the memory does not grow.
  flags = ('--minutes=0.01', '--share=1', '--most-growth=1')
  said = outcome('soak', *flags)
  assert re.match(r'0\.0 minutes, [1-9][\d,]* steps', said)
  assert 'exit status 143 after SIGTERM' in said


def test_mutated_input_is_read_exactly_or_refused() -> None:
  said = outcome('mutate', '--inputs=2000', '--seed=1')
  assert said.startswith('2,000 mutated inputs')
  assert said.endswith('0 misread')


def test_mutated_questions_are_read_exactly_or_refused() -> None:
  said = outcome('mutate_questions', '--inputs=1000', '--seed=1')
  assert said.startswith('1,000 mutated inputs')
  assert said.endswith('0 misread')


def test_hostile_requests_are_refused() -> None:
  said = outcome('fuzz_server', '--requests=400', '--seed=2')
  assert said.startswith('400 requests')
  assert said.endswith('nothing wrong')


def test_only_interrupted_imports_may_end_with_a_traceback() -> None:
  start = 'Traceback (most recent call last):\n'
  importing = '  File "<frozen runpy>", line 189, in _run_module_as_main\n'
  running = '  File "main.py", line 124, in entry_point\n    app.run(main)\n'
  assert not kill.traceback(start + importing + 'KeyboardInterrupt\nnext')
  ignored = '  File "jax.py", line 132, in _xla_gc_callback\n    \n'
  assert not kill.traceback(start + ignored + 'KeyboardInterrupt: \n')
  wrong = start + importing + 'ValueError: wrong\n'
  assert kill.traceback(wrong) == wrong
  assert kill.traceback(start + importing + running + 'KeyboardInterrupt\n')


def test_a_killed_or_stopped_server_sends_no_wrong_answer() -> None:
  said = outcome('kill_server', '--kills=1', '--stops=1', '--clients=8')
  assert said.startswith('1 kills, 1 stops')
  assert said.endswith('nothing wrong')


def test_a_new_checkpoint_is_served_without_losing_a_request() -> None:
  said = outcome('swap_server', '--swaps=1', '--clients=8')
  assert said.startswith('1 new checkpoints')
  assert said.endswith('nothing wrong')
