"""What a trained model is used for: each --mode that asks, keeps or draws."""

import os
import sys

import ml_collections

from coke_jax import (
  checksums,
  export,
  input_lines,
  loading,
  plots,
  run,
  streaming,
)
from coke_jax import config as config_lib
from coke_jax import options as options_lib
from coke_jax.data import files, known

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
  options: options_lib.Options = options_lib.DEFAULTS,
) -> None:
  """Answers questions, line by line, with the model of a folder."""
  run.trained_folder(config, folder)
  _check_nothing_is_lost(options, folder)
  lines = _lines(config, options)
  asked, without = streaming.answer(
    loading.load(folder),
    lines,
    options.output,
    form=options.format,
    top=options.top,
    restriction=known.Restriction(
      new_only=options.new_only,
      exclude_own=options.exclude_own,
      type_matching=options.type_matching,
    ),
  )
  _report(f'{_count(asked, "question")} asked', options, lines, without)


def embed(
  config: ml_collections.ConfigDict,
  folder: str | os.PathLike[str],
  options: options_lib.Options = options_lib.DEFAULTS,
) -> None:
  """Writes embeddings, contextual ones of sequences or the static ones."""
  run.trained_folder(config, folder)
  _check_output(options, 'an .npz file, or a folder for the projector')
  _check_nothing_is_lost(options, folder)
  model = loading.load(folder)
  lines = _lines(config, options)
  if options.static:
    static = model.embed_elements()
    static.save(options.output)
    _report(f'{_count(len(static.labels), "element")} embedded', options, lines)
    return
  layer = None if options.layer == -1 else options.layer
  count = streaming.embed(model, lines, options.output, layer)
  _report(f'{_count(count, "sequence")} embedded', options, lines)


def write_export(
  config: ml_collections.ConfigDict,
  folder: str | os.PathLike[str],
  options: options_lib.Options = options_lib.DEFAULTS,
) -> None:
  """Writes the model of a work folder as a folder of safetensors and JSON."""
  run.trained_folder(config, folder, may_be_exported=False)
  _check_output(options, 'a folder that is not there yet')
  step = export.write(folder, options.output)
  print(f'checkpoint of step {step:,} written to {options.output}')


def plot(
  config: ml_collections.ConfigDict,
  folder: str | os.PathLike[str],
  options: options_lib.Options = options_lib.DEFAULTS,
) -> None:
  """Draws a folder's curves and ranks, and the maps that are asked for."""
  run.trained_folder(config, folder)
  _check_output(options, 'a folder for the pictures')
  model = None
  relations: tuple[str, ...] = ()
  if options.entity or options.relation:
    model = loading.load(folder)
  if model and options.relation in model.data.vocabulary.relation_ids:
    relations = (options.relation,)
  elif options.relation:
    relations = tuple(options.relation.split(','))
  written = plots.draw(
    folder,
    options.output,
    entity=options.entity or None,
    relations=relations,
    names=options.names or None,
    model=model,
  )
  print('\n'.join(map(str, written)))


def _lines(
  config: ml_collections.ConfigDict, options: options_lib.Options
) -> input_lines.Lines:
  """The input: head first, tail last, the delimiters those of the data's files.

  Raises:
    files.DataError: there is no such file.
  """
  if options.input != options_lib.STANDARD and not os.path.exists(
    options.input
  ):
    raise files.DataError(f'{options.input}: no such file: expected --input')
  settings = config.data
  joint = '' if settings.kind == 'triples' else settings.relation_delimiter
  return input_lines.Lines(
    options.input,
    input_lines.LineFormat(settings.delimiter, joint),
    skip_bad=options.on_bad_line == 'skip',
  )


def _check_output(options: options_lib.Options, expected: str) -> None:
  if options.output in ('', options_lib.STANDARD):
    raise config_lib.ConfigError(f'no --output: expected {expected}')


def _check_nothing_is_lost(
  options: options_lib.Options, folder: str | os.PathLike[str]
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
  options: options_lib.Options,
  lines: input_lines.Lines,
  without: int = 0,
) -> None:
  """Says on standard error what came of an input."""
  parts = [done]
  if lines.skipped:
    parts.append(f'{_count(lines.skipped, "bad line")} skipped')
  if without:
    parts.append(f'{without:,} without an answer')
  if options.output != options_lib.STANDARD:
    parts.append(f'written to {options.output}')
  print('; '.join(parts), file=sys.stderr)


def _count(number: int, what: str) -> str:
  """A number of things in words, such as `1 line` or `2,000 lines`."""
  return f'{number:,} {what}' + ('' if number == 1 else 's')
