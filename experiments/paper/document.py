"""Updates the tables of docs/reproduction.md.

Between `<!-- table: NAME -->` and `<!-- end of table -->`, the page shows
experiments/results/<budget>/NAME.md for the budgets cpu and paper. The table
`throughput` is made from the files in experiments/results/throughput.
"""

import pathlib
import re
from typing import Any

from coke_jax.data import atomic_files
from coke_jax.storage import json_files
from experiments.paper import formats, settings

PAGE = settings.ROOT / 'docs' / 'reproduction.md'
RESULTS = settings.ROOT / 'experiments' / 'results'
# The page does not show the budget `smoke`, which only tests the scripts.
BUDGETS = ('cpu', 'paper')
_BLOCK = re.compile(
  r'(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)', re.DOTALL
)
_LOCAL_LINK = re.compile(r'(\]\()([\w.-]+\))')


def update(out: pathlib.Path) -> None:
  """Updates the page if it shows the results in the folder `out`."""
  kept = {settings.default_out(budget) for budget in BUDGETS}
  if out.resolve() in kept:
    write()


def write() -> None:
  """Updates the page."""
  text = PAGE.read_text(encoding='utf-8')
  with atomic_files.whole_file(PAGE) as path:
    path.write_text(render(text), encoding='utf-8')


def render(text: str, results: pathlib.Path = RESULTS) -> str:
  """Returns the text of a page with its tables replaced.

  Args:
    text: the page.
    results: contains a folder for each budget.
  """

  def block(match: re.Match[str]) -> str:
    begin, name, end = match.groups()
    if name == 'throughput':
      shown = throughput_table(results / name)
    else:
      shown = '\n'.join(_table(name, budget, results) for budget in BUDGETS)
    return f'{begin}\n{shown}\n{end}'

  return _BLOCK.sub(block, text)


def throughput_table(folder: pathlib.Path) -> str:
  """Returns a table of the measurements that benchmarks/throughput.py wrote."""
  measured = [
    measurement
    for path in sorted(folder.glob('*.json'))
    for measurement in json_files.read_json(path)['measurements']
  ]
  if not measured:
    return '**Not measured yet.**\n'
  header = ['model', 'measured on', 'timed steps', 'seconds a step']
  header += ['steps in all', 'expected training time']
  return formats.markdown_table(header, map(_throughput_line, measured))


def _throughput_line(measurement: dict[str, Any]) -> list[str]:
  seconds = measurement['seconds_per_step'] * measurement['steps']
  days = seconds / 86400
  return [
    measurement['model'],
    f'{measurement["device"]} ({measurement["processor"]})',
    str(measurement['timed_steps']),
    f'{measurement["seconds_per_step"]:.3g}',
    f'{measurement["steps"]:,}',
    f'{days:.1f} days' if days >= 2 else formats.duration(seconds),
  ]


def _table(name: str, budget: str, results: pathlib.Path) -> str:
  path = results / budget / f'{name}.md'
  if not path.is_file():
    return f'**Budget {budget}: not run yet.**\n'
  return _LOCAL_LINK.sub(
    rf'\1../experiments/results/{budget}/\2', path.read_text(encoding='utf-8')
  )
