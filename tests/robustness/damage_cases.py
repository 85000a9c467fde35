"""What can happen to a work folder, for `damage.py`."""

import contextlib
import dataclasses
import fcntl
import functools
import pathlib
import random
import shutil
from collections.abc import Callable, Iterator

import forks

Damage = Callable[[pathlib.Path, random.Random], None]

# Bytes that a file may have: the least ones stop the log, the others the
# checkpoints, at this file or that.
_MOST_BYTES = (0, 300, 3000, 10_000, 12_000, 15_000, 18_000)


@dataclasses.dataclass(frozen=True)
class Case:
  """Something that is damaged.

  Attributes:
    name: in words, the same in every run.
    file: what is damaged, below the work folder.
    damage: does it to a work folder.
  """

  name: str
  file: str
  damage: Damage


@dataclasses.dataclass(frozen=True)
class Hindrance:
  """Something that keeps the program from writing, for a while.

  Attributes:
    name: in words.
    limit: wraps what the program does.
    hold: a context in which the work folder cannot be written.
  """

  name: str
  limit: Callable[[forks.Work], forks.Work] = lambda work: work
  hold: Callable[[pathlib.Path], contextlib.AbstractContextManager[None]] = (
    lambda work: contextlib.nullcontext()
  )


# ----------------------------------------------------------- kinds of damage


def missing(path: pathlib.Path, _: random.Random) -> None:
  """The file is gone."""
  path.unlink()


def empty(path: pathlib.Path, _: random.Random) -> None:
  """The file has no bytes."""
  path.write_bytes(b'')


def truncated(path: pathlib.Path, generator: random.Random) -> None:
  """The end is missing."""
  data = path.read_bytes()
  path.write_bytes(data[: generator.randrange(max(len(data), 1))])


def flipped(path: pathlib.Path, generator: random.Random) -> None:
  """One bit is another."""
  data = bytearray(path.read_bytes() or b'x')
  data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
  path.write_bytes(bytes(data))


def zeros(path: pathlib.Path, _: random.Random) -> None:
  """As after a power cut: the right length, and nothing in it."""
  path.write_bytes(bytes(path.stat().st_size))


def noise(path: pathlib.Path, generator: random.Random) -> None:
  """Random bytes."""
  path.write_bytes(generator.randbytes(path.stat().st_size))


def a_folder(path: pathlib.Path, _: random.Random) -> None:
  """A folder has the file's name."""
  path.unlink()
  path.mkdir()


DAMAGES: tuple[Damage, ...] = (
  missing, empty, truncated, flipped, flipped, flipped, zeros, noise, a_folder,
)  # fmt: skip


# ---------------------------------------------------------------------- cases


def steps(work: pathlib.Path) -> list[pathlib.Path]:
  """The folders of the checkpoints, the newest first."""
  return sorted(
    (work / 'checkpoints').glob('step_*'),
    key=lambda path: -int(path.name.rsplit('_', 1)[1]),
  )


def file_cases(
  stopped: pathlib.Path, files: list[pathlib.Path], place: str
) -> list[Case]:
  """Each kind of damage to each file.

  Args:
    stopped: a work folder.
    files: some files in it.
    place: where these are, in words.
  """
  cases = []
  for number, path in enumerate(sorted(files, key=lambda p: p.stat().st_size)):
    # Files of numbers have random names.
    name = f'file {number}' if path.parent.name == 'd' else path.name
    file = path.relative_to(stopped)
    folder = '/'.join(file.parts[2:-1])
    for index, damage in enumerate(DAMAGES):
      cases.append(
        Case(
          f'{place}: {folder}/{name}: {damage.__name__} ({index})',
          str(file),
          lambda work, generator, damage=damage, file=file: damage(  # type: ignore[misc]
            work / file, generator
          ),
        )
      )
  return cases


def cases(
  stopped: pathlib.Path, other: Callable[[], pathlib.Path]
) -> list[list[Case | Hindrance]]:
  """All cases in groups, those first that show most.

  Args:
    stopped: a work folder whose training was stopped.
    other: gives that of another run.
  """
  files = [
    path
    for path in sorted(stopped.rglob('*'))
    if path.is_file() and path.name != '.lock'
  ]
  groups: list[list[Case | Hindrance]] = []
  for number, folder in enumerate(steps(stopped)):
    own = [path for path in files if path.is_relative_to(folder)]
    numbers = [path for path in own if path.parent.name == 'd']
    rest = [path for path in own if path not in numbers]
    groups += [
      [*file_cases(stopped, some, f'checkpoint {number} back')]
      for some in (numbers, rest)
    ]
  beside = [path for path in files if path.parent == stopped]
  groups[1:1] = [
    [*file_cases(stopped, beside, 'beside checkpoints')],
    [*_hindrances()],
    [*_whole_cases(other)],
  ]
  return groups


def _whole_cases(other: Callable[[], pathlib.Path]) -> Iterator[Case]:
  """Whole checkpoints gone or emptied, and files of another run."""

  def from_other(*names: str) -> Damage:
    def apply(work: pathlib.Path, _: random.Random) -> None:
      for name in names:
        shutil.copy(other() / name, work / name)

    return apply

  def without_newest(work: pathlib.Path, _: random.Random) -> None:
    shutil.rmtree(steps(work)[0])

  def without_files(work: pathlib.Path, _: random.Random) -> None:
    for path in steps(work)[0].rglob('*'):
      if path.is_file():
        path.unlink()

  def without_any(work: pathlib.Path, _: random.Random) -> None:
    for folder in steps(work):
      shutil.rmtree(folder)

  def with_the_newest_of_another(work: pathlib.Path, _: random.Random) -> None:
    newest = steps(work)[0]
    shutil.rmtree(newest)
    shutil.copytree(steps(other())[0], newest)

  yield Case('the newest checkpoint is gone', 'metrics.jsonl', without_newest)
  yield Case('the newest has no files', 'checkpoints', without_files)
  yield Case('all checkpoints are gone', 'metrics.jsonl', without_any)
  yield Case(
    "another run's checkpoint", 'checkpoints', with_the_newest_of_another
  )
  for names in (
    ('config.json',),
    ('vocabulary.json',),
    ('data.npz',),
    ('vocabulary.json', 'data.npz'),
    ('config.json', 'vocabulary.json', 'data.npz'),
  ):
    yield Case(
      f"another run's {', '.join(names)}", names[0], from_other(*names)
    )


def _hindrances() -> Iterator[Hindrance]:
  """Folders that may not be written, full disks, two processes at once."""

  @contextlib.contextmanager
  def read_only(work: pathlib.Path) -> Iterator[None]:
    paths = [work, *work.rglob('*')]
    for path in reversed(paths):
      path.chmod(0o555 if path.is_dir() else 0o444)
    yield
    for path in paths:
      path.chmod(0o755 if path.is_dir() else 0o644)

  @contextlib.contextmanager
  def held(work: pathlib.Path) -> Iterator[None]:
    with (work / '.lock').open('a') as lock:
      fcntl.flock(lock, fcntl.LOCK_EX)
      yield

  yield Hindrance(
    'a folder that may not be written', forks.unprivileged, read_only
  )
  yield Hindrance('another process trains here', hold=held)
  for most in _MOST_BYTES:
    yield Hindrance(
      f'no file may exceed {most:,} bytes',
      functools.partial(forks.with_small_files, most_bytes=most),
    )
