"""Path query answering on PathQueryWN and PathQueryFB (paper, section 4.2).

    python -m experiments.paper.path_queries --budget=cpu

For each k from 1 to 5, trains a model on the paths with at most k relations
(PATHS <= k in the paper's table). Then ranks the targets of all test paths.
"""

from experiments.paper import options as options_lib
from experiments.paper import published, report, runs, settings

NAME = 'path_queries'


def needed_runs(options: options_lib.Options) -> list[settings.Run]:
  """Returns the runs of this table that the flags select."""
  return options.selected(options.path_runs())


def make(options: options_lib.Options) -> None:
  """Trains the missing models and writes the table."""
  runs.ensure_all(needed_runs(options), options.out)
  models = options.path_runs()
  table = report.Table(
    options,
    NAME,
    title='Path query answering, test paths of all lengths',
    header=['trained on', 'budget', '', 'mean quantile', 'hits@10'],
  )
  report.write_comparison(
    table,
    models,
    published.PATH_METRICS,
    [published.PATH_QUERIES[r.dataset][r.max_path_length] for r in models],
  )


if __name__ == '__main__':
  options_lib.run_script(make, __doc__)
