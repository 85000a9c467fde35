"""Finds labels by a part of them, regardless of case and accents."""

import unicodedata
from collections.abc import Sequence

import numpy as np

# The maximum number of matches of one search.
_MAX_FOUND = 1000
_LINE = '\n'
# `near` compares this number of characters at the start and end of labels.
_END = 2


class LabelSearch:
  """An index of labels.

  The normalized labels are one long string, in which Python finds a text
  faster than in a list of strings.
  """

  def __init__(self, labels: Sequence[str], weights: np.ndarray):
    """Normalizes the labels.

    Args:
      labels: N labels.
      weights: numbers [N]. If labels match equally well, larger weights come
        first.
    """
    self._weights = weights
    normalized = [normalize(label) for label in labels]
    lengths = np.array([len(one) + 1 for one in normalized], np.int64)
    # `_starts[i]` is the position of the line end before label i.
    self._starts = np.concatenate([[0], np.cumsum(lengths)])[:-1]
    self._text = _LINE + _LINE.join(normalized) + _LINE
    self._lengths = lengths - 1

  def find(self, text: str, count: int) -> list[int]:
    """Finds the labels that contain a text.

    The order is: labels equal to the text, labels that start with the text,
    labels with a word that starts with the text, other labels.

    Args:
      text: the text.
      count: the maximum number of labels.

    Returns:
      The indices of the labels, best first.
    """
    wanted = normalize(text).strip()
    if not wanted:
      order = np.argsort(-self._weights, kind='stable')
      return order[:count].tolist()
    found: dict[int, int] = {}
    for kind, before in enumerate((_LINE, ' ', '')):
      self._collect(before + wanted, kind, found)
      if len(found) >= count:
        break

    def order_of(index: int) -> tuple[int, float, int, int]:
      exact = found[index] == 0 and self._lengths[index] == len(wanted)
      kind = -1 if exact else found[index]
      return (
        kind,
        -float(self._weights[index]),
        int(self._lengths[index]),
        index,
      )

    return sorted(found, key=order_of)[:count]

  def near(self, text: str) -> list[int]:
    """Finds labels that may be similar to a misspelt label.

    If one character is wrong, the first or the second half of the label is
    correct. So this method finds labels that contain one of the halves. It also
    finds labels with the same first or last two characters. Each search ends
    after 1,000 matches, so the time is bounded even with millions of labels.

    Returns:
      The indices of the labels.
    """
    wanted = normalize(text).strip()
    half = (len(wanted) + 1) // 2
    first, second = wanted[:half], wanted[half:]
    found: dict[int, int] = {}
    for kind, part in enumerate(
      (
        _LINE + first,
        second + _LINE,
        first,
        second,
        _LINE + wanted[:_END],
        wanted[-_END:] + _LINE,
      )
    ):
      if part.strip(_LINE):
        self._collect(part, kind, found)
    return list(found)

  def _collect(self, text: str, kind: int, found: dict[int, int]) -> None:
    """Adds the labels that contain a text, unless they were found before."""
    place = self._text.find(text)
    for _ in range(_MAX_FOUND):
      if place < 0:
        return
      index = int(np.searchsorted(self._starts, place, side='right')) - 1
      found.setdefault(index, kind)
      place = self._text.find(text, place + 1)


def normalize(text: str) -> str:
  """Removes case and accents; punctuation and spaces become single spaces."""
  text = unicodedata.normalize('NFKD', text).casefold()
  kept = ''.join(
    char if char.isalnum() else ' '
    for char in text
    if not unicodedata.combining(char)
  )
  words = ' '.join(kept.split())
  # A label without letters and digits would become empty. So its characters
  # are kept.
  return words or ' '.join(text.split())
