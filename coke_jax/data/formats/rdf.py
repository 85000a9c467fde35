"""Reads N-Triples, N-Quads, Turtle, TriG and RDF/XML with pyoxigraph."""

import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from coke_jax.data import compression, text_files
from coke_jax.data.formats import extras
from coke_jax.data.formats import options as options_lib
from coke_jax.data.formats import rows as rows_lib

# Maps the extension of a file to the name of the format in pyoxigraph.
SYNTAXES = {
  '.nt': 'N_TRIPLES',
  '.nq': 'N_QUADS',
  '.ttl': 'TURTLE',
  '.trig': 'TRIG',
  '.rdf': 'RDF_XML',
  '.owl': 'RDF_XML',
}
_ANONYMOUS = re.compile('[0-9a-f]{25,32}')


def read(
  path: pathlib.Path, syntax: str, options: options_lib.Options
) -> rows_lib.Source:
  """Opens a file of RDF.

  The label of a resource is its IRI without angle brackets. The label of a
  blank node is `_:` followed by its name. Blank nodes without a name are
  numbered: `_:[1]`, `_:[2]` and so on. Literals that are kept have the notation
  of N-Triples, such as `"Zürich"@de`. All named graphs are read as one graph.

  Args:
    path: the file, which may be compressed.
    syntax: one of the extensions in SYNTAXES.
    options: the options. `columns` and `weight` must be empty.

  Returns:
    The rows, numbered from 1. Iterating over them raises `text_files.DataError`
    if the file cannot be read.

  Raises:
    text_files.DataError: pyoxigraph is not installed, or `columns` or `weight`
      is set.
  """
  if options.columns or options.weight:
    raise text_files.DataError(
      f'{path}: RDF has no columns: expected no `columns` and no `weight`'
    )
  log = rows_lib.RowLog(str(path), options.on_bad_line == 'skip', ', triple ')
  library = extras.load('pyoxigraph', path)
  return rows_lib.Source(_rows(library, path, syntax, options, log), log)


def _rows(
  library: Any,
  path: pathlib.Path,
  syntax: str,
  options: options_lib.Options,
  log: rows_lib.RowLog,
) -> Iterator[tuple[int, Sequence[Any]]]:
  # In N-Triples and N-Quads, all blank nodes have names.
  anonymous: dict[str, int] | None = None if syntax in ('.nt', '.nq') else {}
  number = 0
  try:
    stream = compression.open_file(path)
  except OSError as error:
    raise text_files.DataError(f'{path}: cannot be opened: {error}') from error
  try:
    with stream:
      triples = library.parse(
        input=stream, format=getattr(library.RdfFormat, SYNTAXES[syntax])
      )
      for triple in triples:
        number += 1
        if isinstance(triple.object, library.Literal):
          if options.literals == 'skip':
            log.rows += 1
            log.leave_out(number, 'literal as tail')
            continue
          tail = str(triple.object)
        else:
          tail = _label(library, triple.object, anonymous)
        head = _label(library, triple.subject, anonymous)
        yield number, (head, triple.predicate.value, tail)
  except SyntaxError as error:
    raise text_files.DataError(
      f'{path}:{error.lineno}: {error.msg}: expected valid RDF '
      f'({SYNTAXES[syntax].replace("_", "-")})'
    ) from error
  except text_files.DataError:
    raise
  except (*compression.ERRORS, ValueError) as error:
    raise text_files.DataError(
      f'{path}: cannot be read after triple {number}: {error}'
    ) from error


def _label(library: Any, node: Any, anonymous: dict[str, int] | None) -> str:
  """Returns the label of an IRI, a blank node or a quoted triple.

  Args:
    library: pyoxigraph.
    node: the node.
    anonymous: a dict that numbers the blank nodes which have no name in the
      file. Its keys are random names that pyoxigraph chooses. New nodes are
      added. None if all blank nodes of the file have names.
  """
  if isinstance(node, library.NamedNode):
    return str(node.value)
  if isinstance(node, library.BlankNode):
    if anonymous is not None and _ANONYMOUS.fullmatch(node.value):
      return f'_:[{anonymous.setdefault(node.value, len(anonymous) + 1)}]'
    return f'_:{node.value}'
  return str(node)
