"""Addresses at which a server can be opened in a browser."""

import ipaddress
import socket

# Addresses that are reserved for documentation. Nothing is sent to them.
_OUTSIDE = {socket.AF_INET: '192.0.2.1', socket.AF_INET6: '2001:db8::1'}
_LOOPBACK = {4: '127.0.0.1', 6: '::1'}


def is_local(host: str) -> bool:
  """Returns whether only this machine can connect to an address."""
  try:
    return ipaddress.ip_address(host).is_loopback
  except ValueError:
    return host == 'localhost'


def is_unspecified(host: str) -> bool:
  """Returns whether a host means all addresses: `0.0.0.0` or `::`."""
  try:
    return ipaddress.ip_address(host).is_unspecified
  except ValueError:
    return False


def url(host: str, port: int) -> str:
  """Returns the address for a browser."""
  return f'http://{f"[{host}]" if ":" in host else host}:{port}'


def here(host: str, port: int) -> str:
  """Returns the address for a browser on this machine.

  Args:
    host: the address to which the server is bound.
    port: the port.
  """
  if is_unspecified(host):
    host = _LOOPBACK[ipaddress.ip_address(host).version]
  return url(host, port)


def elsewhere(host: str, port: int) -> list[str]:
  """Returns the addresses for browsers on other machines.

  Args:
    host: the address to which the server is bound.
    port: the port.

  Returns:
    No address if only this machine can connect. If the server is bound to all
    addresses, the name of this machine and its addresses in the network.
    Otherwise, the address to which the server is bound.
  """
  if is_local(host):
    return []
  if not is_unspecified(host):
    return [url(host, port)]
  families = [socket.AF_INET]
  if ipaddress.ip_address(host).version == 6:
    # By default, a system also accepts IPv4 connections at `::`.
    families = [socket.AF_INET6, socket.AF_INET]
  names = [socket.gethostname(), *map(_own_address, families)]
  return [url(name, port) for name in names if name]


def _own_address(family: socket.AddressFamily) -> str:
  """Returns the network address of this machine, or '' if there is none."""
  try:
    with socket.socket(family, socket.SOCK_DGRAM) as found:
      # Connecting a datagram socket only chooses a route.
      found.connect((_OUTSIDE[family], 9))
      return str(found.getsockname()[0])
  except OSError:
    return ''
