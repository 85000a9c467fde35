"""Draws reliability diagrams of calibrated probabilities."""

import dataclasses
import os
import pathlib
from collections.abc import Sequence
from typing import Any

from coke_jax.data import user_paths
from coke_jax.plots import plot_style
from coke_jax.predict.jobs import calibrate


def draw(
  bins: Sequence[calibrate.ReliabilityBin],
  split: str,
  folder: str | os.PathLike[str],
) -> list[pathlib.Path]:
  """Draws a reliability diagram and writes it as PNG, SVG and JSON.

  Args:
    bins: the intervals of probabilities, from `Model.reliability`.
    split: the split on which the intervals were measured.
    folder: the folder of the files. It is created if it does not exist.

  Returns:
    The files.

  Raises:
    config.ConfigError: matplotlib is not installed.
    atomic_files.WriteError: a file cannot be written.
  """
  with plot_style.style():
    return plot_style.save(
      figure(bins, split),
      {'split': split, 'bins': [dataclasses.asdict(one) for one in bins]},
      user_paths.expand(folder),
      'reliability',
    )


def figure(bins: Sequence[calibrate.ReliabilityBin], split: str) -> Any:
  """Returns the diagram as a matplotlib figure.

  Each interval is a point. If a point is on the diagonal, the probabilities of
  its interval are correct. The number next to a point is the number of
  candidates in its interval.
  """
  made = plot_style.new_figure(5, 5)
  axes = made.subplots()
  axes.plot([0, 1], [0, 1], color=plot_style.GREY, zorder=0)
  axes.plot(
    [one.predicted for one in bins],
    [one.observed for one in bins],
    color=plot_style.COLORS[0],
    marker='o',
  )
  for one in bins:
    axes.annotate(
      f'{one.count:,}',
      (one.predicted, one.observed),
      xytext=(6, -10),
      textcoords='offset points',
      fontsize=8,
    )
  axes.set_xlabel('mean calibrated probability')
  axes.set_ylabel('share of correct candidates')
  axes.set_title(f'Reliability on the {split} split')
  axes.set_aspect('equal')
  return made
