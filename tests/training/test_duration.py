"""Tests the announcement of long trainings."""

import pytest

from coke_jax.training import duration


@pytest.mark.parametrize(
  ('num_steps', 'text'),
  [
    (3_000, None),  # 1.7 hours are too short for an announcement.
    (4_020, 'about 2.2 hours: 4,000 steps of 2 s'),
    (432_020, 'about 10.0 days: 432,000 steps of 2 s'),
  ],
)
def test_a_long_training_is_announced_once(num_steps, text):
  measured = duration.Duration(num_steps)
  # The time before `restart` includes the compilation and is not measured.
  assert measured.announcement(1, 3600.0) is None
  measured.restart(5, 3600.0)
  # After `restart`, no step has finished.
  assert measured.announcement(5, 3620.0) is None
  # The measured time of 8 s is too short.
  assert measured.announcement(9, 3608.0) is None
  announced = measured.announcement(20, 3630.0)
  assert text in announced if text else announced is None
  assert measured.announcement(10**6, 10**6) is None


def test_the_time_of_a_validation_is_not_counted():
  measured = duration.Duration(1_000_000)
  measured.restart(0, 0.0)
  assert measured.announcement(4, 8.0) is None
  measured.restart(4, 1000.0)
  assert 'steps of 1 s' in measured.announcement(14, 1010.0)
