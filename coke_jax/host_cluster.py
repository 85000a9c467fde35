"""Detects a cluster that starts several processes of one program."""

import logging


def num_processes() -> int:
  """Returns the number of processes of the cluster that JAX detects, or 1."""
  try:
    from jax._src import clusters

    detect = clusters.ClusterEnv.auto_detect_unset_distributed_params
    found = detect(None, None, None, None, None, 60)
    return int(found[1] or 1)
  except Exception as error:  # The private function may raise any error.
    logging.warning('no cluster was detected: %s', error)
    return 1
