"""Reads facts about countries from the package `countryinfo`.

Some facts are left out or corrected.
"""

import collections
import dataclasses
import html
import importlib.resources
import json
import pathlib
import unicodedata
from collections.abc import Iterator
from typing import Any

PACKAGE = 'countryinfo'
# Contains the names of languages and currencies by code, and the template of
# README.md.
TABLES = pathlib.Path(__file__).resolve().parent / 'countries'

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


class Report:
  """Counts and prints the facts that were left out or changed."""

  def __init__(self) -> None:
    self.reasons: collections.Counter[str] = collections.Counter()

  def __call__(self, reason: str, what: str) -> None:
    """Counts and prints that `what` was left out or changed."""
    self.reasons[reason] += 1
    print(f'{reason}: {what}')


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
