"""t-SNE maps of contextual embeddings (paper, section 4.3).

    python -m experiments.paper.contextual_maps --budget=cpu

Draws the paper's two t-SNE maps with the FB15k model of link_prediction.py. The
first shows the film The King's Speech in its training triples, coloured by
relation. The second shows the relations between films and directors, coloured
by director. The paper prints no numbers for these maps. The script measures two
observations of the paper: hidden states cluster by relation or director, and
the states of a triple and of its inverse nearly coincide.
"""

import dataclasses
from typing import Any

import coke_jax
from coke_jax.data import benchmarks, text_files
from coke_jax.data import vocabulary as vocabulary_lib
from coke_jax.plots import contextual_maps, map_plots, map_selection, plot_style
from coke_jax.plots import readable_names as names_lib
from experiments.paper import formats, report, runs, settings
from experiments.paper import options as options_lib

NAME = 'contextual_maps'
_DATASET = 'FB15k'
_MEASURES = ('silhouette', 'silhouette_joined', 'mirrored_distance')
_HEADER = (
  'map, budget, triples, groups, silhouette, joined, mirrored pairs, '
  'mirrored distance'
)
_NOTES = """\
- Groups: the points of a group have the same colour. A group is a relation in
  the first map and a director in the second map.
- Triples: `n of m` means that n of m triples are drawn. The m triples are those
  with the entity (first map) or with one of the relations (second map). Groups
  of fewer than 5 triples (first map) or 10 triples (second map) are not drawn.
- Silhouette: a number from -1 to 1. It is above 0 if the hidden states of a
  group are closer to each other than to any other group.
- Joined: the silhouette if a relation and its inverse count as one group.
- Mirrored pairs: the number of pairs of triples (s, r, o) and (o, r', s), for
  any relations r and r'.
- Mirrored distance: the median distance between the hidden states of a mirrored
  pair, divided by the median distance between any two hidden states.
"""


@dataclasses.dataclass(frozen=True)
class Map:
  """The triples that one map shows.

  Attributes:
    name: the name of the files of the map.
    entity: the label of the entity; empty for a map of relations.
    relations: the labels of the relations.
  """

  name: str
  entity: str = ''
  relations: tuple[str, ...] = ()


_MAPS = (
  Map('contextual_map_entity', entity='/m/09gq0x5'),  # The King's Speech
  Map(
    'contextual_map_relations',
    relations=('/film/director/film', '/film/film/directed_by'),
  ),
)
_STAND_IN_MAPS = (
  Map('contextual_map_entity', entity='France'),
  Map('contextual_map_relations', relations=('intermediate_region',)),
)
# The name of the film for copies of FB15k without a file of names.
_KNOWN_NAMES = {'/m/09gq0x5': "The King's Speech"}


def needed_runs(options: options_lib.Options) -> list[settings.Run]:
  """Returns the run of both maps, or [] if the flags do not select FB15k."""
  return options.selected([options.run(_DATASET)])[:1]


def make(options: options_lib.Options) -> None:
  """Trains the model if it is missing and draws both maps."""
  run = options.run(_DATASET)
  needed = needed_runs(options)
  drawn_before = (options.out / f'{NAME}.json').is_file()
  if drawn_before and not (needed or runs.is_finished(run, options.out)):
    print(f'{NAME}: left unchanged, because {_DATASET} is not selected')
    return
  runs.ensure_all(needed, options.out)
  table = report.Table(
    options,
    NAME,
    title='Contextual embeddings by t-SNE',
    header=_HEADER.split(', '),
  )
  maps = _STAND_IN_MAPS if run.stand_in else _MAPS
  pictures = ''
  if not runs.is_finished(run, options.out):
    for one in maps:
      row = table.add(run, [], {}, map=one.name)
      table.lines.append([one.name, report.label(row), *['-'] * 6])
  else:
    records = [runs.load_record(run, options.out)]
    model = coke_jax.load(runs.work_folder(run, options.out))
    names = names_lib.make_names(
      model.data.vocabulary, _given_names(run, model.data.vocabulary)
    )
    for one in maps:
      row = table.add(run, records, {}, map=one.name)
      drawn = _draw(one, row, model, names, options)
      row['numbers'] |= {
        name: {'ours': drawn[name], 'paper': None} for name in _MEASURES
      }
      title = ' and '.join(drawn['names'])
      pictures += f'\n![{title}]({one.name}.png)\n'
      table.lines.append([title, *_cells(row, drawn)])
  table.write(notes=_NOTES + pictures, paper='figures without numbers')


def _given_names(
  run: settings.Run, vocabulary: vocabulary_lib.Vocabulary
) -> dict[str, str]:
  """Reads the names of entities from files beside the triples, if any exist."""
  known = set(vocabulary.entities)
  given = dict(_KNOWN_NAMES)
  try:
    folder = benchmarks.locate(
      run.config.data.name, run.config.data.dir or None
    )
    for path in sorted(folder.glob('entity2text.txt*')):
      given.update(names_lib.read_names(path))
  except text_files.DataError as error:  # Maps need only the work folder.
    print(f'entities keep their labels: {error}')
  return {label: name for label, name in given.items() if label in known}


def _draw(
  one: Map,
  row: dict[str, Any],
  model: coke_jax.Model,
  names: names_lib.Names,
  options: options_lib.Options,
) -> dict[str, Any]:
  """Draws a map to .png, .svg and .json, and returns its numbers."""
  if one.entity:
    selection = map_selection.select_entity(model.data, one.entity)
  else:
    selection = map_selection.select_relations(model.data, one.relations)
  laid_out = contextual_maps.make_map(model, model.data, selection)
  numbers = contextual_maps.to_json(laid_out, model.data, names)
  numbers = {'budget': row['budget'], 'runs': row['runs'], **numbers}
  with plot_style.style():
    figure = map_plots.draw(numbers)
    figure.supxlabel(f'Budget {report.label(row)}', fontsize=9)
    plot_style.save(figure, numbers, options.out, one.name)
  return numbers


def _cells(row: dict[str, Any], drawn: dict[str, Any]) -> list[str]:
  return [
    report.label(row),
    f'{drawn["triples_kept"]} of {drawn["triples_found"]}',
    str(len(drawn['groups'])),
    formats.signed(drawn['silhouette']),
    formats.signed(drawn['silhouette_joined']),
    str(drawn['mirrored_pairs']),
    formats.decimal(drawn['mirrored_distance']),
  ]


if __name__ == '__main__':
  options_lib.run_script(make, __doc__)
