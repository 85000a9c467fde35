"""Checks that the cache folder follows the XDG specification."""

import pathlib

import pytest

from coke_jax.data import user_cache


@pytest.mark.parametrize('xdg_home', ['', 'relative/folder', None])
def test_without_an_absolute_xdg_home(monkeypatch, tmp_path, xdg_home):
  monkeypatch.setenv('HOME', str(tmp_path))
  monkeypatch.delenv('XDG_CACHE_HOME', raising=False)
  if xdg_home is not None:
    monkeypatch.setenv('XDG_CACHE_HOME', xdg_home)
  expected = pathlib.Path(tmp_path) / '.cache' / 'coke_jax' / 'paths'
  assert user_cache.folder('paths') == expected


def test_with_an_absolute_xdg_home(monkeypatch, tmp_path):
  monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))
  assert user_cache.folder('data') == tmp_path / 'coke_jax' / 'data'
