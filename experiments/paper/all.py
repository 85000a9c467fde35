"""Makes every table and figure of the paper, in order.

    python -m experiments.paper.all --budget=cpu

Runs the scripts of this folder. If one fails, the others still run. After an
interruption, the same command continues. Finished models are reused. Scripts
whose models and settings have not changed are skipped.
"""

import hashlib
import json
import sys
import time
import traceback
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from coke_jax import config as config_lib
from coke_jax import errors
from coke_jax.storage import json_files
from experiments.paper import (
  contextual_maps,
  link_prediction,
  parameters,
  path_queries,
  runs,
  single_hop_from_paths,
)
from experiments.paper import options as options_lib

SCRIPTS: dict[str, ModuleType] = {
  module.NAME: module
  for module in (
    link_prediction,
    parameters,
    path_queries,
    single_hop_from_paths,
    contextual_maps,
  )
}
_PROGRESS = 'progress.json'


def run_all(
  options: options_lib.Options, only: Sequence[str], *, again: bool = False
) -> list[str]:
  """Runs scripts in the given order.

  Args:
    options: the flags for the scripts.
    only: the names of the scripts to run.
    again: whether to run scripts that are already complete.

  Returns:
    The names of the scripts that failed.
  """
  path = options.out / _PROGRESS
  progress = json_files.read_json(path) if path.is_file() else {}
  failed = []
  for name in only:
    script = SCRIPTS[name]
    if not again and is_complete(script, options, progress.get(name)):
      print(f'==== {name}: complete, skipped')
      continue
    print(f'==== {name}')
    started = time.monotonic()
    error = _attempt(script, options)
    if error:
      failed.append(name)
    progress[name] = {
      'complete': not error,
      'error': error,
      'shows': _fingerprint(script, options),
      'seconds': round(time.monotonic() - started, 1),
    }
    options.out.mkdir(parents=True, exist_ok=True)
    json_files.write_json(path, progress)
  return failed


def _attempt(script: ModuleType, options: options_lib.Options) -> str:
  """Runs a script; returns the error message, or an empty string."""
  try:
    script.make(options)
  except (errors.CokeError, OSError) as error:
    print(f'error: {error}', file=sys.stderr)
    return str(error)
  except Exception as error:  # the other scripts still run
    traceback.print_exc()
    return f'{type(error).__name__}: {error}'
  return ''


def is_complete(
  script: ModuleType, options: options_lib.Options, entry: Any
) -> bool:
  """Returns whether running a script again would change nothing.

  Args:
    script: a module of SCRIPTS.
    options: the flags.
    entry: the entry of the script in progress.json, or None.
  """
  if not entry or not entry['complete']:
    return False
  if not (options.out / f'{script.NAME}.md').is_file():
    return False
  return bool(entry['shows'] == _fingerprint(script, options))


def _fingerprint(script: ModuleType, options: options_lib.Options) -> str:
  """Returns a hash of the settings and results of a script's models.

  The results of a model are part of the hash only if its work folder contains
  the finished training. A fresh clone contains results but no work folders, so
  the hash differs and the script trains the models.
  """
  parts = []
  for run in script.needed_runs(options):
    done = runs.is_finished(run, options.out)
    record = runs.load_record(run, options.out) if done else None
    parts.append([run.name, config_lib.flatten(run.config), record])
  text = json.dumps(parts, sort_keys=True)
  return hashlib.sha256(text.encode()).hexdigest()


def main(arguments: Sequence[str] | None = None) -> None:
  """Runs the selected scripts; the exit status is 1 if one failed."""
  parser = options_lib.make_parser(__doc__)
  parser.add_argument(
    '--only',
    type=options_lib.list_of('script', SCRIPTS),
    default=tuple(SCRIPTS),
    metavar='SCRIPT,...',
    help=f'run these scripts only; default: {",".join(SCRIPTS)}',
  )
  parser.add_argument(
    '--again',
    action='store_true',
    help='also run scripts that are complete; their models are reused',
  )
  options, given = options_lib.parse(parser, arguments)
  only = [name for name in SCRIPTS if name in given.only]
  with options_lib.reported_errors():
    failed = run_all(options, only, again=given.again)
  if failed:
    sys.exit(f'failed: {", ".join(failed)}')


if __name__ == '__main__':
  main()
