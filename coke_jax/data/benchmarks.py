"""Named data sets: where they are, what they hold, how to get them.

A data set is a folder with one file a split. `locate` finds it, or downloads
it where a public address is known. What comes from the network is compared
with the SHA-256 of each file before anything else can see it.
"""

import dataclasses
import difflib
import hashlib
import http.client
import os
import pathlib
import tarfile
import tempfile
import urllib.request
import zlib

import tqdm

from coke_jax.data import text_files, user_cache

_TIMEOUT_SECONDS = 60
_MAX_BYTES = 64 << 20  # of one download, and of one file inside an archive
_CHUNK_BYTES = 1 << 16


@dataclasses.dataclass(frozen=True)
class Benchmark:
  """What is published about a data set.

  Attributes:
    entities: number of entities in all splits together.
    relations: number of relations in all splits together.
    lines: number of lines of each split.
    address: a .tar.gz archive that holds the files, or a folder (ends with /)
      of plain files, pinned to a commit. Empty: to be put in place by hand.
    sha256: of each split's file, uncompressed; may be empty without address.
    splits: the names of the files, without `.txt`.
  """

  entities: int
  relations: int
  lines: tuple[int, ...]
  address: str = ''
  sha256: tuple[str, ...] = ()
  splits: tuple[str, ...] = ('train', 'valid', 'test')


_GITHUB = 'https://raw.githubusercontent.com'
_CONVE = f'{_GITHUB}/TimDettmers/ConvE/f3c0eb286025410fa5b4c04696c918264163d0ca'
_ROTATE = (
  f'{_GITHUB}/DeepGraphLearning/KnowledgeGraphEmbedding/'
  '2e440e0f9c687314d5ff67ead68ce985dc446e3a/data'
)


_CODEX = (
  f'{_GITHUB}/tsafavi/codex/3132e426c2a6b643b70bad679905a3a6270be440/'
  'data/triples'
)

# fmt: off
_BENCHMARKS = {
  'FB15k': Benchmark(
    14_951, 1_345, (483_142, 50_000, 59_071), f'{_ROTATE}/FB15k/',
    ('f9cdfd2685f6483bd3a499d433919b15d62f0715c6cf18b2ca30c2aa5c47a704',
     '471929cde9cf74b1caa8348c2b601c8010d6b2f2a56bae49b4ebfd14c9bce855',
     '5b60b4de325482c3368e22d0b7452d465b09a610fea0ce3768d8b1e8b5a7e42a')),
  'WN18': Benchmark(
    40_943, 18, (141_442, 5_000, 5_000), f'{_ROTATE}/wn18/',
    ('24c9b02dc57d3ae8ca8467ce355995edee7be8eddc3bd070ee34d3c6fc3c95eb',
     '13347bfb5e17d1cae003e0bfe29b4716d3ab748e8cfb6af997138d37da3a51dc',
     'd22c19d176d4ba6a6f0d0c6bfce39ab3c16e3b20e1df6f9efe0d9ed86542fa10')),
  # The files of this archive end their lines with CR LF.
  'FB15k-237': Benchmark(
    14_541, 237, (272_115, 17_535, 20_466), f'{_CONVE}/FB15k-237.tar.gz',
    ('6e4c2782169af21e9743f3b1d200886f5d595bf6bc504ec1351720949c5cdfae',
     'cf6309010852f6a8d47a45df830a426415d1ee6f7a3970a8376ff1fb81db4a5c',
     '5711cf41623ceb4eacc50eb6108a3ca6565c7492e3caaf82a3e355cc660d1574')),
  'WN18RR': Benchmark(
    40_943, 11, (86_835, 3_034, 3_134), f'{_CONVE}/WN18RR.tar.gz',
    ('038612e783c215ee5f3ca9fbfca27b8d0739be1028fe4ee7c174aecf0b83d5df',
     '453ce7202afa58094a04d2b1560ee2b02660f1c260b32ce6651c8ccedd1028ab',
     '0383bceaaa1096cf3c03ec021ed0048068e2355dbfc0239b292cefdac821cec5')),
  'UMLS': Benchmark(
    135, 46, (5_216, 652, 661), f'{_CONVE}/umls.tar.gz',
    ('873ef4925516b83e7f6f8cc02b4be51d848828710a7f65a956f0ac4a9e452f35',
     '025c98f8a4891e2a6582ec5b40ee0d904031edad9c52554522f4b7904820c98e',
     'a7eb529a3d2810fcc96341ccc97c625a5e202f8389673aa6bd317eeebbb79014')),
  'Kinship': Benchmark(
    104, 25, (8_544, 1_068, 1_074), f'{_CONVE}/kinship.tar.gz',
    ('738612111a6acf0e39662bde24c7e72a4d1edf20931beea077da367dda689731',
     'c56f8630a583178b1e569f11a64aa535ae1ce0b0912d8b1e24716be2b37f04da',
     '05e5733265761d55be9c05bfaff5a8d0808df46f9c1e9d66cc3f2fe114e43d88')),
  'Nations': Benchmark(
    14, 55, (1_592, 199, 201), f'{_CONVE}/nations.tar.gz',
    ('0830fa9da8e5bba2ccdaa45b7bdc9130451ba66b09ff2708f35fccaf82473e57',
     '2b337a62e51a2f45c283eac98a70d21b7e0e102136be1539b2a52c652a7b0530',
     '3971085165b47b6aeaec68058c6d8d98b3005e929db81268410b95ae4db770ab')),
  'CoDEx-S': Benchmark(
    2_034, 42, (32_888, 1_827, 1_828), f'{_CODEX}/codex-s/',
    ('64f93b7f314f3936a6f65739721429db3f6a7c8f5a1e1104ec3bb544f7434f59',
     '3831c0e57daef03c3a18cdd1a72e370b496f696c5218883d35c7d2ab8a6a772c',
     '27127fcb34688c4778e88a39ef3c9b540807da846021e9d9685660ac1838aca1')),
  'CoDEx-M': Benchmark(
    17_050, 51, (185_584, 10_310, 10_311), f'{_CODEX}/codex-m/',
    ('d99c3437ab51690391a26d96976adf6e5494dba7ef6902e77000551bfa566556',
     '11c323096367354940846b9ed940c5dabddc1d20a70474222babe7e7fd28b28d',
     '0575ce05e4ce915e395bb4f708e8df9547989dd4c8c71407cbfd78c19daffcf7')),
  # Paths, each relation counted with its inverse; no public address is known.
  'PathQueryWN': Benchmark(
    38_551, 22, (2_129_539, 11_277, 46_577), splits=('train', 'dev', 'test')),
  'PathQueryFB': Benchmark(
    75_043, 26, (6_266_058, 27_163, 109_557), splits=('train', 'dev', 'test')),
  'countries': Benchmark(5_853, 13, (6_953, 235, 235)),
}


# fmt: on
_SHIPPED = pathlib.Path(__file__).resolve().parent  # holds the folder countries


def names() -> tuple[str, ...]:
  """The names that `locate` knows."""
  return tuple(_BENCHMARKS)


def locate(
  name: str, directory: str | None = None, *, download: bool = True
) -> pathlib.Path:
  """The folder that holds the files of a data set.

  It is `directory`, else `$COKE_DATA_DIR/<name>`, else the folder inside the
  package (countries), else the user's cache, which is filled when need be.

  Args:
    name: one of `names()`; any name for a graph of one's own.
    directory: the folder itself, when it is known.
    download: whether a missing data set may be fetched.

  Raises:
    DataError: with where was looked and which files to put where.
  """
  if directory:
    folder = pathlib.Path(directory).expanduser()
    if not folder.is_dir():
      raise text_files.DataError(
        f'{folder}: expected the folder of {name!r} here'
      )
    return folder
  root = os.environ.get('COKE_DATA_DIR', '')
  if root and name and (pathlib.Path(root) / name).is_dir():
    return pathlib.Path(root) / name
  if name not in _BENCHMARKS:
    raise text_files.DataError(_unknown(name, root))
  if (_SHIPPED / name).is_dir():
    return _SHIPPED / name

  cached = user_cache.folder('data') / name
  if cached.is_dir():
    for split in _BENCHMARKS[name].splits:
      text_files.find_split(cached, 'valid' if split == 'dev' else split)
    return cached
  if not _BENCHMARKS[name].address:
    reason = 'no public address is known'
  elif not download:
    reason = 'not on this machine, and downloading is off'
  else:
    try:
      _fill(cached, _BENCHMARKS[name])
      return cached
    except (
      OSError,
      EOFError,
      ValueError,
      http.client.HTTPException,
      tarfile.TarError,
      zlib.error,
    ) as error:
      reason = f'{_BENCHMARKS[name].address}: {type(error).__name__}: {error}'
  raise text_files.DataError(_missing(name, root, cached, reason))


def check_counts(
  name: str, *, entities: int, relations: int, train: int, valid: int, test: int
) -> None:
  """Compares what was read with what is published about a known data set.

  Raises:
    DataError: with every count that differs.
  """
  if name not in _BENCHMARKS:
    return
  published = _BENCHMARKS[name]
  kinds = ('entities', 'relations', 'train', 'valid', 'test')
  got = (entities, relations, train, valid, test)
  expected = (published.entities, published.relations, *published.lines)
  differences = [
    f'{kind}: got {ours:,}, expected {theirs:,}'
    for kind, ours, theirs in zip(kinds, got, expected, strict=True)
    if ours != theirs
  ]
  if differences:
    raise text_files.DataError(
      f'{name}: these are not the published files: {"; ".join(differences)}. '
      'Give a graph of your own another name'
    )


def _fill(folder: pathlib.Path, benchmark: Benchmark) -> None:
  """Makes `folder` with all files, or leaves nothing behind."""
  folder.parent.mkdir(parents=True, exist_ok=True)
  with tempfile.TemporaryDirectory(
    dir=folder.parent, prefix=f'.{folder.name}-'
  ) as temporary:
    complete = pathlib.Path(temporary) / folder.name
    complete.mkdir()
    wanted = [f'{split}.txt' for split in benchmark.splits]
    if benchmark.address.endswith('/'):
      for name in wanted:
        _fetch(benchmark.address + name, complete / name)
    else:
      archive = pathlib.Path(temporary) / 'archive'
      _fetch(benchmark.address, archive)
      _unpack(archive, complete, wanted)
    for name, expected in zip(wanted, benchmark.sha256, strict=True):
      got = hashlib.sha256((complete / name).read_bytes()).hexdigest()
      if got != expected:
        raise ValueError(f'{name}: SHA-256 is {got}, expected {expected}')
    try:
      complete.rename(folder)
    except OSError:
      if not folder.is_dir():  # else another process was faster: same files
        raise


def _fetch(address: str, path: pathlib.Path) -> None:
  """Downloads one file, at most _MAX_BYTES, with a bar on a terminal."""
  with (
    urllib.request.urlopen(address, timeout=_TIMEOUT_SECONDS) as response,
    path.open('wb') as out,
  ):
    length = response.headers.get('Content-Length')
    total = int(length) if length else None
    label = address.rsplit('/', 1)[-1]
    with tqdm.tqdm(
      desc=label, total=total, unit='B', unit_scale=True, disable=None
    ) as bar:
      while chunk := response.read(_CHUNK_BYTES):
        out.write(chunk)
        bar.update(len(chunk))
        if out.tell() > _MAX_BYTES:
          raise ValueError(f'{label}: more than {_MAX_BYTES:,} bytes')
    if total is not None and out.tell() != total:
      raise ValueError(f'{label}: got {out.tell():,} of {total:,} bytes')


def _unpack(
  path: pathlib.Path, folder: pathlib.Path, wanted: list[str]
) -> None:
  """Reads the wanted files out of an archive, in whatever folder they lie."""
  with tarfile.open(path, 'r:gz') as tar:
    for member in tar:
      if member.size > _MAX_BYTES:
        raise ValueError(f'{member.name}: more than {_MAX_BYTES:,} bytes')
      name = pathlib.PurePosixPath(member.name).name
      stream = tar.extractfile(member) if member.isfile() else None
      if name in wanted and stream:
        (folder / name).write_bytes(stream.read())
  for name in wanted:
    if not (folder / name).exists():
      raise ValueError(f'the archive has no {name}')


def _unknown(name: str, root: str) -> str:
  lower = {known.lower(): known for known in _BENCHMARKS}
  near = difflib.get_close_matches(name.lower(), lower, cutoff=0.5)
  guess = ' or '.join(lower[match] for match in near)
  return (
    f'no data set is called {name!r}'
    + (f': did you mean {guess}? ' if guess else '. ')
    + f'Known: {", ".join(_BENCHMARKS)}. For a graph of your own, give the '
    'folder of its train, valid and test files as data.dir'
    + _no_folder(name, root)
  )


def _missing(name: str, root: str, cached: pathlib.Path, reason: str) -> str:
  wanted = ', '.join(f'{split}.txt' for split in _BENCHMARKS[name].splits)
  folder = pathlib.Path(root) / name if root else cached
  return (
    f'{name}: {reason}. Put {wanted} into {folder}, or give their folder as '
    'data.dir' + _no_folder(name, root)
  )


def _no_folder(name: str, root: str) -> str:
  return f' (COKE_DATA_DIR={root} has no folder {name})' if root else ''
