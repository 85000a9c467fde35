"""The content of a report, without its layout.

`collect` computes the content. `page` converts it to HTML.
"""

import dataclasses
from typing import Any

from coke_jax.data import leaks
from coke_jax.predict.jobs import calibrate


@dataclasses.dataclass(frozen=True)
class Missing:
  """A part that the report does not have.

  Attributes:
    reason: one or two sentences about what is missing.
    command: the command that creates the missing part. Empty if there is none.
  """

  reason: str
  command: str = ''


@dataclasses.dataclass(frozen=True)
class Example:
  """A query whose correct answer is not ranked first.

  Attributes:
    fact: the labels of the triple or path.
    side: the side of the answer, `head` or `tail`.
    rank: the rank of the answer among the candidates.
    candidates: the number of candidates.
    before: some entities that are ranked before the answer, best first.
  """

  fact: tuple[str, ...]
  side: str
  rank: float
  candidates: int
  before: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class HardQueries:
  """Badly ranked queries with the same relations.

  Attributes:
    relations: the label of one relation, or the labels of the relations of a
      path.
    category: the category of the relation, such as `1-N`. Empty for paths.
    queries: the number of queries.
    metrics: the metrics of the queries by name.
    examples: the queries with the worst ranks. Their questions differ.
  """

  relations: tuple[str, ...]
  category: str
  queries: int
  metrics: dict[str, float]
  examples: tuple[Example, ...]


@dataclasses.dataclass(frozen=True)
class Ranking:
  """The ranks of a split.

  Attributes:
    split: the name of the split.
    results: the metrics, as in `results.json`.
    hardest: the hardest relations or paths, hardest first.
    fewest: the minimum number of queries of each entry of `hardest`.
    seconds: the time to compute the ranks.
  """

  split: str
  results: dict[str, Any]
  hardest: tuple[HardQueries, ...]
  fewest: int
  seconds: float


@dataclasses.dataclass(frozen=True)
class Calibration:
  """The calibration of the model.

  Attributes:
    fitted_on: the split to which the calibration was fitted.
    measured_on: the split on which `bins` were measured.
    bins: the intervals of probabilities. Empty if the split is empty.
    thresholds: pairs of a precision and the lowest score that reaches it. The
      score is None if no score reaches the precision.
  """

  fitted_on: str
  measured_on: str
  bins: tuple[calibrate.ReliabilityBin, ...]
  thresholds: tuple[tuple[float, float | None], ...]


@dataclasses.dataclass(frozen=True)
class SplitCounts:
  """The counts of a split.

  Attributes:
    split: the name of the split.
    lines: the number of triples or paths.
    duplicates: the number of lines that repeat an earlier line.
    unseen: the number of lines with an entity that is not in train.
    by_length: a dict from the number of relations to the number of paths. Empty
      for triples.
    deduction: the number of paths whose target can be reached in the graph of
      the training edges. None if it is unknown.
  """

  split: str
  lines: int
  duplicates: int
  unseen: int
  by_length: dict[int, int]
  deduction: int | None


@dataclasses.dataclass(frozen=True)
class Setting:
  """A field of the config.

  Attributes:
    field: the name of the field.
    value: its value as text.
    default: its default as text.
    description: what the field means.
  """

  field: str
  value: str
  default: str
  description: str


@dataclasses.dataclass(frozen=True)
class Report:
  """Everything that a report shows.

  Attributes:
    name: the name of the data set.
    about_paths: whether the model answers path queries.
    exported: whether the folder is an exported model.
    summary: the model and its training in one or two sentences.
    entities: the number of entities.
    relations: the number of relations.
    step: the step of the checkpoint.
    epoch: the epoch of the checkpoint. None if the log does not contain it.
    test: the metrics of the test split, as in `results.json`.
    ranking: the ranks of the chosen split.
    curves: the numbers of `run_plots.curves`.
    calibration: the calibration.
    maps: the numbers of `contextual_maps.to_json` by kind, `entity` and
      `relation`.
    counts: the counts of each split.
    leaks: the triples whose answers can be copied from train.
    settings: all fields of the config.
    versions: a dict from names, such as `jax`, to versions as text.
    times: a dict from names, such as `This report`, to times as text.
    names: a dict from labels to the names that are shown instead.
  """

  name: str
  about_paths: bool
  exported: bool
  summary: str
  entities: int
  relations: int
  step: int
  epoch: float | None
  test: dict[str, Any] | Missing
  ranking: Ranking | Missing
  curves: dict[str, Any] | Missing
  calibration: Calibration | Missing
  maps: dict[str, dict[str, Any] | Missing]
  counts: tuple[SplitCounts, ...]
  leaks: leaks.LeakReport | Missing
  settings: tuple[Setting, ...]
  versions: dict[str, str]
  times: dict[str, str]
  names: dict[str, str]
