"""Finds signs that a data set was not read as its author intended.

Each sign also occurs in valid data, so it only causes a warning.
"""

from collections.abc import Iterable

from coke_jax.data import arrays, graph, text_files

_SAMPLE_TRIPLES = 3  # number of training triples in a warning
# A warning about labels that are both an entity and a relation needs at least
# this many such labels.
_MIN_SHARED = 3
# A warning about too many relations needs at least this many training triples.
# Smaller graphs often have few triples for each relation.
_MIN_TRIPLES = 30
# The labels of special tokens in `vocabulary.Vocabulary.token_labels`.
_SPECIAL = ('[MASK]', '[PAD]')
_UNKNOWN = '?'  # This text stands for the unknown entity of a question.


def warnings(
  data: arrays.DataSet, *, relation_delimiter: str = ''
) -> list[str]:
  """Describes suspicious labels and columns of a data set.

  Args:
    data: the data set.
    relation_delimiter: the text between two relations of a path. Default:
      empty, for data without paths.

  Returns:
    One text for each kind of sign, with examples and what was expected.
  """
  found = []
  if order := _order_of_columns(data):
    found.append(order)
  entities, relations = data.vocabulary.entities, data.vocabulary.relations
  if _UNKNOWN in data.vocabulary.entity_ids:
    found.append(
      f'{_UNKNOWN!r} is the label of an entity. In questions, {_UNKNOWN!r} '
      'stands for the unknown entity, so no question or fact can contain this '
      'entity: expected another label'
    )
  for name, labels in (('entity', entities), ('relation', relations)):
    if special := [label for label in _SPECIAL if label in labels]:
      found.append(
        f'{name} labels {_shown(special)}: special tokens have the same labels '
        'in files of embeddings: expected other labels'
      )
    if split := [label for label in labels if '\t' in label or '\r' in label]:
      found.append(
        f'{name} labels with a tab or carriage return: {_shown(split)}: '
        'expected --delimiter in questions, and --format=jsonl for answers'
      )
  delimited = [
    label
    for label in relations
    if relation_delimiter and relation_delimiter in label
  ]
  if delimited:
    found.append(
      f'relation labels with {relation_delimiter!r}, which separates the '
      f'relations of a path: {_shown(delimited)}: expected another '
      'data.relation_delimiter'
    )
  return found


def _order_of_columns(data: arrays.DataSet) -> str:
  """Returns a warning if the columns may be in another order, otherwise ''."""
  vocabulary = data.vocabulary
  number = vocabulary.num_relations
  shared = len(vocabulary.entity_ids.keys() & vocabulary.relation_ids.keys())
  signs = []
  if shared >= max(_MIN_SHARED, number / 4):
    signs.append(f'{shared:,} of {number:,} relations are also entities')
  triples = data.train if isinstance(data, graph.KnowledgeGraph) else None
  if triples is not None and _MIN_TRIPLES <= len(triples) <= 2 * number:
    signs.append(
      f'there are {number:,} relations in {len(triples):,} training triples'
    )
  if not signs:
    return ''
  if triples is None:
    return f'{" and ".join(signs)}: expected lines of source, path and target'
  sample = '\n'.join(
    f'  head {text_files.show_line(vocabulary.entities[head])}, '
    f'relation {text_files.show_line(vocabulary.relations[relation])}, '
    f'tail {text_files.show_line(vocabulary.entities[tail])}'
    for head, relation, tail in triples[:_SAMPLE_TRIPLES].tolist()
  )
  return (
    f'{" and ".join(signs)}: expected the order of the columns in '
    'data.columns of the config, or in --columns of coke prepare (in Python: '
    f'columns). The first triples were read as\n{sample}'
  )


def _shown(labels: Iterable[str], most: int = 3) -> str:
  listed = list(labels)
  more = len(listed) - most
  text = ', '.join(map(text_files.show_line, listed[:most]))
  return f'{text} and {more:,} more' if more > 0 else text
