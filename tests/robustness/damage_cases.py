"""The kinds of damage to a work folder, for `damage.py`."""

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

# Limits on the size of a file, in bytes. Small limits interrupt the writing of
# the log. Larger limits interrupt the writing of a checkpoint.
_MOST_BYTES = (0, 300, 3000, 10_000, 12_000, 15_000, 18_000)


@dataclasses.dataclass(frozen=True)
class Case:
  """One way to damage a work folder.

  Attributes:
    name: a description, the same in every run of the script.
    file: the path of the damaged file or folder in the work folder. If
      checkpoints are missing, the path is `metrics.jsonl`, because this file
      may then differ from the `metrics.jsonl` of an undamaged run.
    damage: a function that damages a work folder.
  """

  name: str
  file: str
  damage: Damage


@dataclasses.dataclass(frozen=True)
class Hindrance:
  """A temporary condition under which the program cannot write.

  Attributes:
    name: a description.
    limit: wraps a function that runs the program, so that the program cannot
      write.
    hold: returns a context manager. Within its block, the work folder cannot be
      written.
  """

  name: str
  limit: Callable[[forks.Work], forks.Work] = lambda work: work
  hold: Callable[[pathlib.Path], contextlib.AbstractContextManager[None]] = (
    lambda work: contextlib.nullcontext()
  )


# ----------------------------------------------------------- kinds of damage


def missing(path: pathlib.Path, _: random.Random) -> None:
  """Deletes the file."""
  path.unlink()


def empty(path: pathlib.Path, _: random.Random) -> None:
  """Empties the file."""
  path.write_bytes(b'')


def truncated(path: pathlib.Path, generator: random.Random) -> None:
  """Cuts off the end of the file."""
  data = path.read_bytes()
  path.write_bytes(data[: generator.randrange(max(len(data), 1))])


def flipped(path: pathlib.Path, generator: random.Random) -> None:
  """Flips one bit."""
  data = bytearray(path.read_bytes() or b'x')
  data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
  path.write_bytes(bytes(data))


def zeros(path: pathlib.Path, _: random.Random) -> None:
  """Overwrites the file with zeros, as a power failure may do."""
  path.write_bytes(bytes(path.stat().st_size))


def noise(path: pathlib.Path, generator: random.Random) -> None:
  """Overwrites the file with random bytes."""
  path.write_bytes(generator.randbytes(path.stat().st_size))


def a_folder(path: pathlib.Path, _: random.Random) -> None:
  """Replaces the file by a folder."""
  path.unlink()
  path.mkdir()


DAMAGES: tuple[Damage, ...] = (
  missing, empty, truncated, flipped, flipped, flipped, zeros, noise, a_folder,
)  # fmt: skip


# ---------------------------------------------------------------------- cases


def steps(work: pathlib.Path) -> list[pathlib.Path]:
  """Returns the folders of the checkpoints, newest first."""
  return sorted(
    (work / 'checkpoints').glob('step_*'),
    key=lambda path: -int(path.name.rsplit('_', 1)[1]),
  )


def file_cases(
  stopped: pathlib.Path, files: list[pathlib.Path], place: str
) -> list[Case]:
  """Returns a case for each file and each kind of damage.

  Args:
    stopped: a work folder.
    files: some of its files.
    place: a description of where the files are.
  """
  cases = []
  for number, path in enumerate(sorted(files, key=lambda p: p.stat().st_size)):
    # Array files have random names, so their description has a number instead.
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
  """Returns all cases in groups. Groups likely to find failures come first.

  Args:
    stopped: the work folder of an interrupted training.
    other: returns the work folder of another run.
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
  """Yields cases with missing or empty checkpoints, or files of another run."""

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
  """Yields a read-only folder, a held lock, and limits on file sizes."""

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

  yield Hindrance('a read-only folder', forks.unprivileged, read_only)
  yield Hindrance('another process trains here', hold=held)
  for most in _MOST_BYTES:
    yield Hindrance(
      f'no file may exceed {most:,} bytes',
      functools.partial(forks.with_small_files, most_bytes=most),
    )
