"""Tests that labels get readable and distinct names."""

import lzma

import pytest
import small

from coke_jax.data import text_files
from coke_jax.plots import readable_names


def relation_names(*labels, **given):
  names = readable_names.make_names(small.labels((), labels), given)
  return names.relations


@pytest.mark.parametrize(
  ('label', 'name'),
  [
    ('official_language', 'official language'),
    ('_hypernym', 'hypernym'),
    ('**parents', 'parents (inverse)'),
    ('/film/film/directed_by', 'film: directed by'),
    (
      '/award/award_winner/awards_won./award/award_honor/honored_for',
      'award winner: awards won, honored for',
    ),
    ('/a/path/of/five/parts', '/a/path/of/five/parts'),
    ('Köppen_klima', 'Köppen klima'),
  ],
)
def test_relations_get_readable_names(label, name):
  assert relation_names(label) == {label: name}


def test_relations_with_the_same_short_form_get_longer_names():
  short, film, tv = 'born_in', '/film/actor/film', '/tv/actor/film'
  assert relation_names(short, film, tv) == {
    short: 'born in',
    film: 'film, actor: film',
    tv: 'tv, actor: film',
  }
  assert relation_names('a_b', 'a b', 'a__b') == {
    'a_b': 'a b (a_b)',
    'a b': 'a b (a b)',
    'a__b': 'a  b',
  }


def test_names_given_to_two_labels_include_the_label():
  vocabulary = small.labels(('/m/1', '/m/2', '/m/3'), ('r',))
  given = {'/m/1': 'Alien', '/m/2': 'Alien', 'r': 'role', '/m/9': 'unused'}
  names = readable_names.make_names(vocabulary, given)
  assert names.entities == {
    '/m/1': 'Alien (/m/1)',
    '/m/2': 'Alien (/m/2)',
    '/m/3': '/m/3',
  }
  assert names.relations == {'r': 'role'}


def test_a_name_that_is_another_label_is_not_used_twice():
  vocabulary = small.labels(('a', 'b'), ())
  names = readable_names.make_names(vocabulary, {'a': 'b'}).entities
  assert len(set(names.values())) == 2


def test_all_names_of_a_real_vocabulary_differ(benchmark_folder):
  folder = benchmark_folder('FB15k')
  given = readable_names.read_names(folder / 'entity2text.txt.xz')
  # The names in the file of relations are ignored.
  relations = tuple(readable_names.read_names(folder / 'relation2text.txt.xz'))
  entities = tuple(given)
  names = readable_names.make_names(small.labels(entities, relations), given)
  assert names.entities['/m/09gq0x5'] == "The King's Speech"
  assert len(set(names.entities.values())) == len(entities) == 14951
  assert len(set(names.relations.values())) == len(relations) == 1345
  lengths = sorted(map(len, names.relations.values()))
  assert lengths[len(lengths) // 2] < 50


def test_names_are_read_from_compressed_files(tmp_path):
  path = tmp_path / 'names.txt.xz'
  path.write_bytes(lzma.compress('/m/1\tÅse\n/m/2\tB b\n/m/1\tÅse\n'.encode()))
  assert readable_names.read_names(path) == {'/m/1': 'Åse', '/m/2': 'B b'}
  (tmp_path / 'names').write_bytes(b'\xef\xbb\xbfa\tb\n')
  assert readable_names.read_names(tmp_path / 'names') == {'a': 'b'}


@pytest.mark.parametrize(
  ('text', 'error'),
  [
    ('a\tb\nc\n', r"names:2: 'c': expected 2 non-empty .* by a tab, got 1"),
    ('a\tb\tc\n', 'got 3$'),
    ('a\t\n', '1 of them empty'),
    ('a\tb\na\tc\n', "names:2: 'a' is named 'c' here and 'b' before"),
  ],
)
def test_wrong_lines_are_errors(tmp_path, text, error):
  (tmp_path / 'names').write_text(text)
  with pytest.raises(text_files.DataError, match=error):
    readable_names.read_names(tmp_path / 'names')
