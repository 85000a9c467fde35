"""Tests the addresses that a server states, and opens them."""

import socket

import http_client
import pytest

import coke_jax
from coke_jax.serve import addresses, server


def resolves(url):
  """Returns whether the host name in a URL has an address."""
  name = url.removeprefix('http://').rpartition(':')[0].strip('[]')
  try:
    return bool(socket.getaddrinfo(name, None))
  except OSError:
    return False


@pytest.mark.parametrize(
  ('host', 'here', 'elsewhere'),
  [
    ('127.0.0.1', 'http://127.0.0.1:80', []),
    ('localhost', 'http://localhost:80', []),
    ('::1', 'http://[::1]:80', []),
    ('192.0.2.7', 'http://192.0.2.7:80', ['http://192.0.2.7:80']),
    ('2001:db8::7', 'http://[2001:db8::7]:80', ['http://[2001:db8::7]:80']),
    ('graph.example', 'http://graph.example:80', ['http://graph.example:80']),
  ],
)
def test_one_address_is_stated_as_it_is(host, here, elsewhere):
  assert addresses.here(host, 80) == here
  assert addresses.elsewhere(host, 80) == elsewhere


@pytest.mark.parametrize(
  ('host', 'here'),
  [('0.0.0.0', 'http://127.0.0.1:80'), ('::', 'http://[::1]:80')],
)
def test_an_unspecified_host_is_stated_as_usable_addresses(host, here):
  assert addresses.here(host, 80) == here
  found = addresses.elsewhere(host, 80)
  assert found[0] == f'http://{socket.gethostname()}:80'
  assert not any('0.0.0.0' in url or '[::]' in url for url in found)


def test_every_stated_address_can_be_opened():
  # `0` is another way to write 0.0.0.0.
  options = server.Options(host='0', port=0, token='secret', warm_up=False)
  with server.Server(coke_jax.EXAMPLE_MODEL, options) as running:
    assert running.address == f'http://127.0.0.1:{running.port}'
    for url in filter(resolves, [running.address, *running.other_addresses]):
      assert http_client.exchange(url, '/healthz').status == 200, url
