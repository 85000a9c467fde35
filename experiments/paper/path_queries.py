"""Path query answering on PathQueryWN and PathQueryFB (paper, section 4.2).

    python -m experiments.paper.path_queries --budget=cpu

Trains a model on the paths of at most k relations, for k = 1 to 5, and asks it
the test paths of all lengths: PATHS <= k in the paper's table.
"""

from collections.abc import Sequence

from experiments.paper import formats, published, report, runs, settings
from experiments.paper import options as options_lib

NAME = 'path_queries'
TITLE = 'Path query answering, test paths of all lengths'


def needed_runs(options: options_lib.Options) -> list[settings.Run]:
  """The models that this table needs."""
  return options.path_runs()


def make(options: options_lib.Options) -> None:
  """Trains what is missing and writes the table."""
  runs.ensure_all(needed_runs(options), options.out)
  metrics = published.PATH_METRICS
  rows, lines, all_records = [], [], []
  for dataset, printed in published.PATH_QUERIES.items():
    for length in settings.path_lengths(options.budget):
      run = options.run(dataset, length)
      records = runs.load_records(run, options.out)
      ours = [record['results'] for record in records]
      numbers = report.compare(metrics, ours, printed[length])
      row = report.make_row(run, records, numbers, max_path_length=length)
      rows.append(row)
      name = f'{dataset}, PATHS <= {length}'
      lines += report.comparison_lines(name, row, metrics)
      all_records += records
  header = ['trained on', 'budget', '', 'mean quantile', 'hits@10']
  report.write(
    options.out,
    NAME,
    title=TITLE,
    budget=options.budget,
    rows=rows,
    records=all_records,
    table=formats.markdown_table(header, lines),
  )


def main(arguments: Sequence[str] | None = None) -> None:
  """Makes the table that the flags ask for."""
  options_lib.run_script(make, __doc__, arguments)


if __name__ == '__main__':
  main()
