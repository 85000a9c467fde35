r"""Makes a graph of software packages from the package index of Debian.

    apt-cache dumpavail > index.txt
    python -m experiments.make_packages index.txt --core=17 \
      --output=packages.csv
    coke train packages.csv --minutes=5

Each row of the CSV file has a package, a field and a value. The value is
another package (fields such as `depends`), a property of the package (fields
such as `section`) or a tag. Rare packages and values are left out: every entity
is in at least --core rows.
"""

import argparse
import collections
import csv
import email.message
import email.parser
import pathlib
import re
from collections.abc import Iterable, Iterator

Triple = tuple[str, str, str]

# Fields with lists of other packages.
_PACKAGES = (
  'Depends',
  'Pre-Depends',
  'Recommends',
  'Suggests',
  'Enhances',
  'Provides',
  'Replaces',
  'Breaks',
  'Conflicts',
)
# Fields with a single value. The value in the graph starts with this prefix, so
# that a section and a package with the same name are two entities.
_PROPERTIES = {
  'Section': 'section:',
  'Priority': 'priority:',
  'Maintainer': '',
  'Source': 'source:',
  'Architecture': 'arch:',
  'Multi-Arch': 'multiarch:',
}
# Kinds of tags. Each kind is a field of the graph.
_FACETS = (
  'admin',
  'culture',
  'devel',
  'field',
  'game',
  'hardware',
  'implemented-in',
  'interface',
  'made-of',
  'network',
  'protocol',
  'role',
  'scope',
  'suite',
  'uitoolkit',
  'use',
  'works-with',
)


def read(text: str) -> set[Triple]:
  """Reads the paragraphs of a package index.

  Returns:
    Triples (package, field, value). Packages outside the index are not values.
    A package is never its own value.
  """
  parser = email.parser.HeaderParser()
  index = [parser.parsestr(part) for part in text.split('\n\n') if part.strip()]
  names = {one['Package'] for one in index}
  found = {
    (one['Package'], field, value)
    for one in index
    for field, value in _values(one, names)
  }
  return {triple for triple in found if triple[0] != triple[2]}


def _values(
  fields: email.message.Message, names: set[str]
) -> Iterator[tuple[str, str]]:
  """Yields the fields and values of a package. `names` has all packages."""
  for name in _PACKAGES:
    for alternatives in fields.get(name, '').split(','):
      # Keep the first alternative, without version and architecture.
      other = re.split(r'[\s(:|]', alternatives.strip())[0]
      if other in names:
        yield name.lower().replace('-', '_'), other
  for name, prefix in _PROPERTIES.items():
    # Remove versions and mail addresses.
    value = re.sub(r'\s*[(<].*', '', fields.get(name, ''), flags=re.DOTALL)
    if value:
      yield name.lower().replace('-', '_'), prefix + value
  for tag in re.split(r',\s*', fields.get('Tag', '')):
    facet, _, value = tag.partition('::')
    if facet in _FACETS and value and '{' not in tag:
      yield facet.replace('-', '_'), tag


def core(triples: Iterable[Triple], least: int) -> set[Triple]:
  """Repeatedly removes entities with fewer than `least` triples."""
  kept = set(triples)
  while True:
    count = collections.Counter(
      entity for head, _, tail in kept for entity in (head, tail)
    )
    rare = {
      triple
      for triple in kept
      if min(count[triple[0]], count[triple[2]]) < least
    }
    if not rare:
      return kept
    kept -= rare


def main() -> None:
  """Writes the CSV file and prints the size of the graph."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawTextHelpFormatter
  )
  parser.add_argument('index', type=pathlib.Path)
  parser.add_argument('--core', type=int, default=1)
  parser.add_argument('--output', type=pathlib.Path, required=True)
  given = parser.parse_args()
  triples = core(read(given.index.read_text(encoding='utf-8')), given.core)
  with given.output.open('w', newline='', encoding='utf-8') as file:
    writer = csv.writer(file)
    writer.writerow(['head', 'relation', 'tail'])
    writer.writerows(sorted(triples))
  entities = {entity for head, _, tail in triples for entity in (head, tail)}
  relations = {relation for _, relation, _ in triples}
  print(
    f'{len(triples):,} triples, {len(entities):,} entities, '
    f'{len(relations)} relations'
  )


if __name__ == '__main__':
  main()
