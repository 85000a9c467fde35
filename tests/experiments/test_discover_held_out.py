"""Compares `experiments.discover_held_out` with plain loops."""

import numpy as np
import pytest
import small

from coke_jax.predict import load
from coke_jax.training import run
from experiments import discover_held_out


def test_shares(tmp_path):
  data = small.random_graph(relations=('likes', 'near', 'owns'))
  config = small.config(train={'num_epochs': 1.0})
  run.train_and_evaluate(config, tmp_path, data=data)
  model = load.load(tmp_path)
  measured = discover_held_out.measure(model, [5, 30])
  labels = {}
  for split in small.SPLITS:
    labels[split] = {
      (
        data.vocabulary.entities[head],
        data.vocabulary.relations[relation],
        data.vocabulary.entities[tail],
      )
      for head, relation, tail in data.split(split).tolist()
    }
  held_out = (labels['valid'] | labels['test']) - labels['train']
  assert measured['held_out'] == len(held_out)
  found = model.discover(top=30, splits=('train',), type_matching=True)
  for number in (5, 30):
    correct = sum(new.fact in held_out for new in found[:number])
    assert measured[f'first_{number}'] == round(correct / number, 4)
  compared = 0
  for relation in data.vocabulary.relations:
    known = {(h, t) for h, r, t in labels['train'] if r == relation}
    loops = any(head == tail for head, tail in known)
    heads = {head for head, _ in known}
    tails = {tail for _, tail in known}
    compared += sum(
      (head, tail) not in known and (loops or head != tail)
      for head in heads
      for tail in tails
    )
  chance = len(held_out) / compared
  assert measured['random'] == pytest.approx(chance, rel=0.05)


def test_shares_of_any_scores():
  graph = small.random_graph(relations=('likes', 'near', 'owns'))
  size = graph.vocabulary.num_entities
  table = np.random.default_rng(1).normal(size=(size, 3, size))
  train = {tuple(fact) for fact in graph.train.tolist()}
  held_out = {tuple(fact) for fact in graph.triples('valid', 'test').tolist()}
  scores = {}
  for relation in range(3):
    known = [fact for fact in train if fact[1] == relation]
    loops = any(head == tail for head, _, tail in known)
    for head in {fact[0] for fact in known}:
      for tail in {fact[2] for fact in known}:
        fact = (head, relation, tail)
        if fact not in train and (loops or head != tail):
          scores[fact] = table[fact]
  best = sorted(scores, key=scores.__getitem__, reverse=True)
  measured = discover_held_out.measure_scores(
    lambda pairs: table[pairs[:, 0], pairs[:, 1]], graph, [10, 200]
  )
  assert measured == {
    f'first_{n}': round(sum(one in held_out for one in best[:n]) / n, 4)
    for n in (10, 200)
  }
  assert measured['first_200'] > 0
