"""Parameter efficiency on the four benchmarks (paper, section 4.1).

    python -m experiments.paper.parameters --budget=cpu

Counts the parameters of our models at the paper's settings, beside what the
paper prints for RotatE, TuckER and CoKE. Trains nothing: MRR and hits@1 are
those that link_prediction.py measured at this budget, with the
parameters of the models that were trained there.
"""

from collections.abc import Sequence
from typing import Any

import jax

from coke_jax import tasks
from coke_jax.data import vocabulary
from coke_jax.model import encoder
from experiments.paper import formats, published, report, runs, settings
from experiments.paper import options as options_lib

NAME = 'parameters'
TITLE = 'Parameter efficiency'
_METRICS = ('mrr', 'hits@1')


def needed_runs(options: options_lib.Options) -> list[settings.Run]:
  """The models whose results are shown, if they were trained."""
  return options.runs(settings.TRIPLES)


def make(options: options_lib.Options) -> None:
  """Counts, and writes the table."""
  rows, lines, all_records = [], [], []
  for dataset, printed in published.PARAMETERS.items():
    run = options.run(dataset)
    records = runs.load_records(run, options.out)
    counted = count_paper_parameters(dataset) / 1e6
    millions, *metrics = printed['CoKE']
    ours = [record['results']['both'] for record in records]
    numbers: dict[str, Any] = {
      'parameters_million': {
        'ours': counted,
        'deviation': None,
        'paper': millions,
        'difference': counted - millions,
      },
      **report.compare(_METRICS, ours, metrics),
    }
    row = report.make_row(
      run,
      records,
      numbers,
      trained_parameters=[record['parameters'] for record in records],
      paper={
        name: dict(zip(('parameters_million', *_METRICS), some, strict=True))
        for name, some in printed.items()
      },
    )
    rows.append(row)
    all_records += records
    lines += [
      [
        dataset,
        name,
        'printed',
        f'{some[0]:.2f}',
        *map(formats.decimal, some[1:]),
      ]
      for name, some in printed.items()
    ]
    lines.append(
      [
        '',
        "CoKE, ours, paper's settings",
        'counted',
        f'{counted:.2f}',
        '-',
        '-',
      ]
    )
    difference = f'{round(counted, 2) - millions:+.2f}'  # as it is printed
    lines.append(['', 'difference', '', difference, '-', '-'])
    trained = '-'
    if records:
      trained = f'{records[0]["parameters"] / 1e6:.2f}'
    lines.append(
      [
        '',
        'CoKE, ours, as trained',
        report.label(row),
        trained,
        *(
          formats.plus_minus(numbers[name]['ours'], numbers[name]['deviation'])
          for name in _METRICS
        ),
      ]
    )
  header = ['data set', 'model', 'budget', 'parameters (M)', 'MRR', 'hits@1']
  report.write(
    options.out,
    NAME,
    title=TITLE,
    budget=options.budget,
    rows=rows,
    records=all_records,
    table=formats.markdown_table(header, lines),
  )


def count_paper_parameters(dataset: str) -> int:
  """Parameters of our model at the paper's settings, without data."""
  entities, relations = published.LABELS[dataset]
  labels = vocabulary.Vocabulary(
    tuple(map(str, range(entities))), tuple(map(str, range(relations)))
  )
  config = settings.load_config(settings.TRIPLES[dataset])
  coke = tasks.build_model(config, labels)
  shapes = jax.eval_shape(lambda: encoder.init_params(coke, 0))
  return int(encoder.count_parameters(shapes))


def main(arguments: Sequence[str] | None = None) -> None:
  """Makes the table that the flags ask for."""
  options_lib.run_script(make, __doc__, arguments)


if __name__ == '__main__':
  main()
