"""The options of all readers of triples."""

import dataclasses

from coke_jax.data import argument_checks, text_files

FORMATS = ('csv', 'tsv', 'jsonl', 'parquet', 'rdf', 'openke')
HEADERS = ('auto', 'yes', 'no')
LITERALS = ('skip', 'keep')
BAD_ROWS = ('stop', 'skip')


@dataclasses.dataclass(frozen=True)
class Options:
  r"""Options for reading rows.

  Attributes:
    format: one of FORMATS. Default: chosen by the file name.
    columns: the columns of head, relation and tail, as names or as positions
      from '1'. Default: the columns with usual names, such as `head relation
      tail` or `subject predicate object`. If no columns have such names, the
      file must have exactly three columns besides the weight.
    delimiter: the text between two columns of csv and tsv. Default: a comma for
      csv, a tab for tsv.
    quote: the quote character of csv and tsv, or 'none'. Default: `"` for csv,
      'none' for tsv.
    header: whether the first line of csv and tsv contains the names of the
      columns: 'yes', 'no' or 'auto'. 'auto' means yes if `columns` or `weight`
      contains a name, or if the line contains usual names such as `head`,
      `relation` and `tail`. For arrays and iterables, 'auto' means no.
    weight: the column of the weight, as a name or a position. Default: the rows
      have no weight.
    min_weight: rows with a smaller weight are left out.
    literals: 'skip' leaves out RDF triples whose tail is a literal, such as a
      text or a number. 'keep' reads the literal as a label in the notation of
      N-Triples.
    on_bad_line: what happens to a row that cannot be read exactly. 'stop'
      raises an error, and 'skip' leaves the row out.
    escape_labels: whether tabs, line breaks and backslashes in labels are
      replaced by `\t`, `\n`, `\r` and `\\`. Default: backslashes are not
      changed, and tabs and line breaks raise an error.

  Raises:
    text_files.DataError: an option is not valid.
  """

  format: str = ''
  columns: tuple[str, ...] = ()
  delimiter: str = ''
  quote: str = ''
  header: str = 'auto'
  weight: str = ''
  min_weight: float = 0.0
  literals: str = 'skip'
  on_bad_line: str = 'stop'
  escape_labels: bool = False

  def __post_init__(self) -> None:
    for field in ('delimiter', 'quote', 'weight'):
      argument_checks.check_text(field, getattr(self, field))
    argument_checks.check_number('min_weight', self.min_weight)
    argument_checks.check_truth('escape_labels', self.escape_labels)
    for field, choices in (
      ('format', ('', *FORMATS)),
      ('header', HEADERS),
      ('literals', LITERALS),
      ('on_bad_line', BAD_ROWS),
    ):
      if getattr(self, field) not in choices:
        raise text_files.DataError(
          f'{field} is {getattr(self, field)!r}: expected one of '
          f'{", ".join(filter(None, choices))}'
        )
    wanted = (*self.columns, *filter(None, [self.weight]))
    if len(self.columns) not in (0, 3) or len(set(wanted)) < len(wanted):
      raise text_files.DataError(
        f'columns are {self.columns} and weight is {self.weight!r}: expected '
        'three different columns for head, relation and tail, and another one '
        'for the weight'
      )
    if self.min_weight and not self.weight:
      raise text_files.DataError(
        f'min_weight is {self.min_weight:g} and weight is empty: expected '
        'weight to name a column'
      )
    if any(character in self.delimiter for character in '\r\n'):
      raise text_files.DataError(
        f'delimiter is {self.delimiter!r}: expected no line end'
      )
    if self.quote != 'none' and len(self.quote) > 1:
      raise text_files.DataError(
        f"quote is {self.quote!r}: expected one character or 'none'"
      )
