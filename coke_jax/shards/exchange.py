"""Exchanges rows and columns between devices if the vocabulary is cut.

The module `placement` describes a cut vocabulary. The methods of `Exchange`
work only inside `parallel.map_devices`.

Dimensions in shapes:
  n  devices
  b  rows of a batch on a device   B  rows of a batch on all devices, n times b
  V  entities                      S  entities on a device
"""

from typing import Any

import jax
import jax.numpy as jnp

from coke_jax import parallel
from coke_jax.shards import placement


class Exchange:
  """Exchanges rows of a batch and columns of entities.

  Attributes:
    num_entities: V.
    size: S.
  """

  def __init__(self, place: placement.Placement):
    self.num_entities = place.num_entities
    self.size = place.shard_size

  def own_columns(self, entities: jax.Array) -> jax.Array:
    """Returns the positions of entities on this device; -1 if not present."""
    column = entities - parallel.device_index() * self.size
    inside = (entities >= 0) & (column >= 0) & (column < self.size)
    return jnp.where(inside, column, -1)

  def num_valid(self) -> jax.Array:
    """Returns the number of entities of this device, an int32 scalar.

    If V is not a multiple of n, the last devices have fewer than S entities.
    """
    left = self.num_entities - parallel.device_index() * self.size
    return jnp.clip(left, 0, self.size)

  def take(self, table: jax.Array, entities: jax.Array) -> jax.Array:
    """Collects rows of a table from all devices.

    Args:
      table: [S, ...], the rows of this device.
      entities: int32 [N], the entities whose rows this device needs, or
        negative numbers.

    Returns:
      [N, ...], the rows. The row of a negative number is 0.
    """
    wanted = parallel.gather_over_devices(entities)  # [n, N]
    column = self.own_columns(wanted)
    rows = jnp.take(table, jnp.maximum(column, 0), axis=0)
    inside = (column >= 0).reshape(*column.shape, *[1] * (table.ndim - 1))
    found = jnp.where(inside, rows, 0)
    # For each entity, at most one of the n rows is nonzero.
    return parallel.exchange_over_devices(found).sum(axis=0)

  def all_rows(self, x: jax.Array) -> jax.Array:
    """Collects the rows of all devices: [b, ...] becomes [B, ...]."""
    gathered: jax.Array = parallel.gather_over_devices(x)
    return gathered.reshape(-1, *x.shape[1:])

  def own_rows(self, x: jax.Array) -> jax.Array:
    """Sends results for all rows, [B, ...], to the devices that have the rows.

    Returns:
      [n, b, ...], the results of all devices for the rows of this device.
    """
    devices = parallel.num_devices()
    return parallel.exchange_over_devices(x.reshape(devices, -1, *x.shape[1:]))

  def slice_rows(self, tree: Any) -> Any:
    """Selects this device's rows from arrays [B, ...].

    The arrays must be equal on all devices.
    """
    devices = parallel.num_devices()
    index = parallel.device_index()
    return jax.tree.map(
      lambda x: x.reshape(devices, -1, *x.shape[1:])[index], tree
    )

  def own_entities(self, x: jax.Array) -> jax.Array:
    """Sends columns of entities, [b, V], to the devices that have the entities.

    Returns:
      [B, S], the columns of this device's entities. Further columns are 0.
    """
    devices = parallel.num_devices()
    missing = devices * self.size - self.num_entities
    padded = jnp.pad(x, ((0, 0), (0, missing)))
    by_device = padded.reshape(-1, devices, self.size).swapaxes(0, 1)
    received = parallel.exchange_over_devices(by_device)
    return received.reshape(-1, self.size)

  def all_entities(self, x: jax.Array) -> jax.Array:
    """Reverses `own_entities`: [B, S] becomes [b, V]."""
    received = self.own_rows(x)  # [n, b, S]
    rows = received.swapaxes(0, 1).reshape(received.shape[1], -1)
    return rows[:, : self.num_entities]
