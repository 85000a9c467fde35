"""Connects the handlers of requests with the current model and the worker."""

import asyncio
import concurrent.futures
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from coke_jax.serve import limits as limits_lib
from coke_jax.serve import metrics as metrics_lib
from coke_jax.serve import served as served_lib
from coke_jax.serve import worker as worker_lib


class Engine:
  """The current model, and a thread that runs requests with it.

  A request uses one model from its start to its end. So the current model can
  be replaced at any time.

  Attributes:
    limits: the limits of all requests.
    metrics: the metrics of the server.
    served: the current model. None until a model is loaded.
    stopping: whether the server is being stopped.
  """

  def __init__(self, limits: limits_lib.Limits, metrics: metrics_lib.Metrics):
    self.limits = limits
    self.metrics = metrics
    self.served: served_lib.Served | None = None
    self.stopping = False
    self._worker = worker_lib.Worker(limits, metrics)

  def replace(self, served: served_lib.Served) -> None:
    """Uses another model for all later requests."""
    self.served = served
    self.metrics.loaded.set(served.loaded)

  def current(self) -> served_lib.Served:
    """Returns the current model.

    Raises:
      limits.BusyError: no model is loaded yet.
    """
    if self.served is None:
      raise limits_lib.BusyError('the model is being loaded: try again later')
    return self.served

  async def run(
    self,
    served: served_lib.Served,
    key: Hashable,
    function: Callable[[Sequence[Any]], Sequence[Any]],
    items: Sequence[Any],
  ) -> list[Any]:
    """Runs items, joined with the items of other requests with an equal key.

    Args:
      served: the model.
      key: identifies `function` and all its arguments except the items.
      function: returns one result for each item.
      items: the items of this request.

    Raises:
      limits.BusyError: too many items are waiting.
      limits.TimeLimitError: the time limit was reached.
    """
    if not items:
      return []
    most = served.model.batch_size
    future = self._worker.submit((served, key), function, items, most)
    return await self._wait(future)

  async def run_job(
    self,
    served: served_lib.Served,
    function: Callable[[served_lib.Served], Any],
  ) -> Any:
    """Runs a function that needs several batches on the devices.

    Args:
      served: the model.
      function: receives a model that lets other requests run between batches.

    Raises:
      limits.BusyError: too many jobs are waiting.
      limits.TimeLimitError: the time limit was reached.
    """
    future = self._worker.submit_job(
      lambda pause: function(served.pausing(pause))
    )
    return await self._wait(future)

  def stop(self) -> None:
    """Answers all waiting requests, then ends the thread."""
    self._worker.stop()

  async def _wait(self, future: concurrent.futures.Future[Any]) -> Any:
    try:
      return await asyncio.wait_for(
        asyncio.wrap_future(future), self.limits.seconds
      )
    except TimeoutError:
      future.cancel()
      raise limits_lib.TimeLimitError(
        f'the request took more than {self.limits.seconds:g} s'
      ) from None
