"""How long the paper's settings take, from measured steps."""

import pathlib
from typing import Any

from coke_jax.storage import json_files
from experiments.paper import formats


def render(folder: pathlib.Path) -> str:
  """A table of all measurements in a folder, or that there are none."""
  measured = [
    json_files.read_json(path) for path in sorted(folder.glob('*.json'))
  ]
  lines = [line for one in measured for line in map(_line, one['measurements'])]
  if not lines:
    return '**Not measured yet.**\n'
  header = ['model', 'measured on', 'timed steps', 'seconds a step']
  header += ['steps in all', 'expected training time']
  return formats.markdown_table(header, lines)


def _line(measurement: dict[str, Any]) -> list[str]:
  return [
    measurement['model'],
    f'{measurement["device"]} ({measurement["processor"]})',
    str(measurement['timed_steps']),
    f'{measurement["seconds_per_step"]:.3g}',
    f'{measurement["steps"]:,}',
    _long(measurement['seconds_per_step'] * measurement['steps']),
  ]


def _long(seconds: float) -> str:
  days = seconds / 86400
  return f'{days:.1f} days' if days >= 2 else formats.duration(seconds)
