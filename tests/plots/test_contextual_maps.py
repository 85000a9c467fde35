"""Tests which triples a map shows, and the metrics of their hidden states."""

import types

import numpy as np
import pytest
import small

from coke_jax.data import graph, paths, vocabulary
from coke_jax.plots import contextual_maps, map_selection, readable_names

pytest.importorskip('sklearn')

DIRECTORS = ('Ann', 'Bob', 'Cid')
FILMS = tuple(f'film{i:02}' for i in range(30))
ENTITIES = DIRECTORS + FILMS
RELATIONS = ('by', 'directed', 'likes', 'rare')
BY, DIRECTED, LIKES, RARE = range(4)
ANN, BOB, CID = range(3)
FIRST_FILM = len(DIRECTORS)


def film_triples():
  """Returns triples of 22 films and their directors.

  Most triples have an inverse. Films 0 to 11 are by Ann, 12 to 17 by Bob and 18
  to 21 by Cid.
  """
  rows = []
  for film in range(22):
    director = ANN if film < 12 else BOB if film < 18 else CID
    rows.append((FIRST_FILM + film, BY, director))
    if film != 11:
      rows.append((director, DIRECTED, FIRST_FILM + film))
  rows += [(ANN, LIKES, FIRST_FILM + film) for film in range(5)]
  rows += [(ANN, RARE, FIRST_FILM + film) for film in range(4)]
  rows += [(ANN, LIKES, ANN), rows[0]]  # These are a loop and a duplicate.
  return np.array(rows, np.int32)


def film_graph():
  empty = np.zeros((0, 3), np.int32)
  labels = small.labels(ENTITIES, RELATIONS)
  return graph.KnowledgeGraph('films', labels, film_triples(), empty, empty)


DATA = film_graph()
NAMES = readable_names.make_names(DATA.vocabulary, {})


class Fake:
  """A model whose hidden states depend on the director and on some noise."""

  def __init__(self, spread=0.1):
    self.spread = spread

  def embed(self, sequences):
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(len(sequences), 3, 8)) * self.spread
    for row, (head, _, tail) in enumerate(sequences):
      director = head if head in DIRECTORS else tail
      vectors[row, 1, DIRECTORS.index(director)] += 1
    return types.SimpleNamespace(vectors=vectors.astype(np.float32))


def labelled(selection):
  return {
    (ENTITIES[head], RELATIONS[relation], ENTITIES[tail])
    for head, relation, tail in selection.triples
  }


def test_a_map_of_an_entity_has_triples_with_the_entity_on_either_side():
  chosen = map_selection.select_entity(DATA, 'Ann')
  expected = (
    {(film, 'by', 'Ann') for film in FILMS[:12]}
    | {('Ann', 'directed', film) for film in FILMS[:11]}
    | {('Ann', 'likes', film) for film in (*FILMS[:5], 'Ann')}
  )
  assert labelled(chosen) == expected
  # The triples contain no duplicates.
  assert len(chosen.triples) == len(expected) == chosen.kept
  assert chosen.found == len(expected) + 4
  assert chosen.left_out == 1  # `rare` has four triples, one too few.
  states = chosen.triples[np.arange(len(expected)), chosen.column]
  assert (states == ANN).all()
  assert (chosen.triples[:, 1] == chosen.groups[chosen.group]).all()


def test_inverse_relations_are_found_and_follow_each_other():
  chosen = map_selection.select_entity(DATA, 'Ann')
  assert [RELATIONS[one] for one in chosen.groups] == [
    'by',
    'directed',
    'likes',
  ]
  assert chosen.inverse.tolist() == [1, 0, -1]


def test_relations_that_share_few_triples_are_not_inverse():
  rows = [(ANN, LIKES, FIRST_FILM + film) for film in range(10)]
  rows += [(FIRST_FILM + film, BY, ANN) for film in range(3)]
  rows += [(FIRST_FILM + film, BY, ANN) for film in range(10, 17)]
  triples = np.array(rows, np.int32)
  data = graph.KnowledgeGraph('few', DATA.vocabulary, triples, triples, triples)
  chosen = map_selection.select_entity(data, 'Ann')
  assert chosen.inverse.tolist() == [-1, -1]


def test_a_relation_and_its_inverse_are_grouped_by_the_common_side():
  chosen = map_selection.select_relations(DATA, ['by', 'directed'])
  assert chosen.sides == ('tail', 'head')
  assert [ENTITIES[one] for one in chosen.groups] == ['Ann', 'Bob']
  assert np.bincount(chosen.group).tolist() == [12 + 11, 6 + 6]
  assert (chosen.column == map_selection.RELATION).all()
  assert chosen.left_out == 1  # Cid has 8 triples, two too few.
  assert chosen.found == 22 + 21
  for (head, relation, tail), group in zip(
    chosen.triples, chosen.group, strict=True
  ):
    director = tail if relation == BY else head
    assert director == chosen.groups[group]


def test_the_side_can_be_chosen():
  assert map_selection.select_relations(DATA, ['by']).sides == ('tail',)
  with pytest.raises(map_selection.MapError, match='with the same entity'):
    map_selection.select_relations(DATA, ['by'], sides=['head'])
  with pytest.raises(map_selection.MapError, match='expected head or tail'):
    map_selection.select_relations(DATA, ['by'], sides=['left'])


@pytest.mark.parametrize(
  ('call', 'labels', 'error'),
  [
    ('select_entity', 'Anna', "unknown entity 'Anna': did you mean 'Ann'"),
    (
      'select_entity',
      'Cid',
      "'Cid': 0 of 8 training triples are in a group of at least 5 triples "
      'with the same relation',
    ),
    ('select_relations', ['bye'], "unknown relation 'bye'"),
    ('select_relations', ['by', 'by'], 'expected one label, or two different'),
    ('select_relations', ['by', 'directed', 'likes'], 'expected one label, or'),
    (
      'select_relations',
      ['rare'],
      "'rare': 0 of 4 training triples are in a group of at least 10 triples "
      'with the same entity',
    ),
  ],
)
def test_impossible_maps_are_errors(call, labels, error):
  with pytest.raises(map_selection.MapError, match=error):
    getattr(map_selection, call)(DATA, labels)


def test_too_many_triples_are_sampled(monkeypatch):
  monkeypatch.setattr(map_selection, 'MAX_POINTS', 15)
  chosen = map_selection.select_relations(DATA, ['by', 'directed'], seed=1)
  again = map_selection.select_relations(DATA, ['by', 'directed'], seed=1)
  other = map_selection.select_relations(DATA, ['by', 'directed'], seed=2)
  assert chosen.kept == 35
  assert len(labelled(chosen)) == len(chosen.group) == 15
  assert labelled(chosen) == labelled(again)
  assert labelled(chosen) != labelled(other)


def test_only_paths_with_one_relation_give_triples():
  triples = np.unique(film_triples(), axis=0)
  padding = np.full(len(triples), vocabulary.NO_RELATION, np.int32)
  single = paths.PathSet(
    triples[:, 0], np.stack([triples[:, 1], padding], 1), triples[:, 2]
  )
  double = paths.PathSet(
    triples[:, 0], np.stack([triples[:, 1]] * 2, 1), triples[:, 2]
  )
  both = paths.PathSet(
    *(
      np.concatenate([getattr(part, field) for part in (single, double)])
      for field in ('source', 'relations', 'target')
    )
  )
  inverse = np.full(len(RELATIONS), vocabulary.NO_RELATION, np.int32)
  data = paths.PathData(
    'walked', DATA.vocabulary, inverse, both, single, single, {}
  )
  chosen = map_selection.select_entity(data, 'Ann')
  expected = map_selection.select_entity(DATA, 'Ann')
  assert labelled(chosen) == labelled(expected)


def test_well_separated_groups_have_a_high_silhouette():
  chosen = map_selection.select_relations(DATA, ['by', 'directed'])
  apart = contextual_maps.make_map(Fake(0.05), DATA, chosen)
  mixed = contextual_maps.make_map(Fake(100.0), DATA, chosen)
  assert apart.mean_silhouette > 0.8
  assert abs(mixed.mean_silhouette) < 0.2
  assert apart.silhouette_joined == pytest.approx(apart.mean_silhouette)
  points = apart.coordinates
  assert points.shape == (35, 2)
  assert np.isfinite(points).all()
  centres = np.stack([points[chosen.group == g].mean(0) for g in (0, 1)])
  nearest = np.linalg.norm(points[:, None] - centres[None], axis=-1).argmin(1)
  assert (nearest == chosen.group).all()


def test_mirrored_triples_are_measured():
  chosen = map_selection.select_relations(DATA, ['by', 'directed'])
  made = contextual_maps.make_map(Fake(0.05), DATA, chosen)
  assert made.mirrored_pairs == 11 + 6
  states = Fake(0.05).embed(sequences(chosen)).vectors[:, 1]
  distance = np.linalg.norm(states[:, None] - states[None], axis=-1)
  row = {triple: i for i, triple in enumerate(sequences(chosen))}
  mirrored = [
    distance[i, row[tail, 'directed', head]]
    for (head, relation, tail), i in row.items()
    if relation == 'by' and (tail, 'directed', head) in row
  ]
  expected = np.median(mirrored) / np.median(distance[np.triu_indices(35, 1)])
  assert made.mirrored_distance == pytest.approx(expected, rel=1e-4)


def sequences(chosen):
  return [
    (ENTITIES[head], RELATIONS[relation], ENTITIES[tail])
    for head, relation, tail in chosen.triples
  ]


def test_inverses_count_as_one_group_in_the_joined_silhouette():
  class BySide(Fake):
    def embed(self, sequences):
      vectors = super().embed(sequences).vectors
      for row, (head, relation, tail) in enumerate(sequences):
        place = 5 if relation == 'likes' else 6
        vectors[row, 0 if head == 'Ann' else 2, place] += 1
        del tail
      return types.SimpleNamespace(vectors=vectors)

  chosen = map_selection.select_entity(DATA, 'Ann')
  made = contextual_maps.make_map(BySide(0.05), DATA, chosen)
  assert made.silhouette_joined > 0.7
  assert made.mean_silhouette < 0.4


def test_the_same_seed_gives_the_same_map():
  chosen = map_selection.select_entity(DATA, 'Ann')
  maps = [
    contextual_maps.to_json(
      contextual_maps.make_map(Fake(), DATA, chosen, seed=seed), DATA, NAMES
    )
    for seed in (3, 3)
  ]
  assert maps[0] == maps[1]


def test_the_numbers_name_the_triple_of_every_point():
  chosen = map_selection.select_entity(DATA, 'Ann')
  made = contextual_maps.make_map(Fake(), DATA, chosen)
  numbers = contextual_maps.to_json(made, DATA, NAMES)
  assert len(numbers['points']) == numbers['triples_kept'] == 29
  for point in numbers['points']:
    assert point['triple'][point['column']] == 'Ann'
    assert numbers['groups'][point['group']]['label'] == point['triple'][1]
  assert [group['points'] for group in numbers['groups']] == [12, 11, 6]
  assert numbers['perplexity'] == pytest.approx(28 / 3)  # There are 29 points.
  assert numbers['silhouette'] == pytest.approx(made.silhouette.mean())


def test_one_group_has_no_silhouette():
  triples = np.array(
    [(ANN, LIKES, FIRST_FILM + film) for film in range(10)], np.int32
  )
  data = graph.KnowledgeGraph('few', DATA.vocabulary, triples, triples, triples)
  chosen = map_selection.select_entity(data, 'Ann')
  made = contextual_maps.make_map(Fake(), data, chosen)
  assert made.mean_silhouette is None
  assert made.mirrored_pairs == 0
  assert made.mirrored_distance is None


def test_constant_and_non_finite_states_are_errors():
  chosen = map_selection.select_entity(DATA, 'Ann')

  class Constant(Fake):
    def embed(self, sequences):
      return types.SimpleNamespace(vectors=np.ones((len(sequences), 3, 8)))

  class Broken(Fake):
    def embed(self, sequences):
      return types.SimpleNamespace(vectors=np.full((29, 3, 8), np.nan))

  with pytest.raises(map_selection.MapError, match='the same in all 29'):
    contextual_maps.make_map(Constant(), DATA, chosen)
  with pytest.raises(FloatingPointError, match='not finite'):
    contextual_maps.make_map(Broken(), DATA, chosen)
