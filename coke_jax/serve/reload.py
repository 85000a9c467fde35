"""Loads the model of a folder, and loads it again when its files change."""

import hashlib
import logging
import os
import threading

from coke_jax.data import user_paths
from coke_jax.predict import calibration_files
from coke_jax.serve import engine as engine_lib
from coke_jax.serve import served as served_lib
from coke_jax.serve import warm_up as warm_up_lib

_logger = logging.getLogger(__name__)

# A new model changes the size or time of at least one of these files, or the
# names in the folder of the checkpoints.
_WATCHED = (
  'model.safetensors',
  calibration_files.NAME,
  'vocabulary.json',
  'data.npz',
)


class Reloader:
  """Keeps the model of an engine up to date with its folder."""

  def __init__(
    self,
    folder: str | os.PathLike[str],
    engine: engine_lib.Engine,
    *,
    warm_up: bool,
  ):
    self._folder = user_paths.expand(folder)
    self._engine = engine
    self._warm_up = warm_up
    self._state = ''
    self._stopped = threading.Event()
    self._thread: threading.Thread | None = None
    self._background: warm_up_lib.Background | None = None

  def load(self) -> None:
    """Loads the model. Errors are those of `load.load`."""
    state = self._look()
    self._replace(self._load())
    self._state = state

  def start(self, seconds: float) -> None:
    """Starts a thread that looks for changes.

    Args:
      seconds: the time between two checks.
    """
    self._thread = threading.Thread(
      target=self._watch, args=(seconds,), name='coke_jax-reload', daemon=True
    )
    self._thread.start()

  def stop(self) -> None:
    """Ends the thread that looks for changes and the one that compiles."""
    self._stopped.set()
    if self._thread is not None:
      self._thread.join()
    if self._background is not None:
      self._background.stop()

  def check(self) -> bool:
    """Loads the model if its folder has changed.

    If the new model cannot be loaded, because a file is being written or is
    damaged, the current model is kept.

    Returns:
      Whether the model was replaced.
    """
    state = self._look()
    if state == self._state:
      return False
    before = self._engine.current()
    try:
      served = self._load()
    # Loading from a folder that is being written can raise any error.
    except Exception as error:
      _logger.warning('%s: the model is not replaced: %s', self._folder, error)
      self._engine.metrics.reloads.labels('failed').inc()
      return False
    self._state = state
    if served.describes(before):
      return False
    self._replace(served)
    self._engine.metrics.reloads.labels('loaded').inc()
    _logger.info('%s: now serving %s', self._folder, served.identity)
    return True

  def _load(self) -> served_lib.Served:
    served = served_lib.load_served(self._folder)
    if self._warm_up:
      warm_up_lib.predictions(served)
      if _is_cut(served):
        warm_up_lib.other_requests(served)
    return served

  def _replace(self, served: served_lib.Served) -> None:
    """Uses a model for all later requests."""
    self._engine.replace(served)
    if self._background is not None:
      self._background.stop()
    # The new model usually shares the compiled programs of the previous model,
    # so its warm-up takes little time.
    if self._warm_up and not _is_cut(served):
      self._background = warm_up_lib.Background(served)

  def _watch(self, seconds: float) -> None:
    while not self._stopped.wait(seconds):
      self.check()

  def _look(self) -> str:
    """Returns a text that changes with the files of the model."""
    seen = []
    for name in _WATCHED:
      try:
        found = os.stat(self._folder / name)
        seen.append((name, found.st_mtime_ns, found.st_size))
      except OSError:
        seen.append((name, 0, 0))
    try:
      steps = sorted(os.listdir(self._folder / 'checkpoints'))
    except OSError:
      steps = []
    return hashlib.sha256(repr((seen, steps)).encode()).hexdigest()


def _is_cut(served: served_lib.Served) -> bool:
  """Returns whether the devices communicate while they run a program.

  Two threads must not run such programs at the same time, because the devices
  could start them in different orders and wait for each other.
  """
  return served.model.predictor.scorer.placement.is_cut
