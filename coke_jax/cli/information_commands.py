"""The command that prints information about the built-in configs."""

import os

import ml_collections

from coke_jax import builtin_configs
from coke_jax import config as config_lib


def configs(
  config: ml_collections.ConfigDict | None,
  workdir: str | os.PathLike[str],
  *,
  show: str,
) -> None:
  """Lists the built-in configs, or prints the file of one of them.

  Args:
    config: not used.
    workdir: not used.
    show: the name of a config. If it is empty, all configs are listed.

  Raises:
    config.ConfigError: there is no such config.
  """
  del config, workdir
  names = builtin_configs.names()
  if not show:
    width = max(map(len, names), default=0)
    for name in names:
      print(f'{name:{width}}  {builtin_configs.summary(name)}')
    return
  path = builtin_configs.path(show)
  if path is None:
    near = builtin_configs.closest(show)
    hint = f'did you mean {" or ".join(near)}?' if near else 'see coke configs'
    raise config_lib.ConfigError(f'{show}: no such built-in config: {hint}')
  print(path.read_text(encoding='utf-8'), end='')
