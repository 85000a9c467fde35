"""Reads and writes metrics.jsonl: the losses and validations of a training."""

import json
import logging
import os
import pathlib
from typing import Any

from coke_jax.data import atomic_files, text_files

_KINDS = ('train', 'valid')  # values of the key `kind`


class MetricsLog:
  """The file metrics.jsonl: one JSON object per line, in the order of steps."""

  def __init__(self, path: pathlib.Path):
    self._path = path

  def read(self) -> list[dict[str, Any]]:
    """Reads all complete lines.

    Returns:
      One JSON object per line. The list is empty if there is no file.

    Raises:
      text_files.DataError: the file cannot be read, or a line is not a JSON
        object with step and kind.
    """
    try:
      raw = self._path.read_bytes()
    except FileNotFoundError:
      return []
    except OSError as error:
      raise text_files.DataError(
        f'{self._path}: cannot be read: {error}'
      ) from error
    lines = []
    # The last line may be incomplete if the process was killed.
    for number, line in enumerate(raw.split(b'\n')[:-1], start=1):
      try:
        values = json.loads(line)
        if not isinstance(values['step'], int) or values['kind'] not in _KINDS:
          raise ValueError('step or kind')
        _json_line(values)  # Rejects NaN and infinity, which JSON lacks.
      except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise text_files.DataError(
          f'{self._path}:{number}: {text_files.show_line(line)}: expected a '
          f'JSON object with step and kind ({type(error).__name__}: '
          f'{error}); correct the line, or move the file away'
        ) from error
      lines.append(values)
    return lines

  def cut_after(
    self, step: int, *, last_line: int | None = None, validated: bool = True
  ) -> None:
    """Removes lines that a resumed training will write again.

    Logs a warning if `step` is 0 although the file has lines.

    Args:
      step: the step of the checkpoint. Lines of later steps are removed.
      last_line: the expected step of the last kept line of kind `train`, or 0
        if no such line is expected. If the step differs, a warning is logged.
        Default: no check.
      validated: whether to keep a line of kind `valid` with the step `step`.

    Raises:
      text_files.DataError: the file cannot be read, or a line is not a JSON
        object with step and kind.
      atomic_files.WriteError: the file cannot be written.
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
        '%s: there is no checkpoint: training and its log start from step 0',
        self._path,
      )
    trained = [line['step'] for line in kept if line['kind'] == 'train']
    if last_line is not None and max(trained, default=0) != last_line:
      logging.warning(
        '%s: lines are missing: the last line of kind train has the step %d, '
        'expected %d',
        self._path,
        max(trained, default=0),
        last_line,
      )
    text = ''.join(map(_json_line, kept))
    with atomic_files.whole_file(self._path) as path:
      path.write_text(text, encoding='utf-8')

  def append(self, line: dict[str, Any]) -> None:
    """Appends a line, which is kept even if the process is killed.

    Raises:
      atomic_files.WriteError: the file cannot be written.
    """
    text = _json_line(line).encode()
    with atomic_files.writing(self._path), self._path.open('ab') as out:
      out.write(text)

  def sync(self) -> None:
    """Waits until all lines are on disk."""
    with atomic_files.writing(self._path), self._path.open('a') as out:
      os.fsync(out.fileno())


def _json_line(line: dict[str, Any]) -> str:
  return json.dumps(line, allow_nan=False) + '\n'
