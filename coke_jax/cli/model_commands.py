"""Commands that use a trained model: evaluate, predict, embed, export, plot.

Every function takes the settings and the path of a work folder. `predict`,
`embed` and `plot` also accept an exported model. Each keyword argument is the
flag of the same name in `flags.TABLE`.
"""

import os

import ml_collections

from coke_jax import config as config_lib
from coke_jax import hosts
from coke_jax.cli import (
  answer_lines,
  arguments,
  checks,
  host_flags,
  input_lines,
  model_flags,
  output_lines,
)
from coke_jax.plots import draw
from coke_jax.predict import export as export_lib
from coke_jax.predict import known_facts, load
from coke_jax.training import run


def evaluate(
  config: ml_collections.ConfigDict | None,
  workdir: str | os.PathLike[str],
  *,
  split: str,
  coordinator: str = '',
  num_processes: int = 0,
  process_id: int = -1,
) -> None:
  """Evaluates the best checkpoint on a split and writes the results.

  Of several processes, only process 0 needs `config`.
  """
  with host_flags.joined(coordinator, num_processes, process_id):
    if not hosts.is_main():
      run.evaluate(None, '.', split)
      return
    if config is None:
      raise config_lib.ConfigError(
        arguments.missing_config(os.fspath(workdir), '')
      )
    checks.trained_workdir(config, workdir, may_be_exported=False)
    run.evaluate(config, workdir, split)


def predict(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike[str],
  *,
  input: str,
  delimiter: str,
  output: str,
  format: str,
  top: int,
  new_only: bool,
  exclude_own: bool,
  type_matching: bool,
  on_bad_line: str,
) -> None:
  """Answers the questions of a file, or of standard input."""
  checks.trained_workdir(config, workdir)
  checks.protect_files(output, input, workdir)
  lines = input_lines.from_config(
    config, input, delimiter=delimiter, skip_bad=on_bad_line == 'skip'
  )
  answered, without_answer = answer_lines.answer(
    load.load(workdir),
    lines,
    output,
    format=format,
    top=top,
    restriction=known_facts.Restriction(
      new_only=new_only,
      exclude_own=exclude_own,
      type_matching=type_matching,
    ),
  )
  done = [f'answered {output_lines.count(answered, "question")}']
  if without_answer:
    done.append(f'no answer to {without_answer:,} of them')
  output_lines.report(done, lines.skipped, output)


def embed(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike[str],
  *,
  input: str,
  delimiter: str,
  output: str,
  on_bad_line: str,
  layer: int,
  static: bool,
) -> None:
  """Writes contextual embeddings of sequences, or the static embeddings."""
  checks.trained_workdir(config, workdir)
  checks.require_output(output, 'an .npz file, or a folder for the projector')
  checks.protect_files(output, input, workdir)
  model = load.load(workdir)
  if static:
    embeddings = model.embed_elements()
    embeddings.save(output)
    count = len(embeddings.labels)
    output_lines.report(
      [f'embedded {count:,} entities and relations'], 0, output
    )
    return
  lines = input_lines.from_config(
    config, input, delimiter=delimiter, skip_bad=on_bad_line == 'skip'
  )
  embedded = answer_lines.embed(
    model, lines, output, None if layer == model_flags.END else layer
  )
  done = [f'embedded {output_lines.count(embedded, "sequence")}']
  output_lines.report(done, lines.skipped, output)


def export(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike[str],
  *,
  output: str,
) -> None:
  """Writes the best checkpoint as a folder of safetensors and JSON files."""
  checks.trained_workdir(config, workdir, may_be_exported=False)
  checks.require_output(output, 'a new folder')
  step = export_lib.write(workdir, output)
  print(f'checkpoint of step {step:,} written to {output}')


def plot(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike[str],
  *,
  output: str,
  entity: str,
  relation: str,
  names: str,
) -> None:
  """Draws training curves, metrics, and maps of an entity or of relations."""
  checks.trained_workdir(config, workdir)
  checks.require_output(output, 'a folder for the pictures')
  model = load.load(workdir) if entity or relation else None
  relations = None
  if model:
    relations = checks.split_relations(model.data.vocabulary, relation)
  written = draw.draw(
    workdir,
    output,
    entity=entity or None,
    relations=relations or (),
    names=names or None,
    model=model,
  )
  print('\n'.join(map(str, written)))
