"""Draws pictures of a run: training curves, bar charts and contextual maps.

    draw.draw(
      'runs/fb15k',
      'pictures',
      entity='/m/09gq0x5',
      relations=('/film/director/film', '/film/film/directed_by'),
      names='entity2text.txt',
    )

Every picture is saved as PNG and SVG. A JSON file contains its numbers.
"""

import os
import pathlib
import re
import zlib
from collections.abc import Sequence
from typing import Any

from coke_jax.data import arrays, user_paths
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
from coke_jax.storage import json_files
from coke_jax.storage import workdir as workdir_lib

_MAX_NAME_CHARACTERS = 80  # maximum length of the labels in a file name


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
  """Draws the metrics and results of a run, and contextual maps.

  If `metrics.jsonl` has lines, draws training curves. If `results.json` exists,
  draws bar charts of its metrics.

  Args:
    folder: a work folder, or the folder of an exported model, which has no
      `metrics.jsonl`.
    output: the folder of the pictures; created if it is missing.
    entity: the label of the entity of a map. Default: no map of an entity.
    relations: the labels of the one or two relations of a map, such as a
      relation and its inverse. Default: no map of relations.
    names: a file with `label TAB name` on each line. Legends show these names.
      Default: entity labels, and readable forms of relation labels.
    model: the model of `folder`. Default: the model is loaded from `folder` if
      a map is drawn.
    seed: the seed of the t-SNE and of the samples of large maps. Default: 0.

  Returns:
    The files written: a PNG, an SVG and a JSON file for each picture.

  Raises:
    workdir.WorkdirError: the folder contains no run, or there is nothing to
      draw.
    map_selection.MapError: a label is unknown or has too few triples, or the
      model is untrained.
    checkpoints.CheckpointError, export.ExportError: the model cannot be loaded.
    errors.NonFiniteError: a hidden state is NaN or infinite.
    config.ConfigError: matplotlib or scikit-learn is not installed.
    text_files.DataError: `names` or `metrics.jsonl` cannot be read.
    atomic_files.WriteError: a picture cannot be written.
  """
  workdir = workdir_lib.Workdir(folder)
  plot_style.import_extra('matplotlib')
  given = {} if names is None else readable_names.read_names(names)
  pictures: list[tuple[str, Any, dict[str, Any]]] = []
  with plot_style.style():
    lines = workdir.metrics().read()
    if lines:
      numbers = run_plots.curves(workdir.config().data.name, lines)
      pictures.append(
        ('training_curves', run_plots.draw_curves(numbers), numbers)
      )
    results_path = workdir.folder / 'results.json'
    if results_path.is_file():
      pictures += [
        (name, run_plots.draw_bars(numbers), numbers)
        for name, numbers in run_plots.bars(
          json_files.read_json(results_path)
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
      raise workdir_lib.WorkdirError(
        f'{workdir.folder}: nothing to draw: expected lines in metrics.jsonl, '
        'a results.json, or an entity or relation for a map'
      )
    return [
      path
      for name, figure, numbers in pictures
      for path in plot_style.save(
        figure, numbers, user_paths.expand(output), name
      )
    ]


def _maps(
  model: contextual_maps.Embedder,
  data: arrays.DataSet,
  entity: str | None,
  relations: Sequence[str],
  given: dict[str, str],
  seed: int,
) -> list[tuple[str, dict[str, Any]]]:
  """Returns the file name and the numbers of each map."""
  # Select all triples first, so that a wrong label raises an error before the
  # model encodes anything.
  chosen = []
  if entity is not None:
    selection = map_selection.select_entity(data, entity, seed=seed)
    chosen.append((file_name('entity', [entity]), selection))
  if relations:
    selection = map_selection.select_relations(data, relations, seed=seed)
    chosen.append((file_name('relation', relations), selection))
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


def file_name(kind: str, labels: Sequence[str]) -> str:
  """Returns the file name of a map, which needs no quotes in a shell.

  Args:
    kind: `entity` or `relation`.
    labels: the labels of the map. If they have more than 80 characters, a
      checksum replaces the rest.

  Returns:
    `<kind>_<labels>`, without a suffix.
  """
  text = ' '.join(labels)
  name = re.sub(r'[^\w.-]+', '_', text).strip('_.')
  if len(name) > _MAX_NAME_CHARACTERS:
    name = f'{name[:_MAX_NAME_CHARACTERS]}_{zlib.crc32(text.encode()):08x}'
  return f'{kind}_{name}'
