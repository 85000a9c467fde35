"""The flags that only `coke prepare` uses."""

from coke_jax.cli import flag_types
from coke_jax.data import reading, splitting
from coke_jax.data.formats import options

_MODES = ('prepare',)

TABLE = (
  flag_types.Flag(
    'input_format',
    _MODES,
    'auto',
    'Format of --input. auto: chosen by the extension of the file.',
    ('auto', *options.FORMATS),
  ),
  flag_types.Flag(
    'columns',
    _MODES,
    '',
    'Columns of head, relation and tail, separated by commas: names such as '
    'subject,predicate,object, or positions such as 1,3,2. Other columns are '
    'not read. Default: the columns with usual names. If no columns have such '
    'names, the file must have exactly three columns besides --weight.',
  ),
  flag_types.Flag(
    'column_delimiter',
    _MODES,
    '',
    r'Text between two columns of CSV and TSV files; \t is a tab. Default: a '
    'comma for .csv, a tab for .tsv and .txt.',
  ),
  flag_types.Flag(
    'quote',
    _MODES,
    '',
    'Quote character of CSV and TSV files, or the word "none" if they have no '
    'quotes. Default: \'"\' for .csv, "none" for .tsv and .txt.',
  ),
  flag_types.Flag(
    'header',
    _MODES,
    'auto',
    'Whether the first line of CSV and TSV files contains the names of the '
    'columns. auto: yes if --columns or --weight contains a name, or if the '
    'line contains usual names such as head, relation and tail.',
    options.HEADERS,
  ),
  flag_types.Flag(
    'weight',
    _MODES,
    '',
    'Column with the weight of each row, by name or by position.',
  ),
  flag_types.Flag(
    'min_weight', _MODES, 0.0, 'Leave out rows with a smaller --weight.'
  ),
  flag_types.Flag(
    'literals',
    _MODES,
    'skip',
    'RDF triples whose tail is a literal, such as a text or a number. skip: '
    'leave them out. keep: use the literal as a label, in the notation of '
    'N-Triples.',
    options.LITERALS,
  ),
  flag_types.Flag(
    'duplicates',
    _MODES,
    'drop',
    'Repeated triples in a file. drop: use only the first one. keep: use all.',
    reading.DUPLICATES,
  ),
  flag_types.Flag(
    'escape_labels',
    _MODES,
    False,
    r'Write tabs, line breaks and backslashes in labels as \t, \n, \r and \\. '
    'By default, a tab or line break in a label raises an error.',
  ),
  flag_types.Flag(
    'valid_share', _MODES, 0.05, 'Share of the triples for the valid split.'
  ),
  flag_types.Flag(
    'test_share', _MODES, 0.05, 'Share of the triples for the test split.'
  ),
  flag_types.Flag('seed', _MODES, 0, 'Seed of the random split.'),
  flag_types.Flag(
    'keep_together',
    _MODES,
    'symmetric',
    'Triples that are always in the same split. symmetric: "a r b" and "b r '
    'a". pairs: all triples between the same two entities.',
    splitting.TOGETHER,
  ),
  flag_types.Flag(
    'overwrite',
    _MODES,
    False,
    'Replace the files of an earlier preparation in --output.',
  ),
  flag_types.Flag(
    'report',
    _MODES,
    '',
    'JSON file for the report: the numbers of rows, and the leaks between '
    'splits. The report is also printed, and written to report.json in '
    '--output.',
    is_path=True,
  ),
)
