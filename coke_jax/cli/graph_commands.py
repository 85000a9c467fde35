"""Commands that ask a trained model about a whole graph: discover and audit.

Every function takes the settings and the path of a work folder or of an
exported model. Each keyword argument is the value of the flag with the same
name, which `flags.TABLE` describes.
"""

import os
from typing import Any

import ml_collections

from coke_jax.cli import checks, output_lines
from coke_jax.predict import load
from coke_jax.predict import model as model_lib


def discover(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike[str],
  *,
  output: str,
  format: str,
  top: int,
  relation: str,
  per_head: int,
  splits: str,
  any_type: bool,
) -> None:
  """Writes the most plausible facts that are not known."""
  model = _load(config, workdir, output)
  found = model.discover(
    split_relations(model, relation),
    top=top,
    per_head=per_head or None,
    splits=splits.split(','),
    type_matching=not any_type,
    progress=True,
  )
  number = output_lines.write_records(
    output,
    format,
    lambda record: {
      **_triple(record.fact),
      'score': record.score,
      'probability': record.probability,
      'known_tails': record.known_tails,
    },
    ('head', 'relation', 'tail', 'score', 'probability', 'known_tails'),
    [(None, record) for record in found],
    model.data.vocabulary,
  )
  _report(f'found {output_lines.count(number, "new fact")}', output)


def audit(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike[str],
  *,
  output: str,
  format: str,
  top: int,
  relation: str,
  splits: str,
) -> None:
  """Writes the known facts that the model considers least plausible."""
  model = _load(config, workdir, output)
  found = model.audit(
    split_relations(model, relation),
    top=top,
    splits=splits.split(','),
    progress=True,
  )
  names = (
    'tail_rank',
    'head_rank',
    'expected_tails',
    'expected_heads',
    'known_in',
  )
  number = output_lines.write_records(
    output,
    format,
    lambda record: {
      **_triple(record.fact),
      'score': record.score,
      **{name: getattr(record, name) for name in names},
    },
    ('head', 'relation', 'tail', 'score', *names),
    [(None, record) for record in found],
    model.data.vocabulary,
  )
  _report(f'found {output_lines.count(number, "fact")}', output)


def split_relations(model: model_lib.Model, relation: str) -> list[str] | None:
  """Returns the relations of a flag, or None if it is empty.

  The label of a relation may contain a comma.
  """
  if not relation:
    return None
  if relation in model.data.vocabulary.relation_ids:
    return [relation]
  return relation.split(',')


def _load(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike[str],
  output: str,
) -> model_lib.Model:
  """Loads the model after checking the work folder and --output."""
  checks.trained_workdir(config, workdir)
  checks.protect_files(output, '', workdir)
  return load.load(workdir)


def _triple(fact: tuple[str, ...]) -> dict[str, Any]:
  return dict(zip(('head', 'relation', 'tail'), fact, strict=True))


def _report(done: str, output: str) -> None:
  output_lines.report([done], 0, output)
