"""Measures the memory of a long training with many validations and checkpoints.

    python tests/robustness/soak.py --minutes=60 --folder=soak

Runs a tiny training that validates and saves every few seconds, and records the
resident memory of the process. The process is paused (SIGSTOP) for a part of
the time, so that it does not use a whole core. At the end, the process receives
SIGTERM. Writes memory.csv and, if matplotlib is installed, memory.png.
"""

import argparse
import csv
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import small_runs

_SAMPLE_SECONDS = 5.0  # maximum time between two samples
_SAMPLES = 10  # minimum number of samples
_SLICE_SECONDS = 0.2
# In this first fraction of the time, compilation and caches need more memory.
_WARM_UP = 0.1


def resident_mebibytes(process: int) -> float:
  """Returns the resident memory of a process (Linux)."""
  status = pathlib.Path(f'/proc/{process}/status').read_text()
  (line,) = (row for row in status.splitlines() if row.startswith('VmRSS'))
  return int(line.split()[1]) / 1024


def watch(
  process: subprocess.Popen[bytes],
  work: pathlib.Path,
  seconds: float,
  share: float,
) -> list[tuple[float, float]]:
  """Samples the memory of a process, and pauses it for 1 - `share` of the time.

  Returns:
    The time in seconds and the resident memory in MiB of each sample.
  """
  log = work / 'metrics.jsonl'
  while process.poll() is None and not (log.exists() and log.stat().st_size):
    time.sleep(_SLICE_SECONDS)
  started = time.monotonic()
  every = min(_SAMPLE_SECONDS, seconds / _SAMPLES)
  samples: list[tuple[float, float]] = []
  while (now := time.monotonic() - started) < seconds:
    if process.poll() is not None:
      raise RuntimeError(f'training ended after {now:.0f} s')
    if now >= len(samples) * every:
      samples.append((now, resident_mebibytes(process.pid)))
    time.sleep(_SLICE_SECONDS * share)
    if share < 1:
      process.send_signal(signal.SIGSTOP)
      time.sleep(_SLICE_SECONDS * (1 - share))
      process.send_signal(signal.SIGCONT)
  return samples


def summarize(samples: list[tuple[float, float]]) -> dict[str, float]:
  """Returns statistics of the memory after the warm-up."""
  warm = samples[int(len(samples) * _WARM_UP) :]
  quarter = max(len(warm) // 4, 1)
  hours, memory = zip(*((s / 3600, m) for s, m in warm), strict=True)
  slope = statistics.linear_regression(hours, memory).slope
  return {
    'first quarter MiB': statistics.median(memory[:quarter]),
    'last quarter MiB': statistics.median(memory[-quarter:]),
    'slope MiB/h': slope,
    'most MiB': max(memory),
  }


def plot(samples: list[tuple[float, float]], path: pathlib.Path) -> None:
  """Draws the memory over time."""
  import matplotlib.figure

  figure = matplotlib.figure.Figure(figsize=(6, 3), layout='constrained')
  axes = figure.subplots()
  axes.plot([s / 60 for s, _ in samples], [m for _, m in samples])
  axes.set(xlabel='minutes', ylabel='resident memory (MiB)', ylim=(0, None))
  figure.savefig(path, dpi=150)


def main(argv: list[str] | None = None) -> int:
  """Returns 1 if the memory grows too much, or the exit status is wrong."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument('--minutes', type=float, default=60)
  parser.add_argument(
    '--share',
    type=float,
    default=0.3,
    help='share of the time in which the training runs',
  )
  parser.add_argument(
    '--folder', help='folder for the results. Default: results are deleted'
  )
  parser.add_argument(
    '--most-growth',
    type=float,
    default=0.03,
    help='maximum growth, as a share of the memory in the first quarter',
  )
  flags = parser.parse_args(argv)
  with tempfile.TemporaryDirectory() as temporary:
    folder = pathlib.Path(flags.folder or temporary)
    data = small_runs.write_graph(folder / 'data')
    work = folder / 'work'
    arguments = small_runs.arguments(
      data,
      work,
      num_epochs=10**6,
      validate_every_epochs=100,
      checkpoint_every_minutes=0.03,
    )
    with (folder / 'log.txt').open('wb') as out:
      process = subprocess.Popen(
        small_runs.command(*arguments),
        env=small_runs.environment(folder / 'compiled'),
        stdout=out,
        stderr=out,
      )
      try:
        samples = watch(process, work, 60 * flags.minutes, flags.share)
        process.send_signal(signal.SIGTERM)
        status = process.wait(timeout=60)
      finally:
        process.kill()
    with (folder / 'memory.csv').open('w', newline='') as table:
      csv.writer(table).writerows([('seconds', 'MiB'), *samples])
    lines = small_runs.metrics(work)
    validations = sum(line['kind'] == 'valid' for line in lines)
    try:
      plot(samples, folder / 'memory.png')
    except ImportError:
      print('memory.png is not written: matplotlib is not installed')
  figures = summarize(samples)
  grown = figures['last quarter MiB'] / figures['first quarter MiB'] - 1
  print(
    f'{samples[-1][0] / 60:.1f} minutes, {lines[-1]["step"]:,} steps, '
    f'{validations:,} validations; exit status {status} after SIGTERM; memory: '
    + ', '.join(f'{name} {value:.1f}' for name, value in figures.items())
    + f'; grown by {100 * grown:.1f} %'
  )
  return int(grown > flags.most_growth or status != 128 + signal.SIGTERM)


if __name__ == '__main__':
  sys.exit(main())
