"""Tests where data sets are found, and that downloads are complete."""

import contextlib
import functools
import hashlib
import http.server
import io
import lzma
import pathlib
import re
import tarfile
import threading
from collections.abc import Callable, Iterator

import pytest

from coke_jax.data import benchmarks, downloads, text_files

CONTENT = {
  'train.txt': b'a\tr\tb\nb\tr\tc\n',
  'valid.txt': b'a\tr\tc\r\n',
  'test.txt': 'ä\tr\tc\n'.encode(),
}
SHA256 = tuple(hashlib.sha256(text).hexdigest() for text in CONTENT.values())
# The lines of these data sets end with CR LF in the public archive.
CR_LF = {'FB15k-237'}

Answers = dict[str, bytes]
Serve = Callable[[Answers], str]


@pytest.fixture(autouse=True)
def cache(
  tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> pathlib.Path:
  """Returns an empty cache. Unsets the data folder and all proxies."""
  monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
  monkeypatch.delenv('COKE_DATA_DIR', raising=False)
  for variable in ('http_proxy', 'HTTP_PROXY', 'all_proxy', 'ALL_PROXY'):
    monkeypatch.delenv(variable, raising=False)
  return tmp_path / 'cache' / 'coke_jax' / 'data'


class Handler(http.server.BaseHTTPRequestHandler):
  """Sends fixed bytes. For a path that ends in .short, 10 bytes are missing."""

  def __init__(self, *arguments: object, answers: Answers) -> None:
    self.answers = answers
    super().__init__(*arguments)  # type: ignore[arg-type]

  def do_GET(self) -> None:
    body = self.answers.get(self.path.removesuffix('.short'))
    if body is None:
      self.send_error(404)
      return
    self.send_response(200)
    missing = 10 if self.path.endswith('.short') else 0
    self.send_header('Content-Length', str(len(body) + missing))
    self.end_headers()
    self.wfile.write(body)

  def log_message(self, *arguments: object) -> None:
    pass


@pytest.fixture
def serve() -> Iterator[Serve]:
  """Returns a function that starts a server and returns its address."""
  with contextlib.ExitStack() as stack:

    def start(answers: Answers) -> str:
      handler = functools.partial(Handler, answers=answers)
      server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
      stack.callback(server.server_close)
      thread = threading.Thread(target=server.serve_forever, args=(0.01,))
      thread.start()
      stack.callback(thread.join)
      stack.callback(server.shutdown)
      return f'http://127.0.0.1:{server.server_port}'

    yield start


def archive(content: dict[str, bytes], prefix: str = '') -> bytes:
  buffer = io.BytesIO()
  with tarfile.open(fileobj=buffer, mode='w:gz') as tar:
    for name, text in content.items():
      member = tarfile.TarInfo(prefix + name)
      member.size = len(text)
      tar.addfile(member, io.BytesIO(text))
  return buffer.getvalue()


def register(
  monkeypatch: pytest.MonkeyPatch,
  address: str,
  sha256: tuple[str, ...] = SHA256,
  **options: str,
) -> None:
  """Adds the data set Toy to `BENCHMARKS`."""
  toy = benchmarks.Benchmark(4, 1, (2, 1, 1), address, sha256, **options)
  monkeypatch.setitem(benchmarks.BENCHMARKS, 'Toy', toy)


def assert_downloaded(folder: pathlib.Path, cache: pathlib.Path) -> None:
  assert folder == cache / 'Toy'
  assert {p.name: p.read_bytes() for p in folder.iterdir()} == CONTENT
  assert [p.name for p in cache.iterdir()] == ['Toy']


def assert_empty(cache: pathlib.Path) -> None:
  assert not cache.exists() or not list(cache.iterdir())


# --- Location ---------------------------------------------------------------


def test_names() -> None:
  assert benchmarks.names() == (
    'FB15k',
    'WN18',
    'FB15k-237',
    'WN18RR',
    'UMLS',
    'Kinship',
    'Nations',
    'CoDEx-S',
    'CoDEx-M',
    'Wikidata5M',
    'PathQueryWN',
    'PathQueryFB',
    'countries',
  )


def test_addresses_are_pinned() -> None:
  for name, benchmark in benchmarks.BENCHMARKS.items():
    assert len(benchmark.lines) == len(benchmark.splits) == 3, name
    if benchmark.address:
      assert benchmark.address.startswith('https://'), name
      assert re.search('/[0-9a-f]{40}/', benchmark.address), name
      checksums = [benchmark.archive_sha256]
      if not benchmark.archive_sha256:
        checksums = list(benchmark.sha256)
        assert len(checksums) == 3, name
      assert all(re.fullmatch('[0-9a-f]{64}', sha) for sha in checksums), name


@pytest.mark.parametrize('name', ['UMLS', 'countries', 'my graph'])
def test_directory_comes_first(
  name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  monkeypatch.setenv('COKE_DATA_DIR', str(tmp_path))
  (tmp_path / name).mkdir()
  own = tmp_path / 'own'
  own.mkdir()
  assert benchmarks.locate(name, str(own)) == own


def test_directory_must_exist(tmp_path: pathlib.Path) -> None:
  with pytest.raises(text_files.DataError, match='nowhere'):
    benchmarks.locate('countries', str(tmp_path / 'nowhere'))


@pytest.mark.parametrize('name', ['UMLS', 'countries', 'my graph'])
def test_data_folder_comes_second(
  name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  monkeypatch.setenv('COKE_DATA_DIR', str(tmp_path))
  (tmp_path / name).mkdir()
  assert benchmarks.locate(name, download=False) == tmp_path / name


def test_cache_comes_third(
  cache: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  monkeypatch.setenv('COKE_DATA_DIR', str(tmp_path / 'other'))
  (cache / 'UMLS').mkdir(parents=True)
  for name, text in CONTENT.items():
    (cache / 'UMLS' / name).write_bytes(text)
  assert benchmarks.locate('UMLS', download=False) == cache / 'UMLS'


def test_incomplete_cache_is_an_error(cache: pathlib.Path) -> None:
  (cache / 'UMLS').mkdir(parents=True)
  (cache / 'UMLS' / 'train.txt').write_bytes(b'')
  with pytest.raises(text_files.DataError, match=r'UMLS: no file of valid'):
    benchmarks.locate('UMLS')


def test_countries_needs_no_network(cache: pathlib.Path) -> None:
  folder = benchmarks.locate('countries', download=False)
  assert text_files.find_split(folder, 'train').name == 'train.txt'
  assert_empty(cache)


@pytest.mark.parametrize(
  ('name', 'guess'),
  [('WN18-RR', 'WN18RR'), ('fb15k237', 'FB15k-237'), ('umls', 'UMLS')],
)
def test_unknown_name_suggests(name: str, guess: str) -> None:
  with pytest.raises(
    text_files.DataError, match=f'did you mean .*{guess}'
  ) as caught:
    benchmarks.locate(name)
  assert 'data.dir' in str(caught.value)


@pytest.mark.parametrize('name', ['', 'zzzzzzzz'])
def test_unknown_name_without_a_suggestion(
  name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  monkeypatch.setenv('COKE_DATA_DIR', str(tmp_path))
  with pytest.raises(text_files.DataError, match='Known: FB15k, ') as caught:
    benchmarks.locate(name)
  assert 'did you mean' not in str(caught.value)
  assert f'COKE_DATA_DIR={tmp_path} has no folder' in str(caught.value)


def test_downloading_can_be_turned_off(cache: pathlib.Path) -> None:
  with pytest.raises(
    text_files.DataError, match='downloading is off'
  ) as caught:
    benchmarks.locate('UMLS', download=False)
  assert str(cache / 'UMLS') in str(caught.value)
  assert 'train.txt, valid.txt, test.txt' in str(caught.value)
  assert 'COKE_DATA_DIR' not in str(caught.value)


def test_no_download_address(
  tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  paths = benchmarks.Benchmark(4, 1, (2, 1, 1), splits=('train', 'dev', 'test'))
  monkeypatch.setitem(benchmarks.BENCHMARKS, 'Paths', paths)
  monkeypatch.setenv('COKE_DATA_DIR', str(tmp_path))
  with pytest.raises(text_files.DataError, match='no public address') as caught:
    benchmarks.locate('Paths')
  assert f'train.txt, dev.txt, test.txt into {tmp_path / "Paths"}' in str(
    caught.value
  )


# --- Download ---------------------------------------------------------------


@pytest.mark.parametrize('prefix', ['', './', 'toy/data/'])
def test_archive(
  prefix: str,
  serve: Serve,
  cache: pathlib.Path,
  monkeypatch: pytest.MonkeyPatch,
) -> None:
  body = archive({'README': b'', **CONTENT}, prefix)
  register(monkeypatch, serve({'/toy.tar.gz': body}) + '/toy.tar.gz')
  assert_downloaded(benchmarks.locate('Toy'), cache)
  # A second call must not download.
  monkeypatch.setattr(downloads, 'fill_folder', None)
  assert_downloaded(benchmarks.locate('Toy'), cache)


@pytest.mark.parametrize('right', [True, False])
def test_archive_with_a_checksum_and_a_prefix(
  right: bool,
  serve: Serve,
  cache: pathlib.Path,
  monkeypatch: pytest.MonkeyPatch,
) -> None:
  body = archive({f'toy_{name}': text for name, text in CONTENT.items()})
  register(
    monkeypatch,
    serve({'/toy.tar.gz': body}) + '/toy.tar.gz',
    sha256=(),
    archive_sha256=hashlib.sha256(body if right else b'').hexdigest(),
    prefix='toy_',
  )
  if right:
    assert_downloaded(benchmarks.locate('Toy'), cache)
  else:
    with pytest.raises(text_files.DataError, match='archive: SHA-256 is'):
      benchmarks.locate('Toy')
    assert_empty(cache)


def test_plain_files(
  serve: Serve, cache: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  answers = {f'/toy/{name}': text for name, text in CONTENT.items()}
  register(monkeypatch, serve(answers) + '/toy/')
  assert_downloaded(benchmarks.locate('Toy'), cache)


@pytest.mark.parametrize(
  ('address', 'body', 'reason'),
  [
    ('/absent.tar.gz', b'', '404'),
    ('/absent/', b'', '404'),
    ('/toy.tar.gz', b'', 'ReadError'),
    ('/toy.tar.gz', b'no archive', 'ReadError'),
    ('/toy.tar.gz', archive(CONTENT)[:-40], 'Error'),
    ('/toy.tar.gz.short', archive(CONTENT), 'bytes'),
    ('/toy.tar.gz', archive({**CONTENT, 'valid.txt': b'?'}), 'valid.txt: SHA'),
    ('/toy.tar.gz', archive({'train.txt': b'?'}), 'no valid.txt'),
  ],
)
def test_failed_download_leaves_nothing(
  address: str,
  body: bytes,
  reason: str,
  serve: Serve,
  cache: pathlib.Path,
  monkeypatch: pytest.MonkeyPatch,
) -> None:
  address = serve({'/toy.tar.gz': body}) + address
  register(monkeypatch, address)
  with pytest.raises(text_files.DataError, match=reason) as caught:
    benchmarks.locate('Toy')
  assert address in str(caught.value)
  assert f'train.txt, valid.txt, test.txt into {cache / "Toy"}' in str(
    caught.value
  )
  assert_empty(cache)


def test_one_plain_file_missing(
  serve: Serve, cache: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  answers = {f'/toy/{name}': text for name, text in CONTENT.items()}
  del answers['/toy/test.txt']
  register(monkeypatch, serve(answers) + '/toy/')
  with pytest.raises(text_files.DataError, match='404'):
    benchmarks.locate('Toy')
  assert_empty(cache)


def test_connection_refused(
  cache: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  handler = http.server.BaseHTTPRequestHandler
  with http.server.HTTPServer(('127.0.0.1', 0), handler) as server:
    port = server.server_port  # This port is closed after the block.
  register(monkeypatch, f'http://127.0.0.1:{port}/toy.tar.gz')
  monkeypatch.setenv('COKE_DATA_DIR', str(tmp_path))
  with pytest.raises(text_files.DataError, match='refused') as caught:
    benchmarks.locate('Toy')
  assert f'into {tmp_path / "Toy"}' in str(caught.value)
  assert f'COKE_DATA_DIR={tmp_path} has no folder Toy' in str(caught.value)
  assert_empty(cache)


def test_sizes_are_bounded(
  serve: Serve, cache: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  body = archive({**CONTENT, 'zeros': bytes(1 << 20)})
  address = serve({'/toy.tar.gz': body, '/toy/train.txt': bytes(1 << 20)})
  monkeypatch.setattr(downloads, 'MAX_BYTES', 1 << 19)
  for kind in ('/toy.tar.gz', '/toy/'):
    register(monkeypatch, address + kind)
    with pytest.raises(text_files.DataError, match='more than 524,288 bytes'):
      benchmarks.locate('Toy')
    assert_empty(cache)


def test_links_in_an_archive_are_not_followed(
  serve: Serve, cache: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  buffer = io.BytesIO()
  with tarfile.open(fileobj=buffer, mode='w:gz') as tar:
    for name in CONTENT:
      link = tarfile.TarInfo(f'../{name}')
      link.type = tarfile.SYMTYPE
      link.linkname = '/etc/hostname'
      tar.addfile(link)
  address = serve({'/toy.tar.gz': buffer.getvalue()})
  register(monkeypatch, address + '/toy.tar.gz')
  with pytest.raises(text_files.DataError, match='no train'):
    benchmarks.locate('Toy')
  assert_empty(cache)


def test_cache_cannot_be_written(
  tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  (tmp_path / 'file').write_bytes(b'')
  monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'file'))
  register(monkeypatch, 'http://127.0.0.1:1/toy.tar.gz')
  with pytest.raises(text_files.DataError, match=r'Toy: .*NotADirectoryError'):
    benchmarks.locate('Toy')


def test_two_threads_download_at_the_same_time(
  serve: Serve, cache: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
  """Each thread renames its folder after both threads have downloaded."""
  answers = {f'/toy/{name}': text for name, text in CONTENT.items()}
  register(monkeypatch, serve(answers) + '/toy/')
  barrier = threading.Barrier(2)
  fetch = downloads.fetch

  def fetch_together(address: str, path: pathlib.Path, most: int) -> None:
    fetch(address, path, most)
    if address.endswith('test.txt'):
      barrier.wait(timeout=30)

  monkeypatch.setattr(downloads, 'fetch', fetch_together)
  found: list[pathlib.Path] = []
  threads = [
    threading.Thread(target=lambda: found.append(benchmarks.locate('Toy')))
    for _ in range(2)
  ]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert found == [cache / 'Toy'] * 2
  assert_downloaded(found[0], cache)


# --- Contents ---------------------------------------------------------------


def test_check_counts() -> None:
  right = {
    'entities': 135,
    'relations': 46,
    'train': 5216,
    'valid': 652,
    'test': 661,
  }
  benchmarks.check_counts('UMLS', **right)
  benchmarks.check_counts('my graph', **right)
  with pytest.raises(text_files.DataError) as caught:
    benchmarks.check_counts('UMLS', **{**right, 'entities': 1, 'valid': 1652})
  message = str(caught.value)
  assert 'entities: got 1, expected 135' in message
  assert 'valid: got 1,652, expected 652' in message
  assert 'train' not in message


PINNED = [name for name, b in benchmarks.BENCHMARKS.items() if b.sha256]


@pytest.mark.parametrize('name', PINNED)
def test_pins_match_the_files(
  name: str, benchmark_folder: Callable[[str], pathlib.Path]
) -> None:
  benchmark = benchmarks.BENCHMARKS[name]
  folder = benchmark_folder(name)
  for split, lines, sha256 in zip(
    benchmark.splits, benchmark.lines, benchmark.sha256, strict=True
  ):
    compressed = (folder / f'{split}.txt.xz').read_bytes()
    text = lzma.decompress(compressed)
    assert text.count(b'\n') == lines
    if name in CR_LF and b'\r\n' not in text:
      text = text.replace(b'\n', b'\r\n')
    assert hashlib.sha256(text).hexdigest() == sha256
