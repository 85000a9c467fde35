"""The flags for training and evaluation in several processes.

The module `hosts` describes these processes.
"""

import contextlib
import os
from collections.abc import Iterator

from coke_jax import hosts, progress_bar
from coke_jax.cli import flag_types

_MODES = ('train', 'evaluate')

TABLE = (
  flag_types.Flag(
    'coordinator',
    _MODES,
    '',
    'Address and free port of the host that runs process 0, such as '
    '10.0.0.1:1234. Default: Slurm, Open MPI or the TPU pod provides the '
    'address.',
  ),
  flag_types.Flag(
    'num_processes',
    _MODES,
    0,
    'Number of processes that work together. Default: the cluster provides the '
    'number, or 1 without a cluster.',
  ),
  flag_types.Flag(
    'process_id',
    _MODES,
    -1,
    'Number of this process, from 0. Process 0 reads and writes all files, '
    'except for the shards in checkpoints. Default: the cluster provides the '
    'number.',
  ),
)


@contextlib.contextmanager
def joined(
  coordinator: str, num_processes: int, process_id: int
) -> Iterator[None]:
  """Connects the processes, and hides the output of all but process 0.

  Arguments and errors are those of `hosts.joined`.
  """
  with contextlib.ExitStack() as stack:
    if coordinator and num_processes > 1:
      print(
        f'process {process_id} of {num_processes} connects to the others at '
        f'{coordinator}',
        flush=True,
      )
    stack.enter_context(hosts.joined(coordinator, num_processes, process_id))
    if not hosts.is_main():
      progress_bar.hide()
      nothing = stack.enter_context(open(os.devnull, 'w', encoding='utf-8'))
      stack.enter_context(contextlib.redirect_stdout(nothing))
    yield
