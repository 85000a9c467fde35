"""Metrics of a server in the format of Prometheus."""

import contextlib
import time
from collections.abc import Iterator

import prometheus_client

_BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class Metrics:
  """The metrics of one server.

  Attributes:
    registry: contains all metrics.
    requests: counts the answered requests by path and status.
    seconds: the time of the requests by path.
    waiting: the number of questions that wait for the devices.
    reloads: counts the attempts to load a changed model, by outcome: `loaded`
      or `failed`.
    loaded: the time at which the current model was loaded.
  """

  def __init__(self) -> None:
    self.registry = prometheus_client.CollectorRegistry()
    self.requests = prometheus_client.Counter(
      'coke_requests',
      'Answered requests',
      ('path', 'status'),
      registry=self.registry,
    )
    self.seconds = prometheus_client.Histogram(
      'coke_request_seconds',
      'Time of a request',
      ('path',),
      registry=self.registry,
      buckets=_SECONDS,
    )
    self.waiting = prometheus_client.Gauge(
      'coke_waiting_questions',
      'Questions that wait for the devices',
      registry=self.registry,
    )
    self.reloads = prometheus_client.Counter(
      'coke_reloads',
      'Attempts to load a changed model',
      ('outcome',),
      registry=self.registry,
    )
    self.loaded = prometheus_client.Gauge(
      'coke_model_loaded_timestamp_seconds',
      'Time at which the current model was loaded',
      registry=self.registry,
    )
    self._batch_requests = prometheus_client.Histogram(
      'coke_batch_requests',
      'Requests that were joined into a batch',
      registry=self.registry,
      buckets=_BATCH_SIZES,
    )
    self._batch_questions = prometheus_client.Histogram(
      'coke_batch_questions',
      'Questions in a batch',
      registry=self.registry,
      buckets=_BATCH_SIZES,
    )
    self._batch_seconds = prometheus_client.Histogram(
      'coke_batch_seconds',
      'Time of a batch on the devices',
      registry=self.registry,
      buckets=_SECONDS,
    )
    prometheus_client.ProcessCollector(registry=self.registry)

  @contextlib.contextmanager
  def batch(self, requests: int, questions: int) -> Iterator[None]:
    """Records the size of a batch, and the time of the `with` statement."""
    start = time.perf_counter()
    yield
    self._batch_seconds.observe(time.perf_counter() - start)
    self._batch_requests.observe(requests)
    self._batch_questions.observe(questions)

  def text(self) -> bytes:
    """Returns all metrics in the text format of Prometheus."""
    return prometheus_client.generate_latest(self.registry)
