"""Reads the values that a search tries for each setting."""

import itertools
import re
from collections.abc import Sequence
from typing import Any

import optuna

FORMS = '<value>,<value>,... or <low>..<high> or <low>..<high>@log'


Distributions = dict[str, optuna.distributions.BaseDistribution]


def distributions(settings: Sequence[str]) -> Distributions:
  """Returns the possible values of each field.

  Args:
    settings: texts such as `model.dropout=0.2,0.3`, `train.batch_size=64..512`
      or `train.learning_rate=1e-4..1e-2@log`. A range has integers if both
      limits are integers. With `@log`, the scale is logarithmic.

  Raises:
    ValueError: a text has another form, or a field occurs twice.
  """
  found: Distributions = {}
  for text in settings:
    field, equals, values = text.partition('=')
    try:
      if not (field and equals) or field in found:
        raise ValueError
      found[field] = _distribution(values)
    except ValueError:
      raise ValueError(
        f'--set {text}: expected <group>.<field>=<values> with a field that no '
        f'other --set has; the values are {FORMS}'
      ) from None
  return found


def _distribution(values: str) -> optuna.distributions.BaseDistribution:
  limits, _, scale = values.partition('@')
  low, dots, high = limits.partition('..')
  if not dots:
    listed = values.split(',')
    if not all(listed):
      raise ValueError
    return optuna.distributions.CategoricalDistribution(listed)
  if scale not in ('', 'log'):
    raise ValueError
  if re.fullmatch(r'-?\d+', low) and re.fullmatch(r'-?\d+', high):
    return optuna.distributions.IntDistribution(
      int(low), int(high), log=scale == 'log'
    )
  return optuna.distributions.FloatDistribution(
    float(low), float(high), log=scale == 'log'
  )


def all_combinations(space: Distributions) -> list[dict[str, Any]]:
  """Returns every combination of listed values.

  Raises:
    ValueError: a field has a range.
  """
  for field, one in space.items():
    if not isinstance(one, optuna.distributions.CategoricalDistribution):
      raise ValueError(f'--set {field}: a range needs --trials')
  listed = [one.choices for one in space.values()]  # type: ignore[attr-defined]
  return [
    dict(zip(space, chosen, strict=True))
    for chosen in itertools.product(*listed)
  ]
