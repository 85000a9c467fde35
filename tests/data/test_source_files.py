"""Tests that a change of the data files is noticed."""

import gzip
import hashlib

import pytest

from coke_jax.data import source_files, text_files

LINE = 'a\tr,s\tb\n'


@pytest.fixture
def folder(tmp_path):
  for name in ('train', 'dev', 'test', 'test_deduction', 'test_induction'):
    (tmp_path / name).write_text(LINE if name != 'test_induction' else '')
  return tmp_path


def test_files_of_paths_include_deduction_and_induction(folder):
  files = source_files.find(folder, paths=True)
  assert {role: path.name for role, path in files.items()} == {
    'train': 'train',
    'valid': 'dev',
    'test': 'test',
    'test deduction': 'test_deduction',
    'test induction': 'test_induction',
  }
  assert set(source_files.find(folder, paths=False)) == {
    'train',
    'valid',
    'test',
  }


def test_every_changed_file_is_described(folder):
  expected = source_files.digests(source_files.find(folder, paths=True))
  assert expected['train'] == hashlib.sha256(LINE.encode()).hexdigest()

  def changes():
    return source_files.changes(
      'mine', str(folder), paths=True, expected=expected
    )

  assert changes() == []
  (folder / 'dev').unlink()
  (folder / 'dev.gz').write_bytes(gzip.compress(LINE.encode()))
  assert changes() == []
  for name in ('train', 'test_induction'):
    (folder / name).write_text('c\tr\td\n')
  first, second = changes()
  assert first.startswith(f'{folder / "train"}: has changed: ')
  assert second.startswith(f'{folder / "test_induction"}: has changed: ')
  (folder / 'test_deduction').unlink()
  assert changes() == []  # If a file is missing, no files are compared.


def test_an_unreadable_file_is_an_error(folder):
  (folder / 'dev').unlink()
  (folder / 'dev.gz').write_bytes(b'no archive')
  with pytest.raises(text_files.DataError, match=r'dev\.gz: cannot be read'):
    source_files.digests(source_files.find(folder, paths=True))
