"""The flags of `coke serve`."""

from coke_jax.cli import flag_types

_MODES = ('serve',)

TABLE = (
  flag_types.Flag(
    'host',
    _MODES,
    '127.0.0.1',
    'Address to bind to. By default, only this machine can connect.',
  ),
  flag_types.Flag('port', _MODES, 8000, 'Port. 0: any free port.'),
  flag_types.Flag(
    'token_file',
    _MODES,
    '',
    'File with a token. Requests must contain this token in the header '
    '"Authorization: Bearer <token>". Default: no token is needed.',
    is_path=True,
  ),
)
