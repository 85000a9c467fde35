"""Link prediction on FB15k, WN18, FB15k-237 and WN18RR (paper, section 4.1).

    python -m experiments.paper.link_prediction --budget=cpu

Trains a model for each data set, ranks the head and the tail of every test
triple in the filtered setting, and compares with the paper's tables.
"""

from experiments.paper import options as options_lib
from experiments.paper import published, report, runs, settings

NAME = 'link_prediction'


def needed_runs(options: options_lib.Options) -> list[settings.Run]:
  """Returns the runs of this table that the flags select."""
  return options.selected(options.triple_runs())


def make(options: options_lib.Options) -> None:
  """Trains the missing models and writes the table."""
  runs.ensure_all(needed_runs(options), options.out)
  models = options.triple_runs()
  table = report.Table(
    options,
    NAME,
    title='Link prediction, test split, filtered',
    header=['data set', 'budget', '', 'MRR', 'hits@1', 'hits@3', 'hits@10'],
  )
  report.write_comparison(
    table,
    models,
    published.LINK_PREDICTION_METRICS,
    [published.LINK_PREDICTION[run.dataset] for run in models],
    side='both',
  )


if __name__ == '__main__':
  options_lib.run_script(make, __doc__)
