"""The commands `similar`, `relations` and `explain`.

Every function takes the settings and the path of a work folder or of an
exported model. Each keyword argument is the flag of the same name in
`flags.TABLE`.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any

import ml_collections

from coke_jax import config as config_lib
from coke_jax.cli import (
  checks,
  graph_commands,
  input_lines,
  output_lines,
  streams,
)
from coke_jax.predict import model as model_lib
from coke_jax.predict import questions, validation
from coke_jax.predict.jobs import explain as explain_lib


def similar(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike[str],
  *,
  output: str,
  format: str,
  top: int,
  type_matching: bool,
  entity: str,
  relation: str,
  side: str,
) -> None:
  """Writes the entities with the embeddings nearest to one entity."""
  if not entity:
    raise config_lib.ConfigError('no --entity: expected the label of an entity')
  model = graph_commands.load_model(config, workdir, output)
  found = model.similar(
    entity,
    relation=relation or None,
    side=side,
    top=top,
    type_matching=type_matching,
  )
  names = ('rank', 'label', 'similarity')
  number = output_lines.write_records(
    output,
    format,
    lambda record: {name: getattr(record, name) for name in names},
    names,
    [({}, record) for record in found],
    model.data.vocabulary,
  )
  noun = 'similar entity' if number == 1 else 'similar entities'
  output_lines.report([f'found {number:,} {noun}'], 0, output)


def relations(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike[str],
  *,
  input: str,
  delimiter: str,
  output: str,
  format: str,
  top: int,
  new_only: bool,
  on_bad_line: str,
) -> None:
  """Writes the most plausible relations between pairs of entities."""
  checks.protect_files(output, input, workdir)
  model = graph_commands.load_model(config, workdir, output)
  lines = input_lines.from_config(
    config, input, delimiter=delimiter, skip_bad=on_bad_line == 'skip'
  )

  def parse(labels: list[str], *, hints: bool) -> tuple[str, str]:
    if not model.parser.is_about_relation(labels):
      raise questions.QuestionError(
        f'{validation.short_labels(labels)}: expected a head, '
        f'{questions.UNKNOWN!r} and a tail'
      )
    for label in (labels[0], labels[2]):
      model.parser.entity(label)
    return labels[0], labels[2]

  def answer(batch: list[Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    for number, _, (head, tail) in batch:
      about = {'line': number, 'head': head, 'tail': tail}
      for one in model.relations(head, tail, top=top, new_only=new_only):
        yield about, one

  names = ('rank', 'score', 'probability', 'known_in')
  output_lines.write_records(
    output,
    format,
    lambda record: {
      'relation': record.label,
      **{name: getattr(record, name) for name in names},
    },
    ('line', 'head', 'relation', 'tail', *names),
    _answered(lines, model, parse, answer, output),
    model.data.vocabulary,
  )
  answered = output_lines.count(lines.read - lines.skipped, 'question')
  output_lines.report([f'answered {answered}'], lines.skipped, output)


def explain(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike[str],
  *,
  input: str,
  delimiter: str,
  output: str,
  format: str,
  top: int,
  on_bad_line: str,
) -> None:
  """Writes the known facts that support each fact of the input.

  In TSV, the column `kind` is `path` or `similar`. A fact without paths and
  without similar facts has one line of the kind `none`.
  """
  checks.protect_files(output, input, workdir)
  model = graph_commands.load_model(config, workdir, output)
  lines = input_lines.from_config(
    config, input, delimiter=delimiter, skip_bad=on_bad_line == 'skip'
  )

  def parse(labels: list[str], *, hints: bool) -> list[str]:
    model.base_fact(labels)
    return labels

  def answer(batch: list[Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    found = model.explain([labels for _, _, labels in batch], top=top)
    for (number, _, _), explanation in zip(batch, found, strict=True):
      if format == 'jsonl':
        yield {'line': number}, explanation
      else:
        yield from _rows(number, explanation)

  output_lines.write_records(
    output,
    format,
    lambda record: record,
    ('line', 'kind', 'rank', 'score', 'evidence'),
    _answered(lines, model, parse, answer, output),
    model.data.vocabulary,
  )
  explained = output_lines.count(lines.read - lines.skipped, 'fact')
  output_lines.report([f'explained {explained}'], lines.skipped, output)


def _rows(
  number: int, explanation: explain_lib.Explanation
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
  """Yields the rows of TSV for one explanation."""
  evidence: list[tuple[str, Any, str]] = [
    ('path', one.score, one.text) for one in explanation.paths
  ]
  evidence += [
    ('similar', one.similarity, ' '.join(one.fact))
    for one in explanation.similar
  ]
  rank: dict[str, int] = {}
  for kind, score, text in evidence or [('none', '', '')]:
    rank[kind] = rank.get(kind, 0) + 1
    yield (
      {'line': number},
      {'kind': kind, 'rank': rank[kind], 'score': score, 'evidence': text},
    )


def _answered(
  lines: input_lines.Lines,
  model: model_lib.Model,
  parse: Callable[..., Any],
  answer: Callable[[list[Any]], Iterator[tuple[dict[str, Any], Any]]],
  output: str,
) -> Iterator[tuple[dict[str, Any], Any]]:
  """Yields the answers to the lines of the input, batch by batch."""
  progress = '' if streams.on_terminal(output) else 'answering'
  for batch in lines.batches(
    parse, model.data.vocabulary.relation_ids, model.batch_size, progress
  ):
    yield from answer(batch)
