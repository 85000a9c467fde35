"""Runs requests on the devices in one thread, several requests per batch.

Requests of the same kind that arrive at almost the same time form one batch.
A job about many facts, such as `discover`, consists of many batches. Between
the batches of a job, the thread runs waiting requests.
"""

import collections
import concurrent.futures
import dataclasses
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from coke_jax.serve import limits as limits_lib
from coke_jax.serve import metrics as metrics_lib

# Runs items on the devices and returns one result for each item.
Function = Callable[[Sequence[Any]], Sequence[Any]]


@dataclasses.dataclass(frozen=True, eq=False)
class Request:
  """Items of one request that wait for the devices.

  Attributes:
    key: requests with equal keys can be joined in one batch. The `function` of
      the oldest request runs all items of the batch.
    function: runs items.
    items: the items of this request.
    most: the maximum number of items in a batch.
    deadline: after this time of `time.monotonic`, the request is answered with
      an error.
    future: receives the list of results.
  """

  key: Hashable
  function: Function
  items: Sequence[Any]
  most: int
  deadline: float
  future: concurrent.futures.Future[list[Any]]


# For the argument, see `Worker.submit_job`.
Job = Callable[[Callable[[], None]], Any]


class Worker:
  """A thread that runs requests and jobs. Waiting requests come before jobs."""

  def __init__(self, limits: limits_lib.Limits, metrics: metrics_lib.Metrics):
    self._limits = limits
    self._metrics = metrics
    self._changed = threading.Condition()
    self._requests: collections.deque[Request] = collections.deque()
    self._jobs: collections.deque[
      tuple[Job, float, concurrent.futures.Future[Any]]
    ] = collections.deque()
    self._waiting = 0
    self._stopping = False
    self._joined = False
    self._thread = threading.Thread(
      target=self._loop, name='coke_jax-devices', daemon=True
    )
    self._thread.start()

  def submit(
    self, key: Hashable, function: Function, items: Sequence[Any], most: int
  ) -> concurrent.futures.Future[list[Any]]:
    """Queues items. See `Request` for the arguments.

    Returns:
      A future with the list of results, one for each item.

    Raises:
      limits.BusyError: too many items are waiting.
    """
    future: concurrent.futures.Future[list[Any]] = concurrent.futures.Future()
    deadline = time.monotonic() + self._limits.seconds
    with self._changed:
      if self._waiting + len(items) > self._limits.waiting or self._stopping:
        raise limits_lib.BusyError(
          f'{self._waiting:,} questions are waiting: try again later'
        )
      self._requests.append(
        Request(key, function, items, most, deadline, future)
      )
      self._count(len(items))
      self._changed.notify()
    return future

  def submit_job(self, job: Job) -> concurrent.futures.Future[Any]:
    """Queues a job.

    Args:
      job: the job. It must call its argument before each batch. This call runs
        waiting requests, and raises TimeLimitError after the time limit.

    Returns:
      A future with the result of the job.

    Raises:
      limits.BusyError: too many jobs are waiting.
    """
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()
    deadline = time.monotonic() + self._limits.seconds
    with self._changed:
      if len(self._jobs) >= self._limits.waiting_jobs or self._stopping:
        raise limits_lib.BusyError(
          f'too many long requests are waiting ({len(self._jobs)}): '
          'try again later'
        )
      self._jobs.append((job, deadline, future))
      self._changed.notify()
    return future

  def stop(self) -> None:
    """Answers all waiting requests and jobs, then ends the thread."""
    with self._changed:
      self._stopping = True
      self._changed.notify()
    self._thread.join()

  def _loop(self) -> None:
    while True:
      with self._changed:
        while not (self._requests or self._jobs or self._stopping):
          self._changed.wait()
        if not self._requests and not self._jobs:
          return
        job = None if self._requests else self._jobs.popleft()
      if job is None:
        self._run_requests(wait=True)
      else:
        self._run_job(*job)

  def _run_job(
    self, job: Job, deadline: float, future: concurrent.futures.Future[Any]
  ) -> None:
    """Runs a job, and the waiting requests between its batches."""

    def between() -> None:
      while self._requests:
        self._run_requests(wait=False)
      self._check(deadline)

    if not future.set_running_or_notify_cancel():
      return
    try:
      between()
      future.set_result(job(between))
    except BaseException as error:
      future.set_exception(error)

  def _run_requests(self, *, wait: bool) -> None:
    """Runs the oldest request, joined with requests that have the same key.

    Args:
      wait: whether to wait a short time for further requests. After a batch of
        one request there is no wait, so a single client is not delayed.
    """
    if wait and self._joined and not self._stopping:
      time.sleep(self._limits.join_seconds)
    batch = self._take()
    self._joined = len(batch) > 1
    running = [
      one for one in batch if one.future.set_running_or_notify_cancel()
    ]
    items: list[Any] = []
    kept = []
    for request in running:
      try:
        self._check(request.deadline)
      except limits_lib.TimeLimitError as error:
        request.future.set_exception(error)
        continue
      kept.append(request)
      items += request.items
    if not kept:
      return
    try:
      with self._metrics.batch(len(kept), len(items)):
        results = list(kept[0].function(items))
    except BaseException as error:
      for request in kept:
        request.future.set_exception(error)
      return
    start = 0
    for request in kept:
      stop = start + len(request.items)
      request.future.set_result(results[start:stop])
      start = stop

  def _take(self) -> list[Request]:
    """Takes the oldest request and all requests with which it can be joined."""
    with self._changed:
      first = self._requests.popleft()
      taken, size = [first], len(first.items)
      left: collections.deque[Request] = collections.deque()
      for request in self._requests:
        fits = size + len(request.items) <= first.most
        if request.key == first.key and fits:
          taken.append(request)
          size += len(request.items)
        else:
          left.append(request)
      self._requests = left
      self._count(-size)
    return taken

  def _count(self, change: int) -> None:
    self._waiting += change
    self._metrics.waiting.set(self._waiting)

  def _check(self, deadline: float) -> None:
    if time.monotonic() > deadline:
      raise limits_lib.TimeLimitError(
        f'the request took more than {self._limits.seconds:g} s'
      )
