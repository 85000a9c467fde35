"""Trains and tests models of PyKEEN, the peers of `peers`."""

import dataclasses
import functools
import time
from typing import Any

import numpy as np
import pykeen.evaluation
import pykeen.models
import pykeen.training
import pykeen.triples
import torch

from coke_jax.data import graph as graph_lib
from coke_jax.data import queries as queries_lib
from coke_jax.evaluate import ranks as ranks_lib
from experiments import frequency_baseline

_QUERIES_PER_CALL = 256
# Maximum difference between the MRRs of the two evaluators, which round float32
# scores differently.
_TOLERANCE = 1e-3

# The elapsed minutes and the valid MRR of each validation.
Curve = list[tuple[float, float]]


@dataclasses.dataclass(frozen=True)
class Peer:
  """A model of PyKEEN with its settings.

  Attributes:
    name: the name in the table.
    model: the name of the model class.
    settings: keyword arguments of the model.
    learning_rate: learning rate of Adam.
    batch_size: number of distinct queries in a batch.
    label_smoothing: probability mass that is spread over all entities.
    source: a paper, or how the settings were chosen.
  """

  name: str
  model: str
  settings: dict[str, Any]
  learning_rate: float
  batch_size: int
  label_smoothing: float
  source: str


_NORMAL = functools.partial(torch.nn.init.normal_, std=0.1)
_COMPLEX = {
  'embedding_dim': 256,  # the number of complex numbers
  'loss': 'CrossEntropyLoss',
  # By default, the initial embeddings have the standard deviation 1, and there
  # is a penalty. With these defaults, the valid MRR on CoDEx-S is .004 after
  # five minutes.
  'entity_initializer': _NORMAL,
  'relation_initializer': _NORMAL,
  'regularizer': None,
}

PEERS = (
  Peer(
    'ComplEx',
    'ComplEx',
    _COMPLEX,
    learning_rate=5e-3,
    batch_size=256,
    label_smoothing=0.0,
    source='chosen with valid MRRs of CoDEx-S after one minute',
  ),
  Peer(
    'published ComplEx',
    'ComplEx',
    _COMPLEX,
    learning_rate=3.4e-4,
    batch_size=1024,
    label_smoothing=0.0,
    source='CoDEx-S in Safavi and Koutra 2020, without their dropout of .08',
  ),
  Peer(
    'ConvE',
    'ConvE',
    {
      'output_channels': 32,
      'embedding_height': 10,
      'embedding_width': 20,
      'kernel_height': 3,
      'kernel_width': 3,
      'input_dropout': 0.2,
      'feature_map_dropout': 0.2,
      'output_dropout': 0.3,
      'embedding_dim': 200,
      'loss': 'BCEAfterSigmoidLoss',
    },
    learning_rate=1e-3,
    batch_size=128,
    label_smoothing=0.1,
    source='Dettmers et al. 2018',
  ),
)


def factory(
  graph: graph_lib.KnowledgeGraph, split: str, *, inverse: bool
) -> pykeen.triples.TriplesFactory:
  """Returns the triples of a split for PyKEEN, with the ids of the graph."""
  vocabulary = graph.vocabulary
  return pykeen.triples.TriplesFactory(
    torch.as_tensor(np.asarray(graph.split(split)), dtype=torch.long),
    {label: index for index, label in enumerate(vocabulary.entities)},
    {label: index for index, label in enumerate(vocabulary.relations)},
    create_inverse_triples=inverse,
  )


def scores(predict: Any, pairs: np.ndarray) -> np.ndarray:
  """Returns the scores of all entities for some pairs.

  Args:
    predict: the method `predict_t` or `predict_h` of a model.
    pairs: int [B, 2], heads and relations, or relations and tails.

  Returns:
    float32 [B, V].
  """
  parts = torch.as_tensor(pairs, dtype=torch.long).split(_QUERIES_PER_CALL)
  return torch.cat([predict(part) for part in parts]).detach().numpy()


def measure(
  model: Any, graph: graph_lib.KnowledgeGraph, split: str
) -> dict[str, float]:
  """Returns the filtered metrics of heads and tails together."""
  triples = np.asarray(graph.split(split))
  queries = queries_lib.from_triples(triples, graph.vocabulary)
  splits = graph_lib.SPLITS if split == 'test' else ('train', 'valid')
  facts = queries_lib.from_triples(graph.triples(*splits), graph.vocabulary)
  known = queries.known_answers(facts, graph.vocabulary.num_entities)

  def score(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # The queries for all tails come first, then the queries for all heads.
    side, number = np.divmod(rows, len(triples))
    parts = [
      (model.predict_t, triples[number[side == 0], :2]),
      (model.predict_h, triples[number[side == 1], 1:]),
    ]
    found = [scores(predict, pairs) for predict, pairs in parts if len(pairs)]
    together = np.concatenate(found)
    assert np.isfinite(together).all()
    return together, ~known.mask(rows)

  ranks = frequency_baseline.rank(queries.indices, score)
  return ranks_lib.rank_metrics(ranks.realistic, ranks.candidates)


def train_peer(
  peer: Peer, graph: graph_lib.KnowledgeGraph, minutes: float, seed: int
) -> tuple[Any, Curve, dict[str, Any]]:
  """Trains a peer for some minutes, and tests it.

  The minutes include the validations. The parameters of the best validation are
  used for the test.

  Returns:
    The model of PyKEEN.
    The curve.
    The test metrics, and `minutes`, the time of the training.

  Raises:
    RuntimeError: the test MRRs of the two evaluators differ.
  """
  torch.manual_seed(seed)
  started = time.monotonic()

  def elapsed() -> float:
    return (time.monotonic() - started) / 60

  train = factory(graph, 'train', inverse=True)
  model = getattr(pykeen.models, peer.model)(
    triples_factory=train, random_seed=seed, **peer.settings
  )
  optimizer = torch.optim.Adam(model.parameters(), lr=peer.learning_rate)
  loop = pykeen.training.LCWATrainingLoop(
    model=model, triples_factory=train, optimizer=optimizer
  )
  curve: Curve = []
  best: tuple[float, dict[str, Any]] = (-1.0, {})
  epochs, step = 0, 1
  while elapsed() < minutes:
    before = elapsed()
    epochs += step
    loop.train(
      train,
      num_epochs=epochs,
      batch_size=peer.batch_size,
      label_smoothing=peer.label_smoothing,
      continue_training=epochs > step,
      use_tqdm=False,
      use_tqdm_batch=False,
    )
    mrr = measure(model, graph, 'valid')['mrr']
    curve.append((elapsed(), mrr))
    print(f'{peer.name}: epoch {epochs}, {elapsed():.1f} min, {mrr:.4f}')
    if mrr > best[0]:
      best = mrr, {k: v.clone() for k, v in model.state_dict().items()}
    # Validate about twenty times. The last validation is at the end.
    pace = (elapsed() - before) / step
    wanted = min(minutes / 20, max(minutes - elapsed(), 0.0))
    step = max(1, int(wanted / pace))
  used = elapsed()
  model.load_state_dict(best[1])
  metrics = measure(model, graph, 'test')
  evaluator = pykeen.evaluation.RankBasedEvaluator(filtered=True)
  theirs = evaluator.evaluate(
    model,
    factory(graph, 'test', inverse=False).mapped_triples,
    additional_filter_triples=[
      factory(graph, split, inverse=False).mapped_triples
      for split in ('train', 'valid')
    ],
    batch_size=_QUERIES_PER_CALL,
    use_tqdm=False,
  ).get_metric('both.realistic.inverse_harmonic_mean_rank')
  if abs(theirs - metrics['mrr']) > _TOLERANCE:
    raise RuntimeError(
      f'{peer.name}: the test MRR is {metrics["mrr"]:.5f}, and {theirs:.5f} '
      f'with PyKEEN: expected a difference of at most {_TOLERANCE:g}'
    )
  return model, curve, {**metrics, 'minutes': used, 'mrr_of_pykeen': theirs}
