"""Parameter efficiency on the four benchmarks (paper, section 4.1).

    python -m experiments.paper.parameters --budget=cpu

Counts the parameters of our models at the paper's settings, and shows them
beside the numbers that the paper prints for RotatE, TuckER and CoKE. Trains no
model: MRR and hits@1 are those that link_prediction.py measured at this budget.
"""

from coke_jax.data import benchmarks, vocabulary
from experiments.paper import formats, published, report, runs, settings
from experiments.paper import options as options_lib

NAME = 'parameters'
_METRICS = ('mrr', 'hits@1')
_PRINTED = ('parameters_million', *_METRICS)


def needed_runs(options: options_lib.Options) -> list[settings.Run]:
  """Returns the runs whose results the table shows if they are finished."""
  return options.selected(options.triple_runs())


def make(options: options_lib.Options) -> None:
  """Counts the parameters and writes the table."""
  table = report.Table(
    options,
    NAME,
    title='Parameter efficiency',
    header=['data set', 'model', 'budget', 'parameters (M)', 'MRR', 'hits@1'],
  )
  for dataset, printed in published.PARAMETERS.items():
    run = options.run(dataset)
    records = table.records(run)
    trained = [record['parameters'] for record in records]
    counted = count_paper_parameters(dataset) / 1e6
    millions, *metrics = printed['CoKE']
    row = table.add(
      run,
      records,
      {
        'parameters_million': {
          'ours': counted,
          'deviation': None,
          'paper': millions,
          'difference': counted - millions,
        },
        **report.compare(
          _METRICS, [record['results']['both'] for record in records], metrics
        ),
      },
      trained_parameters=trained,
      paper={
        name: dict(zip(_PRINTED, numbers, strict=True))
        for name, numbers in printed.items()
      },
    )
    table.lines += [
      [dataset, name, 'printed', f'{size:.2f}', *map(formats.decimal, others)]
      for name, (size, *others) in printed.items()
    ]
    # Round first, so that the difference fits the numbers in the table.
    difference = round(counted, 2) - millions
    ours = 'CoKE, ours, '
    as_trained = f'{trained[0] / 1e6:.2f}' if trained else '-'
    table.lines += [
      ['', f"{ours}paper's settings", 'counted', f'{counted:.2f}', '-', '-'],
      ['', 'difference', '', f'{difference:+.2f}', '-', '-'],
    ]
    cells = report.cells(row, _METRICS)
    table.lines.append(
      ['', f'{ours}as trained', report.label(row), as_trained, *cells]
    )
  table.write()


def count_paper_parameters(dataset: str) -> int:
  """Counts the parameters of our model at the paper's settings."""
  counts = benchmarks.BENCHMARKS[dataset]
  labels = vocabulary.Vocabulary(
    tuple(map(str, range(counts.entities))),
    tuple(map(str, range(counts.relations))),
  )
  config = settings.load_config(settings.TRIPLES[dataset])
  return runs.count_parameters(config, labels)


if __name__ == '__main__':
  options_lib.run_script(make, __doc__)
