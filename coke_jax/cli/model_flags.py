"""The command-line flags that only commands with a trained model use."""

from coke_jax.cli import flag_types

# The value of --layer for the output of the last block.
END = -1

TABLE = (
  flag_types.Flag(
    'per_head',
    ('discover',),
    0,
    'Maximum number of new facts with the same head. 0: no limit.',
  ),
  flag_types.Flag(
    'any_type',
    ('discover',),
    False,
    'Also try heads that are not known heads of the relation, and tails that '
    'are not known tails of the relation.',
  ),
  flag_types.Flag(
    'splits',
    ('discover', 'audit'),
    'train,valid,test',
    '',
    notes={
      ('discover',): 'Splits whose facts count as known, separated by commas. '
      'Facts of train always count as known.',
      ('audit',): 'Splits whose facts are audited, separated by commas.',
    },
  ),
  flag_types.Flag(
    'folds',
    ('audit',),
    0,
    'Number of models to train, each without a part of the facts. A fact is '
    'scored with the model that was trained without it. Only facts of very '
    'rare entities and relations are scored with the model of the run. 0: the '
    'model of the run scores all facts.',
  ),
  flag_types.Flag(
    'new_only',
    ('predict', 'relations'),
    False,
    'Leave out answers that complete a fact of the train, valid or test split.',
  ),
  flag_types.Flag(
    'exclude_own',
    ('predict',),
    False,
    'Leave out the entity that the question contains.',
  ),
  flag_types.Flag(
    'type_matching',
    ('predict', 'similar'),
    False,
    '',
    notes={
      ('predict',): 'Only give known tails of the relation before "?", or '
      'known heads of the relation after "?".',
      ('similar',): 'Only give known heads (or with --side=tail, known tails) '
      'of --relation.',
    },
  ),
  flag_types.Flag(
    'side',
    ('similar',),
    'head',
    'Side of the entities in the sequences with --relation: head for "Kenya '
    'borders ?", tail for "? borders Kenya".',
    ('head', 'tail'),
  ),
  flag_types.Flag(
    'layer',
    ('embed',),
    END,
    'Write the hidden states after this many Transformer blocks. 0: the input '
    'embeddings. -1: the output of the last block.',
  ),
  flag_types.Flag(
    'static',
    ('embed',),
    False,
    'Write the static embeddings of all entities and relations, which are the '
    'input of the Transformer. Does not read --input.',
  ),
  flag_types.Flag(
    'entity',
    ('similar', 'plot', 'report'),
    '',
    '',
    notes={
      ('similar',): 'The entity to compare with.',
      ('plot',): 'Also draw a map of the contextual embeddings of this entity. '
      'The map has one point for each training triple that contains the '
      'entity.',
      ('report',): 'Entity for which a map is drawn. Default: an entity '
      'with many training triples.',
    },
  ),
  flag_types.Flag(
    'relation',
    ('discover', 'audit', 'similar', 'plot', 'report'),
    '',
    '',
    notes={
      ('discover', 'audit'): 'Limit the search to facts of this relation, or '
      'of several relations separated by commas.',
      ('similar',): 'Compare contextual embeddings in sequences with this '
      'relation.',
      ('plot',): 'Also draw a map of the contextual embeddings of this '
      'relation, or of two relations separated by a comma. The map has one '
      'point for each training triple with one of these relations.',
      ('report',): 'Relation for which a map is drawn, or two relations '
      'separated by a comma. Default: a relation with many training triples.',
    },
  ),
  flag_types.Flag(
    'names',
    ('plot', 'report'),
    '',
    'File with "label TAB name" on each line.',
    notes={
      ('plot',): 'The names replace the labels in legends.',
      ('report',): 'The names replace the labels.',
    },
    is_path=True,
  ),
)
