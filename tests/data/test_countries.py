"""Checks the labels, splits, facts and README of the countries graph."""

import collections
import pathlib
import re

import pytest

from coke_jax.data import benchmarks

SPLITS = ('train', 'valid', 'test')
FOLDER = pathlib.Path(benchmarks.__file__).parent / 'countries'
README = (FOLDER / 'README.md').read_text(encoding='utf-8')

Triple = tuple[str, ...]


def read(split: str) -> list[Triple]:
  text = (FOLDER / f'{split}.txt').read_bytes().decode('utf-8')
  assert text.endswith('\n')
  return [tuple(line.split('\t')) for line in text[:-1].split('\n')]


PARTS = {split: read(split) for split in SPLITS}
TRIPLES = [triple for part in PARTS.values() for triple in part]


def test_every_line_is_a_triple_of_clean_labels() -> None:
  assert {len(triple) for triple in TRIPLES} == {3}
  for label in {label for triple in TRIPLES for label in triple}:
    assert label, 'empty label'
    assert label == ' '.join(label.split()), label
    assert label.isprintable(), label
    assert not re.search(r'[<>]|&\w+;', label), label


def test_size() -> None:
  assert len({relation for _, relation, _ in TRIPLES}) >= 8
  assert len(TRIPLES) >= 3000
  assert len(PARTS['valid']) >= 200
  assert len(PARTS['test']) >= 200


def test_no_duplicates_and_sorted() -> None:
  assert len(set(TRIPLES)) == len(TRIPLES)
  for part in PARTS.values():
    assert part == sorted(part)


def test_everything_held_out_occurs_in_train() -> None:
  entities = {e for head, _, tail in PARTS['train'] for e in (head, tail)}
  relations = {relation for _, relation, _ in PARTS['train']}
  for head, relation, tail in PARTS['valid'] + PARTS['test']:
    assert head in entities
    assert tail in entities
    assert relation in relations


def test_valid_and_test_have_facts_of_the_main_relations() -> None:
  for split in ('valid', 'test'):
    held_out = {relation for _, relation, _ in PARTS[split]}
    assert held_out >= {
      'borders',
      'region',
      'subregion',
      'official_language',
      'currency',
      'time_zone',
    }


@pytest.mark.parametrize('split', SPLITS)
def test_both_directions_of_a_border_are_together(split: str) -> None:
  borders = {(h, t) for h, relation, t in PARTS[split] if relation == 'borders'}
  assert borders
  assert {(t, h) for h, t in borders} == borders
  assert all(h != t for h, t in borders)


def test_one_label_means_one_kind_of_thing() -> None:
  """No label has two meanings, such as a country and a language."""
  kinds = {
    'borders': 'country',
    'part_of': 'region or subregion',
    'region': 'region or subregion',
    'subregion': 'region or subregion',
  }
  meanings: dict[str, set[str]] = collections.defaultdict(set)
  for head, relation, tail in TRIPLES:
    meanings[tail].add(kinds.get(relation, relation))
    if relation != 'part_of':
      meanings[head].add('country')
  mixed = {label for label, kind in meanings.items() if len(kind) > 1}
  assert not mixed


@pytest.mark.parametrize(
  'triple',
  [
    ('Germany', 'province', 'Bayern'),
    ('Germany', 'currency', 'Euro (EUR)'),
    ('France', 'official_language', 'French'),
    ('France', 'demonym', 'French (people)'),
    ('Luxembourg', 'capital', 'Luxembourg (city)'),
    ('Belgium', 'province', 'Luxembourg (province of Belgium)'),
    ('United States', 'province', 'Georgia (province of United States)'),
    ('Georgia', 'capital', 'Tbilisi'),
    (
      'Republic of the Congo',
      'province',
      'Sangha (province of Republic of the Congo)',
    ),
    ('Western Europe', 'part_of', 'Europe'),
  ],
)
def test_some_facts(triple: Triple) -> None:
  assert triple in TRIPLES


def test_counts_are_those_of_benchmarks_and_the_readme() -> None:
  entities = {e for head, _, tail in TRIPLES for e in (head, tail)}
  relations = collections.Counter(relation for _, relation, _ in TRIPLES)
  benchmarks.check_counts(
    'countries',
    entities=len(entities),
    relations=len(relations),
    train=len(PARTS['train']),
    valid=len(PARTS['valid']),
    test=len(PARTS['test']),
  )
  for count, what in (
    (len(entities), 'entities'),
    (len(relations), 'relations'),
    (len(TRIPLES), 'triples'),
  ):
    assert re.search(rf'\b{count:,} {what}', README), what
  for split, part in PARTS.items():
    assert f'| `{split}.txt` | {len(part):,} |' in README
  for relation, count in relations.items():
    assert f'| `{relation}` | {count:,} |' in README
  assert 'MIT License' in README
