"""Pictures of a run: training curves, ranks as bars, contextual maps.

    draw.draw('runs/fb15k', 'pictures', entity='/m/09gq0x5',
               relations=('/film/director/film', '/film/film/directed_by'),
               names='entity2text.txt')

Every picture is a PNG, an SVG, and a JSON file of the numbers in it.
"""

import os
import pathlib
import re
import zlib
from collections.abc import Sequence
from typing import Any

from coke_jax.data import arrays
from coke_jax.plots import (
  contextual_maps,
  map_plots,
  map_selection,
  plot_style,
  readable_names,
  run_plots,
)
from coke_jax.predict import load
from coke_jax.predict import model as model_lib
from coke_jax.storage import workdir

_LONGEST_NAME = 80  # characters of a label in a file name


def draw(
  folder: str | os.PathLike[str],
  output: str | os.PathLike[str],
  *,
  entity: str | None = None,
  relations: Sequence[str] = (),
  names: str | os.PathLike[str] | None = None,
  model: model_lib.Model | None = None,
  seed: int = 0,
) -> list[pathlib.Path]:
  """Draws what a work folder holds, and the maps that are asked for.

  Training curves are drawn if metrics.jsonl has lines, bars of the ranks if
  there is a results.json.

  Args:
    folder: a work folder, or an exported model, which has maps alone.
    output: the folder for the pictures; made if need be.
    entity: the label of an entity to draw a map of.
    relations: the label of a relation to draw a map of, or of two, such as a
      relation and its inverse.
    names: a file with `label TAB name` on each line, for legends.
    model: that of `folder`, if it is loaded already.
    seed: of the t-SNE.

  Returns:
    The files written.

  Raises:
    workdir.WorkdirError: the folder holds no run, or nothing to draw.
    map_selection.MapError: an unknown label, or too few triples for a map.
    config.ConfigError: matplotlib or scikit-learn is not installed.
    text_files.DataError: `names` cannot be read.
    atomic_files.WriteError: a picture cannot be written.
  """
  place = workdir.Workdir(folder)
  plot_style.import_extra('matplotlib')
  given = {} if names is None else readable_names.read_names(names)
  pictures: list[tuple[str, Any, dict[str, Any]]] = []
  with plot_style.style():
    lines = place.metrics().read()
    if lines:
      numbers = run_plots.curves(place.config().data.name, lines)
      pictures.append(
        ('training_curves', run_plots.draw_curves(numbers), numbers)
      )
    results_path = place.folder / 'results.json'
    if results_path.is_file():
      pictures += [
        (name, run_plots.draw_bars(numbers), numbers)
        for name, numbers in run_plots.bars(
          workdir.read_json(results_path)
        ).items()
      ]
    if entity is not None or relations:
      model = model or load.load(folder)
      pictures += [
        (name, map_plots.draw(numbers), numbers)
        for name, numbers in _maps(
          model, model.data, entity, relations, given, seed
        )
      ]
    if not pictures:
      raise workdir.WorkdirError(
        f'{place.folder}: no line in metrics.jsonl, no results.json, and no '
        'entity or relation was asked for: nothing to draw'
      )
    return [
      path
      for name, figure, numbers in pictures
      for path in plot_style.save(figure, numbers, pathlib.Path(output), name)
    ]


def _maps(
  model: contextual_maps.Embedder,
  data: arrays.DataSet,
  entity: str | None,
  relations: Sequence[str],
  given: dict[str, str],
  seed: int,
) -> list[tuple[str, dict[str, Any]]]:
  """File names and numbers of the maps; wrong labels are found before all."""
  chosen = []
  if entity is not None:
    selection = map_selection.select_entity(data, entity, seed=seed)
    chosen.append((_file_name('entity', [entity]), selection))
  if relations:
    selection = map_selection.select_relations(data, relations, seed=seed)
    chosen.append((_file_name('relation', relations), selection))
  names = readable_names.make_names(data.vocabulary, given)
  return [
    (
      name,
      contextual_maps.to_json(
        contextual_maps.make_map(model, data, selection, seed=seed), data, names
      ),
    )
    for name, selection in chosen
  ]


def _file_name(kind: str, labels: Sequence[str]) -> str:
  """A name without the characters that file systems or shells mind."""
  text = ' '.join(labels)
  name = re.sub(r'[^\w.-]+', '_', text).strip('_.')
  if len(name) > _LONGEST_NAME:
    name = f'{name[:_LONGEST_NAME]}_{zlib.crc32(text.encode()):08x}'
  return f'{kind}_{name}'
