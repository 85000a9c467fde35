"""Writes the small graph of countries that ships with `coke_jax`.

    pip install countryinfo==1.0.1
    python -m experiments.make_countries

The facts are those of the MIT-licensed package `countryinfo`, which only this
script needs. The same version and the same seed give the same bytes. Prints
each fact that is left out or changed, with the reason.
"""

import argparse
import collections
import importlib.metadata
import pathlib
import random
from collections.abc import Iterable

from experiments import country_facts

SPLITS = ('train', 'valid', 'test')
# Valid and test each contain this share of those triples that can be held out.
HELD_OUT_SHARE = 0.12
REVERSE_ADDED = 'reverse of a border added'

# The meaning of each relation, in the order of the table in README.md.
RELATIONS = {
  'capital': 'the seat of government of a country',
  'borders': 'two countries that share a land border; symmetric',
  'region': 'the continent-sized region that a country belongs to',
  'subregion': 'the part of that region that a country belongs to',
  'intermediate_region': 'the part of that subregion, if there is one',
  'part_of': 'intermediate region in subregion, subregion in region',
  'official_language': 'a language that the package lists for a country',
  'currency': 'a currency that a country uses, with its ISO 4217 code',
  'time_zone': 'an offset from UTC that is in use in a country',
  'province': 'a first-level division of a country',
  'demonym': 'what the people of a country are called',
  'calling_code': 'the international telephone prefix',
  'top_level_domain': 'the last part of internet addresses',
}

# Entities that share a name get a suffix. The entity whose kind is earliest in
# this list gets no suffix, unless several of the entities have this kind.
KINDS = (
  'region',
  'subregion',
  'intermediate region',
  'country',
  'language',
  'currency',
  'time zone',
  'calling code',
  'domain',
  'city',
  'province',
  'people',
)

Triple = tuple[str, str, str]


def main() -> None:
  """Writes the files of the graph."""
  parser = argparse.ArgumentParser(
    description=(
      'Write train.txt, valid.txt, test.txt and README.md of the small graph '
      f'of countries, from the Python package {country_facts.PACKAGE}.'
    )
  )
  default = pathlib.Path(__file__).resolve().parents[1]
  parser.add_argument(
    '--out',
    type=pathlib.Path,
    default=default / 'coke_jax' / 'data' / 'countries',
    help='folder to write, created if missing (default: %(default)s)',
  )
  parser.add_argument(
    '--seed',
    type=int,
    default=0,
    help='seed of the split (default: %(default)s)',
  )
  arguments = parser.parse_args()

  report = country_facts.Report()
  countries = country_facts.read_countries(report)
  facts = set(country_facts.all_facts(countries, report))
  mirrored = {
    (tail, relation, head)
    for head, relation, tail in facts
    if relation == 'borders'
  } - facts
  for head, _, tail in sorted(mirrored):
    report(REVERSE_ADDED, f'{head.name} - {tail.name}')
  labels = unique_labels({e for h, _, t in facts | mirrored for e in (h, t)})
  triples = sorted(
    (labels[head], relation, labels[tail])
    for head, relation, tail in facts | mirrored
  )
  parts = split(triples, arguments.seed)
  write(arguments.out, parts, report, arguments.seed)
  for name in SPLITS:
    print(f'{name}: {len(parts[name])} triples')


def unique_labels(
  entities: Iterable[country_facts.Entity],
) -> dict[country_facts.Entity, str]:
  """Returns a label for each entity, with a suffix if its name is taken."""
  by_name: dict[str, list[country_facts.Entity]] = collections.defaultdict(list)
  for entity in sorted(entities):
    by_name[entity.name].append(entity)
  labels = {}
  for name, same in by_name.items():
    kinds = collections.Counter(entity.kind for entity in same)
    first = min(kinds, key=KINDS.index)
    for entity in same:
      label = name
      if entity.kind != first or kinds[first] > 1:
        label = f'{name} ({suffix(entity, kinds[entity.kind])})'
      labels[entity] = label
  if len(set(labels.values())) != len(labels):
    raise ValueError('two entities have the same label: choose other suffixes')
  return labels


def suffix(entity: country_facts.Entity, same_kind: int) -> str:
  """Returns the suffix of an entity whose name another entity has."""
  if entity.kind == 'province':
    return f'province of {entity.owner}'
  if entity.kind == 'city' and same_kind > 1:
    return f'city in {entity.owner}'
  return entity.kind


def split(triples: list[Triple], seed: int) -> dict[str, list[Triple]]:
  """Holds out a share of each relation; every entity stays in train.

  Args:
    triples: the triples, sorted and without duplicates.
    seed: the seed of the selection.

  Returns:
    The sorted triples of train, valid and test.
  """
  groups: dict[str, list[list[Triple]]] = collections.defaultdict(list)
  for head, relation, tail in triples:
    if relation != 'borders':
      groups[relation].append([(head, relation, tail)])
    elif head < tail:  # both directions are in the same split
      groups[relation].append([(head, relation, tail), (tail, relation, head)])

  uses = collections.Counter(e for h, _, t in triples for e in (h, t))
  generator = random.Random(seed)
  parts: dict[str, list[Triple]] = {'train': [], 'valid': [], 'test': []}
  for _, candidates in sorted(groups.items()):
    generator.shuffle(candidates)
    can = [group for group in candidates if stays_in_train(group, uses)]
    quota = round(HELD_OUT_SHARE * len(can))
    wanted = ['test', 'valid'] * quota
    for group in candidates:
      if wanted and stays_in_train(group, uses):
        parts[wanted.pop()] += group
        uses.subtract(e for h, _, t in group for e in (h, t))
      else:
        parts['train'] += group
  return {name: sorted(part) for name, part in parts.items()}


def stays_in_train(group: list[Triple], uses: collections.Counter[str]) -> bool:
  """Returns whether all entities stay in train if this group is held out."""
  own = collections.Counter(e for h, _, t in group for e in (h, t))
  return all(uses[entity] > count for entity, count in own.items())


def write(
  folder: pathlib.Path,
  parts: dict[str, list[Triple]],
  report: country_facts.Report,
  seed: int,
) -> None:
  """Writes the three split files and the README."""
  folder.mkdir(parents=True, exist_ok=True)
  for name, part in parts.items():
    lines = ['\t'.join(triple) + '\n' for triple in part]
    path = folder / f'{name}.txt'
    path.write_text(''.join(lines), encoding='utf-8', newline='\n')
  text = readme(parts, report, seed)
  path = folder / 'README.md'
  path.write_text(text, encoding='utf-8', newline='\n')


def readme(
  parts: dict[str, list[Triple]], report: country_facts.Report, seed: int
) -> str:
  """Returns the text of README.md."""
  triples = sorted(triple for part in parts.values() for triple in part)
  split_rows = []
  for name in SPLITS:
    counts = collections.Counter(relation for _, relation, _ in parts[name])
    held = ', '.join(
      f'{relation} {counts[relation]}'
      for relation in RELATIONS
      if name != 'train' and counts[relation]
    )
    split_rows.append(f'| `{name}.txt` | {len(parts[name]):,} | {held} |')
  relation_rows = []
  for relation, meaning in RELATIONS.items():
    own = [triple for triple in triples if triple[1] == relation]
    example = ' '.join(
      next((t for t in own if t[0] in ('Germany', 'Western Europe')), own[0])
    )
    relation_rows.append(
      f'| `{relation}` | {len(own):,} | {meaning} | {example} |'
    )
  dropped = '\n'.join(
    f'  - {reason}: {count}'
    for reason, count in sorted(report.reasons.items())
    if reason != REVERSE_ADDED
  )
  distribution = importlib.metadata.distribution(country_facts.PACKAGE)
  licences = [
    path.read_text(encoding='utf-8')
    for path in distribution.files or ()
    if path.name == 'LICENSE'
  ]
  template = (country_facts.TABLES / 'README.template.md').read_text(
    encoding='utf-8'
  )
  return template.format(
    triples=len(triples),
    entities=len({entity for h, _, t in triples for entity in (h, t)}),
    relations=len(RELATIONS),
    package=country_facts.PACKAGE,
    homepage='https://github.com/porimol/countryinfo',
    version=distribution.version,
    seed=seed,
    split_rows='\n'.join(split_rows),
    relation_rows='\n'.join(relation_rows),
    mirrored=report.reasons[REVERSE_ADDED],
    share=HELD_OUT_SHARE,
    dropped=dropped,
    licence='\n'.join(
      f'    {line}'.rstrip() for line in licences[0].splitlines()
    ),
  )


if __name__ == '__main__':
  main()
