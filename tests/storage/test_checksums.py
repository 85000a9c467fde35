"""Tests that checksums detect each missing, changed or additional file."""

import hashlib
import shutil
import subprocess

import pytest

from coke_jax.storage import checksums

CONTENT = {
  'a.bin': b'\x00\r\n\xff' * 9,
  'b c.json': b'{}\n',
  'Z\u00fcrich': b'',
}


@pytest.fixture
def folder(tmp_path):
  for name, content in CONTENT.items():
    (tmp_path / name).write_bytes(content)
  checksums.write(tmp_path)
  return tmp_path


def test_the_list(folder):
  lines = (folder / 'SHA256SUMS').read_text(encoding='utf-8').splitlines()
  assert lines == [
    f'{hashlib.sha256(CONTENT[name]).hexdigest()}  {name}'
    for name in sorted(CONTENT)
  ]
  checksums.check(folder)


@pytest.mark.skipif(not shutil.which('sha256sum'), reason='no sha256sum')
def test_the_tool_reads_the_list(folder):
  command = ['sha256sum', '--check', '--strict', 'SHA256SUMS']
  assert (
    subprocess.run(command, cwd=folder, capture_output=True).returncode == 0
  )
  (folder / 'a.bin').write_bytes(b'other')
  assert (
    subprocess.run(command, cwd=folder, capture_output=True).returncode == 1
  )


def test_writing_again_lists_the_same(folder):
  before = (folder / 'SHA256SUMS').read_bytes()
  checksums.write(folder)
  assert (folder / 'SHA256SUMS').read_bytes() == before


@pytest.mark.parametrize('name', CONTENT)
def test_a_changed_file_is_named(folder, name):
  (folder / name).write_bytes(CONTENT[name] + b'1')
  wrong = hashlib.sha256(CONTENT[name] + b'1').hexdigest()
  right = hashlib.sha256(CONTENT[name]).hexdigest()
  with pytest.raises(
    checksums.ChecksumError, match=f'{name}: .* is {wrong}, expected {right}'
  ):
    checksums.check(folder)


@pytest.mark.parametrize('name', CONTENT)
def test_a_missing_file_is_named(folder, name):
  (folder / name).unlink()
  expected = f'no {name}: expected all files listed in SHA256SUMS'
  with pytest.raises(checksums.ChecksumError, match=expected):
    checksums.check(folder)


def test_a_folder_in_the_place_of_a_file(folder):
  (folder / 'a.bin').unlink()
  (folder / 'a.bin').mkdir()
  with pytest.raises(checksums.ChecksumError, match=r'a\.bin: cannot be read'):
    checksums.check(folder)


def test_additional_files_are_errors_unless_hidden(folder):
  (folder / '.DS_Store').write_bytes(b'x')
  checksums.check(folder)
  (folder / 'more').mkdir()
  with pytest.raises(checksums.ChecksumError, match='more: not listed in'):
    checksums.check(folder)


@pytest.mark.parametrize('lines', ['missing', 'undecodable'])
def test_no_list(folder, lines):
  if lines == 'missing':
    (folder / 'SHA256SUMS').unlink()
    wanted = 'no SHA256SUMS: expected one'
  else:
    (folder / 'SHA256SUMS').write_bytes(b'\xff')
    wanted = 'SHA256SUMS: cannot be read'
  with pytest.raises(checksums.ChecksumError, match=wanted):
    checksums.check(folder)


@pytest.mark.parametrize(
  'line',
  [
    '',
    'a.bin',
    '0' * 63 + '  a.bin',
    'A' * 64 + '  a.bin',
    '0' * 64 + ' *a.bin',
    '0' * 64 + '  ../a.bin',
    '0' * 64 + '  /etc/hostname',
    '\\' + '0' * 64 + '  a\\nb',
    '0' * 64 + '  a.bin\r',
  ],
)
def test_a_wrong_line_is_quoted(folder, line):
  path = folder / 'SHA256SUMS'
  with path.open('a', encoding='utf-8', newline='') as stream:
    stream.write(f'{line}\n')
  with pytest.raises(checksums.ChecksumError, match='SHA256SUMS:4: ') as caught:
    checksums.check(folder)
  assert repr(f'{line}\n')[1:-2] in str(caught.value)


def test_every_flipped_byte_of_the_list_is_noticed(folder):
  path = folder / 'SHA256SUMS'
  original = path.read_bytes()
  for place in range(len(original)):
    for bits in (0x01, 0x20, 0x80):
      changed = bytearray(original)
      changed[place] ^= bits
      path.write_bytes(changed)
      with pytest.raises(checksums.ChecksumError):
        checksums.check(folder)


def test_a_tree_is_compared_by_path(tmp_path):
  (tmp_path / 'd' / 'e').mkdir(parents=True)
  (tmp_path / 'd' / 'e' / 'x').write_bytes(b'1')
  (tmp_path / 'y').write_bytes(b'2')
  listed = checksums.of_tree(tmp_path)
  assert listed == {
    'd/e/x': hashlib.sha256(b'1').hexdigest(),
    'y': hashlib.sha256(b'2').hexdigest(),
  }
  (tmp_path / 'z').write_bytes(b'not listed')
  checksums.compare(tmp_path, listed, 'a test')
  (tmp_path / 'd' / 'e' / 'x').write_bytes(b'3')
  with pytest.raises(
    checksums.ChecksumError, match=r'd/e/x: is damaged: .*, as in a test'
  ):
    checksums.compare(tmp_path, listed, 'a test')
