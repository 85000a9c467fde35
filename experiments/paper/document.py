"""The tables of docs/reproduction.md, kept up to date.

Between `<!-- table: NAME -->` and `<!-- end of table -->` the page shows what
experiments/results/<budget>/NAME.md holds, for the budgets cpu and paper, and
says of the others that they were not run.
"""

import pathlib
import re

from coke_jax.data import atomic_files
from experiments.paper import settings, throughput_table

PAGE = settings.ROOT / 'docs' / 'reproduction.md'
RESULTS = settings.ROOT / 'experiments' / 'results'
BUDGETS = ('cpu', 'paper')  # smoke numbers are not results
_BLOCK = re.compile(
  r'(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)', re.DOTALL
)
_LOCAL_LINK = re.compile(r'(\]\()([\w.-]+\))')


def update(out: pathlib.Path) -> None:
  """Brings the page up to date, if `out` is where results are kept.

  Results elsewhere, and smoke results, leave it alone.
  """
  kept = {settings.default_out(budget) for budget in BUDGETS}
  if out.resolve() in kept:
    write()


def write() -> None:
  """Brings the page up to date."""
  text = PAGE.read_text(encoding='utf-8')
  with atomic_files.whole_file(PAGE) as path:
    path.write_text(render(text), encoding='utf-8')


def render(text: str, results: pathlib.Path = RESULTS) -> str:
  """A page with its tables as the results say.

  Args:
    text: the page.
    results: holds a folder for each budget.
  """

  def block(match: re.Match[str]) -> str:
    begin, name, end = match.groups()
    if name == 'throughput':
      shown = throughput_table.render(results / name)
    else:
      shown = '\n'.join(_table(name, budget, results) for budget in BUDGETS)
    return f'{begin}\n{shown}\n{end}'

  return _BLOCK.sub(block, text)


def _table(name: str, budget: str, results: pathlib.Path) -> str:
  path = results / budget / f'{name}.md'
  if not path.is_file():
    return f'**Budget {budget}: not run yet.**\n'
  return _LOCAL_LINK.sub(
    rf'\1../experiments/results/{budget}/\2', path.read_text(encoding='utf-8')
  )
