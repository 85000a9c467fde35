"""metrics.jsonl: what a training has measured, line by line."""

import json
import logging
import os
import pathlib
from typing import Any

from coke_jax.data import atomic_files, text_files

_KINDS = ('train', 'valid')  # of the lines of metrics.jsonl


class MetricsLog:
  """metrics.jsonl: one JSON object a line, in the order of steps."""

  def __init__(self, path: pathlib.Path):
    self._path = path

  def read(self) -> list[dict[str, Any]]:
    """All complete lines."""
    try:
      raw = self._path.read_bytes()
    except FileNotFoundError:
      return []
    except OSError as error:
      raise text_files.DataError(
        f'{self._path}: cannot be read: {error}'
      ) from error
    lines = []
    # A kill can leave the last line half written.
    for number, line in enumerate(raw.split(b'\n')[:-1], start=1):
      try:
        values = json.loads(line)
        if not isinstance(values['step'], int) or values['kind'] not in _KINDS:
          raise ValueError('step or kind')
        _json_line(values)  # no number that JSON does not know
      except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise text_files.DataError(
          f'{self._path}:{number}: {text_files.show_line(line)}: expected a '
          f'JSON object with step and kind ({type(error).__name__}: '
          f'{error}); mend the line, or move the file away'
        ) from error
      lines.append(values)
    return lines

  def cut_after(
    self, step: int, *, last_line: int | None = None, validated: bool = True
  ) -> None:
    """Takes out lines that training is about to write again.

    Says so if lines are missing that were there: training goes on without.

    Args:
      step: what comes after it is taken out.
      last_line: the step of the last line on training until then, 0 if there
        was none; None: unknown.
      validated: whether a validation after `step` stays.
    """
    lines = self.read()
    kept = [
      line
      for line in lines
      if line['step'] < step
      or (line['step'] == step and (validated or line['kind'] != 'valid'))
    ]
    if lines and not step:
      logging.warning(
        '%s: there is no checkpoint: training begins anew, and so does the log',
        self._path,
      )
    trained = [line['step'] for line in kept if line['kind'] == 'train']
    if last_line is not None and max(trained, default=0) != last_line:
      logging.warning(
        '%s: lines are missing: the last one on training is of step %d, '
        'expected %d',
        self._path,
        max(trained, default=0),
        last_line,
      )
    text = ''.join(map(_json_line, kept))
    with atomic_files.whole_file(self._path) as path:
      path.write_text(text, encoding='utf-8')

  def append(self, line: dict[str, Any]) -> None:
    """Adds a line; a kill does not take it away when this has returned."""
    text = _json_line(line).encode()
    with atomic_files.writing(self._path), self._path.open('ab') as out:
      out.write(text)

  def sync(self) -> None:
    """Waits until the lines so far outlast a power cut, too."""
    with atomic_files.writing(self._path), self._path.open('a') as out:
      os.fsync(out.fileno())


def _json_line(line: dict[str, Any]) -> str:
  return json.dumps(line, allow_nan=False) + '\n'
