"""Writes the small graph of countries that ships with `coke_jax`.

    pip install countryinfo==1.0.1
    python experiments/make_countries.py

The facts are those of the MIT-licensed package `countryinfo`, which only this
script needs. The same version and the same seed give the same bytes. Prints
each fact that is left out or changed, with the reason.
"""

import argparse
import collections
import dataclasses
import html
import importlib.metadata
import importlib.resources
import json
import pathlib
import random
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

PACKAGE = 'countryinfo'
SPLITS = ('train', 'valid', 'test')
# Contains the names of languages and currencies by code, and the template of
# README.md.
TABLES = pathlib.Path(__file__).resolve().parent / 'countries'
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

# Entities that share a name get a suffix. One entity is excepted: the only one
# of its kind, if no entity with this name has a kind earlier in this list.
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

COUNTRY_NAMES = {
  'BHS': 'Bahamas',
  'GMB': 'Gambia',
  'MKD': 'North Macedonia',
  'SWZ': 'Eswatini',
  'VAT': 'Vatican City',
  'VGB': 'British Virgin Islands',
  'VIR': 'United States Virgin Islands',
}

# Obvious errors of the source and their corrections.
DISSOLVED = {'ANT': 'Netherlands Antilles', 'SCG': 'Serbia and Montenegro'}
# The record of the left country lists the provinces of the right country.
PROVINCES_OF_ANOTHER = {
  'COD': 'COG',
  'COG': 'COD',
  'IOT': 'VGB',
  'TLS': 'TTO',
}
NOT_PROVINCES = {
  'ATA': 'territorial claims, not divisions',
  'SSD': 'they are the communities of Spain',
}
BROKEN_PROVINCES = {
  ('ZWE', 'ManicalandMashonaland Central'): (
    'Manicaland',
    'Mashonaland Central',
  ),
  ('ZWE', 'Mashonaland'): (),  # only a part of 'Mashonaland West'
}
NO_COMMON_BORDER = {
  frozenset({'BTN', 'MMR'}): 'no common land border',
  frozenset({'SSD', 'TCD'}): 'no common land border',
  frozenset({'IRN', 'KWT'}): 'no common land border',
  frozenset({'FRA', 'SUR'}): 'French Guiana has an entry of its own',
}
LANGUAGE_CODES = {('ABW', 'pa'): 'pap', ('SRB', 'rs'): 'sr'}
ACCOUNTING_UNITS = {'BOV', 'CHE', 'CHW', 'CLF', 'USN', 'USS', 'UYI'}


@dataclasses.dataclass(frozen=True, order=True)
class Entity:
  """An entity of the graph, before it has a unique label.

  Attributes:
    kind: one of KINDS.
    name: the label, if no other entity has this name.
    owner: the name of the country of a city or province, otherwise empty. Two
      countries can have places of the same name.
  """

  kind: str
  name: str
  owner: str = ''


Fact = tuple[Entity, str, Entity]
Triple = tuple[str, str, str]


class Report:
  """Counts and prints the facts that were left out or changed."""

  def __init__(self) -> None:
    self.reasons: collections.Counter[str] = collections.Counter()

  def __call__(self, reason: str, what: str) -> None:
    """Counts and prints that `what` was left out or changed."""
    self.reasons[reason] += 1
    print(f'{reason}: {what}')


def main() -> None:
  """Writes the files of the graph."""
  parser = argparse.ArgumentParser(
    description=(
      'Write train.txt, valid.txt, test.txt and README.md of the small graph '
      f'of countries, from the Python package {PACKAGE}.'
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

  report = Report()
  countries = read_countries(report)
  facts = set(all_facts(countries, report))
  mirrored = {
    (tail, relation, head)
    for head, relation, tail in facts
    if relation == 'borders'
  } - facts
  for head, _, tail in sorted(mirrored):
    report(REVERSE_ADDED, describe(head, tail))
  labels = unique_labels({e for h, _, t in facts | mirrored for e in (h, t)})
  triples = sorted(
    (labels[head], relation, labels[tail])
    for head, relation, tail in facts | mirrored
  )
  parts = split(triples, arguments.seed)
  write(arguments.out, parts, report, len(mirrored), arguments.seed)
  for name in SPLITS:
    print(f'{name}: {len(parts[name])} triples')


# --- Reading the source -----------------------------------------------------


def read_countries(report: Report) -> dict[str, dict[str, Any]]:
  """Reads one record per country, by ISO code, and sets its common name."""
  records: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
  folder = importlib.resources.files(PACKAGE) / 'data'
  for path in sorted(folder.iterdir(), key=lambda path: path.name):
    if path.name.endswith('.json'):
      record = json.loads(path.read_text(encoding='utf-8'))
      records[record['ISO']['alpha3']].append(record)

  countries = {}
  for code, several in sorted(records.items()):
    if code in DISSOLVED:
      report('country no longer exists', DISSOLVED[code])
      continue
    several.sort(key=filled_fields, reverse=True)
    for other in several[1:]:
      report('second record of one country', f'{other["name"]} ({code})')
    countries[code] = several[0]
    name = COUNTRY_NAMES.get(code, several[0]['name'])
    countries[code]['name'] = clean(name)
  return countries


def filled_fields(record: dict[str, Any]) -> int:
  """Returns the number of fields of a record that are not empty."""
  return sum(value not in (None, '', [], {}) for value in record.values())


def texts(value: Any) -> list[str]:
  """Cleans a text or a list of texts. Returns [] for None."""
  values = value if isinstance(value, list) else [value]
  cleaned = [clean(text) for text in values if isinstance(text, str)]
  return [text for text in cleaned if text]


def clean(text: str) -> str:
  """Decodes HTML entities; removes extra spaces and invisible characters."""
  text = unicodedata.normalize('NFC', html.unescape(text))
  text = ' '.join(text.split())
  return ''.join(c for c in text if unicodedata.category(c)[0] != 'C')


def read_names(path: pathlib.Path) -> dict[str, str]:
  """Reads the English names of codes from lines like `en English`."""
  lines = path.read_text(encoding='utf-8').splitlines()
  return dict(line.split(' ', 1) for line in lines)


# --- Facts ------------------------------------------------------------------


def all_facts(
  countries: dict[str, dict[str, Any]], report: Report
) -> Iterator[Fact]:
  """Yields the facts of all countries, some facts more than once."""
  languages = read_names(TABLES / 'languages.txt')
  currencies = read_names(TABLES / 'currencies.txt')
  provinces = assign_provinces(countries, report)
  for code, record in countries.items():
    name = record['name']
    country = Entity('country', name)
    # Some territories have several capitals, written "one / two / three".
    for city in texts(record.get('capital'))[:1]:
      if ' / ' in city:
        report('only the first of several capitals kept', f'{name}: {city}')
        city = city.split(' / ')[0]
      yield country, 'capital', Entity('city', city, name)
    yield from border_facts(code, countries, report)
    yield from region_facts(country, record)
    for language in texts(record.get('languages')):
      language = LANGUAGE_CODES.get((code, language), language)
      label = languages[language]
      yield country, 'official_language', Entity('language', label)
    for currency in texts(record.get('currencies')):
      if currency in ACCOUNTING_UNITS:
        report('accounting unit, not money', f'{name}: {currency}')
        continue
      label = f'{currencies[currency]} ({currency})'
      yield country, 'currency', Entity('currency', label)
    for zone in texts(record.get('timezones')):
      yield country, 'time_zone', Entity('time zone', offset(zone))
    for province in provinces[code]:
      yield country, 'province', Entity('province', province, name)
    for people in texts(record.get('demonym')):
      for one in people.split(','):
        yield country, 'demonym', Entity('people', one.strip())
    for number in texts(record.get('callingCodes')):
      label = '+' + number.replace('-', '')
      yield country, 'calling_code', Entity('calling code', label)
    for domain in texts(record.get('tld')):
      # The dot of right-to-left domains is at the wrong end in the source.
      label = '.' + domain.strip('.')
      yield country, 'top_level_domain', Entity('domain', label)


def border_facts(
  code: str, countries: dict[str, dict[str, Any]], report: Report
) -> Iterator[Fact]:
  """Yields the borders in the record of one country, except wrong ones."""
  shorter = {record['ISO']['alpha2']: c for c, record in countries.items()}
  name = countries[code]['name']
  for neighbour in texts(countries[code].get('borders')):
    neighbour = shorter.get(neighbour, neighbour)
    if neighbour not in countries:
      report('neighbour is not in the source', f'{name}: {neighbour}')
      continue
    other = countries[neighbour]['name']
    if reason := NO_COMMON_BORDER.get(frozenset({code, neighbour})):
      report(f'border left out ({reason})', f'{name}: {other}')
      continue
    yield Entity('country', name), 'borders', Entity('country', other)


def region_facts(country: Entity, record: dict[str, Any]) -> Iterator[Fact]:
  """Yields the regions of a country, and which region is part of which."""
  outer: Entity | None = None
  for field, kind in (
    ('region', 'region'),
    ('subregion', 'subregion'),
    ('intermediateregion', 'intermediate region'),
  ):
    for name in texts(record.get(field)):
      inner = Entity(kind, name)
      yield country, kind.replace(' ', '_'), inner
      if outer:
        yield inner, 'part_of', outer
      outer = inner


def assign_provinces(
  countries: dict[str, dict[str, Any]], report: Report
) -> dict[str, list[str]]:
  """Returns the names of each country's provinces, with corrections."""
  andorra = {without_accents(p) for p in texts(countries['AND']['provinces'])}
  provinces: dict[str, list[str]] = collections.defaultdict(list)
  for code, record in countries.items():
    name = record['name']
    names = texts(record.get('provinces'))
    if code in NOT_PROVINCES:
      reason = f'provinces left out ({NOT_PROVINCES[code]})'
      for province in names:
        report(reason, f'{name}: {province}')
      continue
    owner = PROVINCES_OF_ANOTHER.get(code, code)
    if len(names) == 1 and owner == code:
      report('only province, the whole territory', f'{name}: {names[0]}')
      continue
    for province in names:
      if owner != code:
        other = countries[owner]['name']
        report('province moved to its country', f'{province}: {name} > {other}')
      if code == 'AGO' and without_accents(province) in andorra:
        report('province of Andorra left out', f'{name}: {province}')
        continue
      repaired = BROKEN_PROVINCES.get((code, province), (province,))
      if repaired != (province,):
        change = f'{name}: {province} > {" and ".join(repaired) or "nothing"}'
        report('province name repaired', change)
      for one in repaired:
        if one in provinces[owner]:
          report('province listed twice', f'{name}: {one}')
        else:
          provinces[owner].append(one)
  return provinces


def without_accents(text: str) -> str:
  """Removes accents, to compare spellings."""
  return ''.join(
    c
    for c in unicodedata.normalize('NFD', text)
    if not unicodedata.combining(c)
  )


def offset(zone: str) -> str:
  """Spells an offset like `UTC-04:00`, with minutes and an ASCII sign."""
  zone = zone.replace('\N{MINUS SIGN}', '-')
  if zone == 'UTC':
    return 'UTC+00:00'
  return zone if ':' in zone else zone + ':00'


def describe(head: Entity, tail: Entity) -> str:
  """Describes a border for the printed report."""
  return f'{head.name} - {tail.name}'


# --- Labels -----------------------------------------------------------------


def unique_labels(entities: Iterable[Entity]) -> dict[Entity, str]:
  """Returns a label for each entity, with a suffix if its name is taken."""
  by_name: dict[str, list[Entity]] = collections.defaultdict(list)
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


def suffix(entity: Entity, same_kind: int) -> str:
  """Returns the suffix of an entity whose name another entity has."""
  if entity.kind == 'province':
    return f'province of {entity.owner}'
  if entity.kind == 'city' and same_kind > 1:
    return f'city in {entity.owner}'
  return entity.kind


# --- Split ------------------------------------------------------------------


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
  """Returns whether train keeps a use of each entity without this group."""
  own = collections.Counter(e for h, _, t in group for e in (h, t))
  return all(uses[entity] > count for entity, count in own.items())


# --- Writing ----------------------------------------------------------------


def write(
  folder: pathlib.Path,
  parts: dict[str, list[Triple]],
  report: Report,
  mirrored: int,
  seed: int,
) -> None:
  """Writes the three split files and the README."""
  folder.mkdir(parents=True, exist_ok=True)
  for name, part in parts.items():
    lines = ['\t'.join(triple) + '\n' for triple in part]
    path = folder / f'{name}.txt'
    path.write_text(''.join(lines), encoding='utf-8', newline='\n')
  text = readme(parts, report, mirrored, seed)
  path = folder / 'README.md'
  path.write_text(text, encoding='utf-8', newline='\n')


def readme(
  parts: dict[str, list[Triple]], report: Report, mirrored: int, seed: int
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
  distribution = importlib.metadata.distribution(PACKAGE)
  licences = [
    path.read_text(encoding='utf-8')
    for path in distribution.files or ()
    if path.name == 'LICENSE'
  ]
  template = (TABLES / 'README.template.md').read_text(encoding='utf-8')
  return template.format(
    triples=len(triples),
    entities=len({entity for h, _, t in triples for entity in (h, t)}),
    relations=len(RELATIONS),
    package=PACKAGE,
    homepage='https://github.com/porimol/countryinfo',
    version=distribution.version,
    seed=seed,
    split_rows='\n'.join(split_rows),
    relation_rows='\n'.join(relation_rows),
    mirrored=mirrored,
    share=HELD_OUT_SHARE,
    dropped=dropped,
    licence='\n'.join(
      f'    {line}'.rstrip() for line in licences[0].splitlines()
    ),
  )


if __name__ == '__main__':
  main()
