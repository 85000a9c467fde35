"""What a trained model is used for: each --mode that asks, keeps or draws."""

import os
import pathlib
import sys

import ml_collections

from coke_jax import config as config_lib
from coke_jax import parallel, tasks
from coke_jax.cli import answer_lines, flags, input_lines
from coke_jax.data import path_files, paths, text_files
from coke_jax.evaluate import ranker as ranker_lib
from coke_jax.plots import draw
from coke_jax.predict import export, known_facts, load
from coke_jax.storage import checksums, workdir
from coke_jax.training import run


def evaluate(
  config: ml_collections.ConfigDict,
  folder: str | os.PathLike[str],
  options: flags.Options = flags.DEFAULTS,
) -> None:
  """Ranks a split with the best checkpoint of a work folder."""
  place = trained_folder(config, folder, may_be_exported=False)
  task = tasks.make_task(config, place.data())
  coke = tasks.build_model(config, task.data.vocabulary, task.max_length)
  ranker = ranker_lib.Ranker(coke, config.evaluate.batch_size)
  run.evaluate_split(config, task, place, options.split, ranker)


def sample_paths(
  config: ml_collections.ConfigDict,
  folder: str | os.PathLike[str],
  options: flags.Options = flags.DEFAULTS,
) -> None:
  """Writes paths sampled from a graph of triples, as path files.

  Args:
    config: its data.kind is 'walks'.
    folder: where the files go; it must not hold path data yet.
    options: not used: all splits are written.

  Raises:
    config.ConfigError: data.kind is another one.
    text_files.DataError: the folder holds path data.
  """
  del options
  config_lib.validate(config)
  if config.data.kind != 'walks':
    raise config_lib.ConfigError(
      f"config.data.kind is {config.data.kind!r}: expected 'walks', and "
      'config.data.max_path_length of at least 2, to sample paths'
    )
  data = tasks.read_data(config)
  assert isinstance(data, paths.PathData), 'walks make paths'
  path_files.write_paths(pathlib.Path(folder), data, tasks.path_format(config))
  print(f'written to {folder}')


def trained_folder(
  config: ml_collections.ConfigDict,
  folder: str | os.PathLike[str],
  *,
  may_be_exported: bool = True,
) -> workdir.Workdir:
  """A work folder, or an exported one, that was begun with these settings.

  Raises:
    workdir.WorkdirError: there is none, or one that will not do.
  """
  config_lib.validate(config)
  parallel.prepare_jax(config)
  place = workdir.Workdir(folder)
  if not place.exists:
    raise workdir.WorkdirError(
      f'{place.folder}: no config.json: expected a folder that training wrote'
    )
  if export.is_export(folder) and not may_be_exported:
    raise workdir.WorkdirError(
      f'{place.folder}: an exported model, which stays as it is: expected the '
      'work folder that it came from'
    )
  place.check_config(config)
  return place


# What makes a folder a run or an exported model, besides its arrays.
_OWN_FILES = (
  'config.json',
  'data.npz',
  'metrics.jsonl',
  'results.json',
  'results_valid.json',
  'vocabulary.json',
  checksums.NAME,
)


def predict(
  config: ml_collections.ConfigDict,
  folder: str | os.PathLike[str],
  options: flags.Options = flags.DEFAULTS,
) -> None:
  """Answers questions, line by line, with the model of a folder."""
  trained_folder(config, folder)
  _check_nothing_is_lost(options, folder)
  lines = _lines(config, options)
  asked, without = answer_lines.answer(
    load.load(folder),
    lines,
    options.output,
    form=options.format,
    top=options.top,
    restriction=known_facts.Restriction(
      new_only=options.new_only,
      exclude_own=options.exclude_own,
      type_matching=options.type_matching,
    ),
  )
  _report(f'{_count(asked, "question")} asked', options, lines, without)


def embed(
  config: ml_collections.ConfigDict,
  folder: str | os.PathLike[str],
  options: flags.Options = flags.DEFAULTS,
) -> None:
  """Writes embeddings, contextual ones of sequences or the static ones."""
  trained_folder(config, folder)
  _check_output(options, 'an .npz file, or a folder for the projector')
  _check_nothing_is_lost(options, folder)
  model = load.load(folder)
  lines = _lines(config, options)
  if options.static:
    static = model.embed_elements()
    static.save(options.output)
    _report(f'{_count(len(static.labels), "element")} embedded', options, lines)
    return
  layer = None if options.layer == -1 else options.layer
  count = answer_lines.embed(model, lines, options.output, layer)
  _report(f'{_count(count, "sequence")} embedded', options, lines)


def write_export(
  config: ml_collections.ConfigDict,
  folder: str | os.PathLike[str],
  options: flags.Options = flags.DEFAULTS,
) -> None:
  """Writes the model of a work folder as a folder of safetensors and JSON."""
  trained_folder(config, folder, may_be_exported=False)
  _check_output(options, 'a folder that is not there yet')
  step = export.write(folder, options.output)
  print(f'checkpoint of step {step:,} written to {options.output}')


def plot(
  config: ml_collections.ConfigDict,
  folder: str | os.PathLike[str],
  options: flags.Options = flags.DEFAULTS,
) -> None:
  """Draws a folder's curves and ranks, and the maps that are asked for."""
  trained_folder(config, folder)
  _check_output(options, 'a folder for the pictures')
  model = None
  relations: tuple[str, ...] = ()
  if options.entity or options.relation:
    model = load.load(folder)
  if model and options.relation in model.data.vocabulary.relation_ids:
    relations = (options.relation,)
  elif options.relation:
    relations = tuple(options.relation.split(','))
  written = draw.draw(
    folder,
    options.output,
    entity=options.entity or None,
    relations=relations,
    names=options.names or None,
    model=model,
  )
  print('\n'.join(map(str, written)))


def _lines(
  config: ml_collections.ConfigDict, options: flags.Options
) -> input_lines.Lines:
  """The input: head first, tail last, the delimiters those of the data's files.

  Raises:
    text_files.DataError: there is no such file.
  """
  if options.input != flags.STANDARD and not os.path.exists(options.input):
    raise text_files.DataError(
      f'{options.input}: no such file: expected --input'
    )
  settings = config.data
  joint = '' if settings.kind == 'triples' else settings.relation_delimiter
  return input_lines.Lines(
    options.input,
    input_lines.LineFormat(settings.delimiter, joint),
    skip_bad=options.on_bad_line == 'skip',
  )


def _check_output(options: flags.Options, expected: str) -> None:
  if options.output in ('', flags.STANDARD):
    raise config_lib.ConfigError(f'no --output: expected {expected}')


def _check_nothing_is_lost(
  options: flags.Options, folder: str | os.PathLike[str]
) -> None:
  """Holds --output off the questions and off the model's own files.

  Raises:
    config.ConfigError: it would replace one of them.
  """
  if not os.path.isfile(options.output):
    return
  kept = {options.input: 'the --input'}
  for name in os.listdir(folder):
    if name in _OWN_FILES or name.endswith('.safetensors'):
      kept[os.path.join(folder, name)] = f'a file of {folder}'
  for path, what in kept.items():
    if os.path.isfile(path) and os.path.samefile(path, options.output):
      raise config_lib.ConfigError(
        f'--output={options.output} is {what}: expected another file'
      )


def _report(
  done: str,
  options: flags.Options,
  lines: input_lines.Lines,
  without: int = 0,
) -> None:
  """Says on standard error what came of an input."""
  parts = [done]
  if lines.skipped:
    parts.append(f'{_count(lines.skipped, "bad line")} skipped')
  if without:
    parts.append(f'{without:,} without an answer')
  if options.output != flags.STANDARD:
    parts.append(f'written to {options.output}')
  print('; '.join(parts), file=sys.stderr)


def _count(number: int, what: str) -> str:
  """A number of things in words, such as `1 line` or `2,000 lines`."""
  return f'{number:,} {what}' + ('' if number == 1 else 's')


MODES = {
  'train': run.train_and_evaluate,
  'evaluate': evaluate,
  'predict': predict,
  'embed': embed,
  'export': write_export,
  'plot': plot,
  'sample-paths': sample_paths,
}
