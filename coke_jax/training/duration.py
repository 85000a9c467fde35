"""Estimates the time of a training from its first steps."""

LONG_HOURS = 2.0  # A longer training is announced.
_MEASURED_SECONDS = 10.0  # A shorter measurement is not used.


class Duration:
  """Measures the first steps of a training, and announces a long training."""

  def __init__(self, num_steps: int):
    """Starts without a measurement.

    Args:
      num_steps: number of steps of the whole training.
    """
    self._num_steps = num_steps
    self._announced = False
    self._start: tuple[int, float] | None = None

  def restart(self, step: int, now: float) -> None:
    """Starts the measurement, for example after the compilation.

    Args:
      step: number of steps done.
      now: the time in seconds.
    """
    self._start = step, now

  def announcement(self, step: int, now: float) -> str | None:
    """Returns a text if the rest of the training takes at least `LONG_HOURS`.

    Only the first call with a measured time of at least `_MEASURED_SECONDS` can
    return a text. All other calls return None.

    Args:
      step: number of steps done.
      now: the time in seconds.
    """
    if self._announced or self._start is None or step <= self._start[0]:
      return None
    seconds = now - self._start[1]
    if seconds < _MEASURED_SECONDS:
      return None
    self._announced = True
    step_seconds = seconds / (step - self._start[0])
    left = self._num_steps - step
    hours = left * step_seconds / 3600
    if hours < LONG_HOURS:
      return None
    time = f'{hours / 24:.1f} days' if hours > 48 else f'{hours:.1f} hours'
    return (
      f'this training will take about {time}: {left:,} steps of '
      f'{step_seconds:.3g} s, without validations. To train for an hour, start '
      'in another work folder with --minutes=60 (in Python: minutes=60). This '
      'option chooses the number of epochs. An interrupted training can be '
      'continued.'
    )
