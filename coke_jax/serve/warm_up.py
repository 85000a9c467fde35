"""Compiles the programs of a model before requests need them."""

import functools
import logging
import threading
from collections.abc import Callable, Iterator

import numpy as np

from coke_jax import errors
from coke_jax.predict import questions
from coke_jax.predict.jobs import facts as facts_lib
from coke_jax.serve import served as served_lib

_logger = logging.getLogger(__name__)


def predictions(served: served_lib.Served) -> None:
  """Compiles the programs of predictions, and computes all indexes.

  Raises:
    errors.NonFiniteError: a score is NaN or infinite.
  """
  words = served.model.data.vocabulary
  question = (words.entities[0], words.relations[0], questions.UNKNOWN)
  for count in served.model.predictor.scorer.batch_sizes():
    for new_only in (False, True):
      served.model.predict([question] * count, new_only=new_only)
  _ = served.embeddings, served.explainer


def other_requests(
  served: served_lib.Served, stopped: Callable[[], bool] = lambda: False
) -> None:
  """Compiles the programs of all other requests, such as `explain`.

  The programs of small batches, which most requests need, are compiled first.

  Args:
    served: the model.
    stopped: called before each program. If it returns True, the remaining
      programs are compiled when a request needs them.

  Raises:
    errors.NonFiniteError: a score is NaN or infinite.
  """
  for program in _programs(served):
    if stopped():
      return
    program()


class Background:
  """A thread that compiles the programs of `other_requests`."""

  def __init__(self, served: served_lib.Served):
    self._served = served
    self._stopped = threading.Event()
    self._thread = threading.Thread(
      target=self._run, name='coke_jax-warm-up', daemon=True
    )
    self._thread.start()

  def stop(self) -> None:
    """Ends the thread after the program that it is compiling."""
    self._stopped.set()
    self._thread.join()

  def _run(self) -> None:
    try:
      other_requests(self._served, self._stopped.is_set)
    except errors.CokeError as error:
      _logger.warning('programs are not compiled in advance: %s', error)


def _programs(served: served_lib.Served) -> Iterator[Callable[[], object]]:
  """Yields functions. Each function compiles and runs one program."""
  predictor = served.model.predictor
  words = served.model.data.vocabulary
  labels = (words.entities[0], words.relations[0], words.entities[0])
  fact = questions.Fact(labels, 0, (0,), 0)
  for count in predictor.scorer.batch_sizes():
    none = np.zeros(count, np.int32)
    queries = facts_lib.to_queries(none, none, 'tail', words, predictor.width)
    answers = np.zeros((count, facts_lib.FEW_ANSWERS), np.int32)
    scorer = predictor.scorer
    yield functools.partial(predictor.score, [fact] * count, 'tail')
    yield functools.partial(scorer.log_probabilities, queries)
    yield functools.partial(scorer.answer_log_probabilities, queries, answers)
    layer = served.model.num_layers
    yield functools.partial(scorer.encode, queries.tokens, layer)
