"""Tests progress bars, also in processes without standard streams."""

import types

import pytest

from coke_jax import progress_bar
from coke_jax.cli import streams
from coke_jax.training import writers


@pytest.mark.parametrize('names', [['stderr'], ['stdout', 'stderr']])
def test_a_process_without_standard_streams_shows_no_bar(monkeypatch, names):
  """Examples are daemons, and programs that are started with `2>&-`."""
  for name in names:
    monkeypatch.setattr(f'sys.{name}', None)
  bar = writers.ProgressBar(0, 3)
  bar.advance_after_compilation(1)
  bar.advance(2)
  bar.say('a line')
  bar.write(
    {
      'kind': 'train',
      'loss': 1.0,
      'learning_rate': 0.1,
      'instances_per_second': 1.0,
    }
  )
  bar.close()
  progress_bar.say('another line', None)
  with progress_bar.create('reading', total=2) as shown:
    shown.update(2)


def test_the_time_left_does_not_include_the_compilation(monkeypatch, capsys):
  clock = [1000.0]
  monkeypatch.setattr('tqdm.std.time', lambda: clock[0])
  monkeypatch.setattr('time.time', lambda: clock[0])
  bar = writers.ProgressBar(0, 100)
  assert 'compiling' in capsys.readouterr().err
  clock[0] += 3600
  bar.advance_after_compilation(10)
  assert '10/100 [00:00<?' in capsys.readouterr().err
  clock[0] += 60
  bar.advance(30)
  bar.close()
  shown = capsys.readouterr().err
  assert 'compiling' not in shown
  assert '40/100 [01:00<02:00' in shown
  # If 30 steps took 3,660 s, the time left would be 2:02:00.
  assert '<2' not in shown


def test_a_bar_without_description_is_not_shown(capsys):
  with progress_bar.create('', total=2) as bar:
    bar.update(2)
  with progress_bar.create('shown', total=2) as bar:
    bar.update(2)
  shown = capsys.readouterr().err
  assert 'shown' in shown
  assert shown.count('0/2') == 1


@pytest.mark.parametrize('terminals', [(), (1,), (2,), (1, 2)])
def test_output_and_errors_on_one_terminal(monkeypatch, terminals):
  for number, name in ((1, 'stdout'), (2, 'stderr')):
    shown = number in terminals
    stream = types.SimpleNamespace(isatty=lambda shown=shown: shown)
    monkeypatch.setattr(f'sys.{name}', stream)
  assert streams.on_terminal('-') == (terminals == (1, 2))
  assert not streams.on_terminal('answers.tsv')
  monkeypatch.setattr('sys.stderr', None)
  assert not streams.on_terminal('-')
