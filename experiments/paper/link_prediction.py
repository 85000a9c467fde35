"""Link prediction on FB15k, WN18, FB15k-237 and WN18RR (paper, section 4.1).

    python -m experiments.paper.link_prediction --budget=cpu

Trains a model for each data set, ranks both ends of every test triple in the
filtered setting, and compares with the paper's tables.
"""

from collections.abc import Sequence

from experiments.paper import formats, published, report, runs, settings
from experiments.paper import options as options_lib

NAME = 'link_prediction'
TITLE = 'Link prediction, test split, filtered'


def needed_runs(options: options_lib.Options) -> list[settings.Run]:
  """The models that this table needs."""
  return options.runs(settings.TRIPLES)


def make(options: options_lib.Options) -> None:
  """Trains what is missing and writes the table."""
  runs.ensure_all(needed_runs(options), options.out)
  metrics = published.LINK_PREDICTION_METRICS
  rows, lines, all_records = [], [], []
  for dataset in settings.TRIPLES:
    run = options.run(dataset)
    records = runs.load_records(run, options.out)
    ours = [record['results']['both'] for record in records]
    numbers = report.compare(metrics, ours, published.LINK_PREDICTION[dataset])
    row = report.make_row(run, records, numbers)
    rows.append(row)
    lines += report.comparison_lines(dataset, row, metrics)
    all_records += records
  header = ['data set', 'budget', '', 'MRR', 'hits@1', 'hits@3', 'hits@10']
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
