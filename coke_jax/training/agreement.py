"""Lets all processes save and stop after the same training step."""

import jax
import numpy as np

from coke_jax import hosts, parallel


class Agreement:
  """Decides for all processes whether to save or stop after a training step.

  If there are several processes, every call of `reach` sends a message to all
  processes. Only the next call reads the message, so no call waits for the
  devices.
  """

  def __init__(self) -> None:
    self._sent: jax.Array | None = None

  def reach(
    self, saving_is_due: bool, received: int | None
  ) -> tuple[bool, int]:
    """Returns a decision that is equal in all processes.

    All processes must call this method after every call of the train step.

    Args:
      saving_is_due: whether a checkpoint is due in this process.
      received: the number of a signal that this process received, or None.

    Returns:
      Whether a checkpoint is due in any process. Then the number of a signal
      that any process received, or 0. If there are several processes, the
      result belongs to the arguments of the previous call. The first call
      returns False and 0.
    """
    own = (bool(saving_is_due), received or 0)
    if hosts.num_processes() == 1:
      return own
    before = self._sent
    self._sent = parallel.start_maximum(np.array(own, np.int32))
    if before is None:
      return False, 0
    saving, signal_number = jax.device_get(before)[0].tolist()
    return bool(saving), signal_number
