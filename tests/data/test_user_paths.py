"""Tests that `~` is expanded, and that impossible paths are errors."""

import os
import pathlib

import pytest

import coke_jax
from coke_jax import compilation_cache, errors
from coke_jax.data import benchmarks, user_paths
from coke_jax.plots import readable_names
from coke_jax.predict import export
from coke_jax.storage import workdir

NOBODY = '~nobody-of-this-name/x'


def test_the_home_folder_is_expanded(monkeypatch):
  monkeypatch.setenv('HOME', '/home/me')
  assert user_paths.expand('~/runs') == pathlib.Path('/home/me/runs')
  assert user_paths.expand(pathlib.Path('a/~')) == pathlib.Path('a/~')


@pytest.mark.parametrize(
  ('path', 'expected'),
  [
    (NOBODY, 'no such user'),
    (pathlib.Path(NOBODY), 'no such user'),
    ('a\0b', 'contains NUL'),
    ('a\ud800b', r"contains '\\ud800', which is half of a character"),
    ('x' * 1000, r'too long'),
    ('x/' * 5000, r'too long'),
  ],
)
def test_impossible_folders(path, expected):
  with pytest.raises(errors.PathError, match=expected) as caught:
    coke_jax.load(path)
  assert len(str(caught.value)) < 400
  with pytest.raises(errors.PathError, match=expected):
    assert workdir.Workdir(path).exists


@pytest.mark.parametrize('path', [None, 3, b'runs', ['runs']])
def test_arguments_that_are_no_path(path):
  with pytest.raises(TypeError, match='expected a path, which is a str'):
    coke_jax.load(path)
  with pytest.raises(TypeError, match=type(path).__name__):
    workdir.Workdir(path)


def test_bytes_that_are_not_text_are_accepted():
  r"""Python decodes the byte 0xff of a file name to '\udcff'."""
  path = os.fsdecode(b'a\xff')
  assert user_paths.expand(path) == pathlib.Path(path)


@pytest.mark.parametrize(
  'use',
  [
    lambda path: benchmarks.locate('mine', path),
    compilation_cache.use,
    export.read,
    lambda path: export.write('.', path),
    readable_names.read_names,
  ],
)
def test_every_path_of_a_missing_user_is_an_error(use):
  with pytest.raises(errors.PathError, match='nobody-of-this-name'):
    use(NOBODY)
