"""Named data sets: their sources and their published counts.

A data set is a folder with one file for each split. `locate` finds this folder.
If the folder is missing and a public address is known, `locate` downloads the
files and checks their SHA-256.
"""

import dataclasses
import difflib
import http.client
import os
import pathlib
import tarfile
import zlib

from coke_jax.data import downloads, text_files, user_cache, user_paths

# The folder of the data sets that are part of this package.
_PACKAGED = pathlib.Path(__file__).resolve().parent
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
_WIKIDATA5M = (
  'https://huggingface.co/datasets/intfloat/wikidata5m/resolve/'
  '46ab65882eee5911004bb2a40e0f1f26ed8853c9'
)


@dataclasses.dataclass(frozen=True)
class Benchmark:
  """The published counts and the source of a data set.

  Attributes:
    entities: number of entities in all splits together.
    relations: number of relations in all splits together. The number for path
      data includes inverse relations.
    lines: number of lines of each split.
    address: a URL that contains a commit hash. A URL that ends with `/` is a
      folder of plain files. Any other URL is a .tar.gz archive. Empty (the
      default): the files cannot be downloaded.
    sha256: the SHA-256 of each split's uncompressed file. Default: not checked.
    splits: the names of the files, without `.txt`.
    archive_sha256: the SHA-256 of the archive. Default: not checked.
    prefix: the start of the file names in the archive, such as
      `wikidata5m_transductive_`. Default: empty.
    max_bytes: the maximum size of the archive and of each file. 0 (the
      default): `downloads.MAX_BYTES`.
  """

  entities: int
  relations: int
  lines: tuple[int, ...]
  address: str = ''
  sha256: tuple[str, ...] = ()
  splits: tuple[str, ...] = ('train', 'valid', 'test')
  archive_sha256: str = ''
  prefix: str = ''
  max_bytes: int = 0


# The data sets that `locate` finds by name.
# fmt: off
BENCHMARKS = {
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
  # The lines of the files in this archive end with CR LF.
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
  # The transductive split. The publisher of the archive lists its SHA-256.
  'Wikidata5M': Benchmark(
    4_594_485, 822, (20_614_279, 5_163, 5_133),
    f'{_WIKIDATA5M}/wikidata5m_transductive.tar.gz',
    archive_sha256=
      '383160990b41c0905fc03f4a8afbb9b12be1ca3591e026bde6cdc94a59542597',
    prefix='wikidata5m_transductive_',
    max_bytes=2 << 30),
  # Path data. No public address is known.
  'PathQueryWN': Benchmark(
    38_551, 22, (2_129_539, 11_277, 46_577), splits=('train', 'dev', 'test')),
  'PathQueryFB': Benchmark(
    75_043, 26, (6_266_058, 27_163, 109_557), splits=('train', 'dev', 'test')),
  # A graph in the folder of this module.
  'countries': Benchmark(5_853, 13, (6_953, 235, 235)),
}
# fmt: on


def names() -> tuple[str, ...]:
  """Returns the names of the data sets in `BENCHMARKS`."""
  return tuple(BENCHMARKS)


def locate(
  name: str, folder: str | None = None, *, download: bool = True
) -> pathlib.Path:
  """Finds the folder with the files of a data set.

  If `folder` is given, returns it. Otherwise returns the first of these folders
  that exists: `$COKE_DATA_DIR/<name>`, the folder in the package (countries
  only), and the folder in the user's cache. If none exists, downloads the files
  into the cache.

  Args:
    name: one of `names()`, or any name if `folder` or `$COKE_DATA_DIR/<name>`
      exists.
    folder: the folder of the files. Default: search for it by name.
    download: whether a missing data set may be downloaded. Default: True.

  Returns:
    The folder. Only a folder in the cache is checked for missing files.

  Raises:
    text_files.DataError: there is no such folder or data set, the folder in the
      cache lacks a file, or the download failed.
  """
  if folder:
    given = user_paths.expand(folder)
    if not given.is_dir():
      raise text_files.DataError(
        f'{given}: not a folder: expected the folder of {name!r}'
      )
    return given
  root = os.environ.get('COKE_DATA_DIR', '')
  if root and name and (pathlib.Path(root) / name).is_dir():
    return pathlib.Path(root) / name
  if name not in BENCHMARKS:
    raise text_files.DataError(_unknown(name, root))
  if (_PACKAGED / name).is_dir():
    return _PACKAGED / name

  cached = user_cache.folder('data') / name
  benchmark = BENCHMARKS[name]
  if cached.is_dir():
    for split in benchmark.splits:
      text_files.find_split(cached, 'valid' if split == 'dev' else split)
    return cached
  if not benchmark.address:
    reason = 'no public address is known'
  elif not download:
    reason = 'not on this machine, and downloading is off'
  else:
    files = [f'{split}.txt' for split in benchmark.splits]
    try:
      downloads.fill_folder(
        cached,
        benchmark.address,
        dict(zip(files, benchmark.sha256 or [''] * len(files), strict=True)),
        archive_sha256=benchmark.archive_sha256,
        prefix=benchmark.prefix,
        max_bytes=benchmark.max_bytes,
      )
      return cached
    except (
      OSError,
      EOFError,
      ValueError,
      http.client.HTTPException,
      tarfile.TarError,
      zlib.error,
    ) as error:
      reason = f'{benchmark.address}: {type(error).__name__}: {error}'
  raise text_files.DataError(_missing(name, root, cached, reason))


def check_counts(
  name: str, *, entities: int, relations: int, train: int, valid: int, test: int
) -> None:
  """Checks that a data set has its published counts.

  Args:
    name: the name of the data set. Names outside `names()` are not checked.
    entities: number of entities read.
    relations: number of relations read.
    train: number of lines read from the training split.
    valid: number of lines read from the validation split.
    test: number of lines read from the test split.

  Raises:
    text_files.DataError: a count differs. The message lists all differences.
  """
  if name not in BENCHMARKS:
    return
  published = BENCHMARKS[name]
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
      f'{name}: not the published files: {"; ".join(differences)}. For a '
      'graph of your own, choose another name'
    )


def _unknown(name: str, root: str) -> str:
  """Returns the error message for a name that is not in BENCHMARKS."""
  lower = {known.lower(): known for known in BENCHMARKS}
  near = difflib.get_close_matches(name.lower(), lower, cutoff=0.5)
  guess = ' or '.join(lower[match] for match in near)
  return (
    f'no data set is called {name!r}'
    + (f': did you mean {guess}? ' if guess else '. ')
    + f'Known: {", ".join(BENCHMARKS)}. For a graph of your own, give the '
    'folder of its train, valid and test files as data.dir'
    + _no_folder(name, root)
  )


def _missing(name: str, root: str, cached: pathlib.Path, reason: str) -> str:
  """Returns the error message for files that cannot be obtained."""
  wanted = ', '.join(f'{split}.txt' for split in BENCHMARKS[name].splits)
  folder = pathlib.Path(root) / name if root else cached
  return (
    f'{name}: {reason}. Put {wanted} into {folder}, or give their folder as '
    'data.dir' + _no_folder(name, root)
  )


def _no_folder(name: str, root: str) -> str:
  return f' (COKE_DATA_DIR={root} has no folder {name})' if root else ''
