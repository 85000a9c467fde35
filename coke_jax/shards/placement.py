"""Distributes parameters and the optimizer state over the devices.

By default, every device has a copy of all arrays. If the vocabulary is cut,
every device has at most S entities. S is the number of entities V divided by
the number of devices, rounded up. Device 1 has the entities S to 2 S - 1. The
entity embeddings, the entity biases and their optimizer state are cut. All
other arrays are copied to every device.

A tree on the host is whole: it has the arrays of `encoder.CoKE`. If the
vocabulary is cut, the arrays of entities on the devices have a first axis of
devices. A tree with such arrays is a cut tree.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coke_jax import hosts, parallel
from coke_jax.model import encoder, ensemble, parameters

# In a cut tree, these arrays have the shape [devices, S, ...]. In a whole tree,
# the entity embeddings are the first rows of the element embedding.
ENTITIES = 'entity_embedding'
BIAS = 'entity_bias'
_ELEMENTS = 'element_embedding'


@dataclasses.dataclass(frozen=True)
class Placement:
  """Distributes the trees of one model over the devices.

  A tree is a dictionary of all parameters, or contains such dictionaries, like
  an optimizer state.

  Attributes:
    num_entities: V.
    num_devices: the number of devices.
    is_cut: whether the vocabulary is cut.
  """

  num_entities: int
  num_devices: int
  is_cut: bool

  @property
  def shard_size(self) -> int:
    """S, the number of entities on a device."""
    return -(-self.num_entities // self.num_devices)

  def place(self, tree: Any) -> Any:
    """Copies a whole tree to the devices.

    If there are several processes, the tree must be equal in all of them.
    """
    if not self.is_cut:
      return parallel.replicate(tree)
    tree = self.cut(jax.tree.map(np.asarray, tree))
    return jax.tree_util.tree_map_with_path(
      lambda path, leaf: (
        parallel.place_rows(leaf.shape, leaf.__getitem__)
        if is_shard(path)
        else parallel.replicate(leaf)
      ),
      tree,
    )

  def place_from_main(self, tree: Any) -> Any:
    """Copies a whole tree of process 0 to the devices of all processes.

    The vocabulary must be cut. All processes must call this method. Each
    process receives one shard at a time, and keeps the shards of its devices.

    Args:
      tree: in process 0, the tree of NumPy arrays. In other processes, the
        shapes and dtypes of its arrays.
    """
    own = set(parallel.own_devices().tolist())

    def send(shape: Any, array: Any) -> np.ndarray:
      if not hosts.is_main():
        array = np.empty(shape, array.dtype)
      sent: np.ndarray = parallel.broadcast(array)
      return sent

    def send_leaf(path: Any, leaf: Any) -> jax.Array:
      if not is_shard(path):
        placed: jax.Array = parallel.replicate(send(leaf.shape, leaf))
        return placed
      kept = {}
      for device in range(self.num_devices):
        part = leaf[device] if hosts.is_main() else leaf
        shard = send(leaf.shape[1:], part)
        if device in own:
          kept[device] = shard
      return parallel.place_rows(leaf.shape, kept.__getitem__)

    cut = self.cut(tree) if hosts.is_main() else jax.eval_shape(self.cut, tree)
    return jax.tree_util.tree_map_with_path(send_leaf, cut)

  def fetch(self, tree: Any) -> Any:
    """Copies a tree from the devices to a whole tree of NumPy arrays.

    All processes must call this method.
    """
    if not self.is_cut:
      return jax.device_get(tree)
    tree = jax.tree_util.tree_map_with_path(
      lambda path, leaf: (
        parallel.fetch_rows(leaf) if is_shard(path) else np.asarray(leaf)
      ),
      tree,
    )
    return self.join(tree)

  def own_parts(self, tree: Any) -> Iterator[tuple[Any, np.ndarray]]:
    """Copies a tree from this process's devices, one part after another.

    Args:
      tree: a tree on the devices.

    Yields:
      The path of a leaf, and the leaf or one of its shards.
    """
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
      if self.is_cut and is_shard(path):
        for _, shard in own_shards(leaf):
          yield path, shard
      else:
        yield path, np.asarray(leaf)

  def axes(self, shapes: Any) -> Any:
    """Returns `state_axes` or `result_axes` for `parallel.map_devices`.

    Args:
      shapes: the shapes of a whole tree.
    """
    if not self.is_cut:
      return None
    cut = jax.eval_shape(self.cut, shapes)
    return jax.tree_util.tree_map_with_path(
      lambda path, _: 0 if is_shard(path) else None, cut
    )

  def params_axes(self, model: ensemble.Encoder) -> Any:
    """Returns the result of `axes` for the parameters of a model."""
    return self.axes(parameters.param_shapes(model)) if self.is_cut else None

  def cut(self, tree: Any) -> Any:
    """Converts a whole tree to a cut tree."""
    return _map_params(tree, self._cut)

  def join(self, tree: Any) -> Any:
    """Reverses `cut` for a tree of NumPy arrays."""
    return _map_params(tree, self._join)

  def sum_gradients(self, gradients: Any) -> Any:
    """Sums gradients over the devices. Works only inside `map_devices`.

    The gradient of a shard is already the sum, because only one device has the
    shard.
    """
    if not self.is_cut:
      return parallel.sum_over_devices(gradients)
    return jax.tree_util.tree_map_with_path(
      lambda path, leaf: (
        leaf if is_shard(path) else parallel.sum_over_devices(leaf)
      ),
      gradients,
    )

  def _cut(self, params: dict[str, Any]) -> dict[str, Any]:
    elements = params[_ELEMENTS]
    entities = elements[: self.num_entities]
    return {
      **params,
      _ELEMENTS: elements[self.num_entities :],
      ENTITIES: self._rows_of_devices(entities),
      BIAS: self._rows_of_devices(params[BIAS]),
    }

  def _rows_of_devices(self, table: Any) -> Any:
    """Reshapes [V, ...] to [devices, S, ...]. Missing rows are 0."""
    devices = self.num_devices
    missing = devices * self.shard_size - self.num_entities
    pad = np.pad if isinstance(table, np.ndarray) else jnp.pad
    padded = pad(table, [(0, missing)] + [(0, 0)] * (table.ndim - 1))
    return padded.reshape(devices, self.shard_size, *table.shape[1:])

  def _join(self, params: dict[str, Any]) -> dict[str, Any]:
    whole = dict(params)
    entities, bias = (
      array.reshape(-1, *array.shape[2:])[: self.num_entities]
      for array in (whole.pop(ENTITIES), whole[BIAS])
    )
    elements = np.concatenate([entities, whole[_ELEMENTS]])
    return {**whole, _ELEMENTS: elements, BIAS: bias}


def make(model: ensemble.Encoder, *, cut: bool = False) -> Placement:
  """Returns the placement of a model on all devices.

  Args:
    model: the encoder.
    cut: whether to cut the vocabulary. If True, the model must not be an
      ensemble. With a single device, nothing is cut.
  """
  devices = parallel.num_devices()
  assert not cut or isinstance(model, encoder.CoKE)
  return Placement(model.num_entities, devices, cut and devices > 1)


def is_shard(path: Any) -> bool:
  """Returns whether the leaf of a cut tree at a path is a shard."""
  return bool(path) and getattr(path[-1], 'key', None) in (ENTITIES, BIAS)


def own_shards(array: jax.Array) -> Iterator[tuple[int, np.ndarray]]:
  """Copies the shards of this process from its devices, one after another.

  Args:
    array: [devices, S, ...], or [devices of this process, S, ...] if it is a
      result of `pmap` in one of several processes.

  Yields:
    The position of a device among all devices, and its shard, [S, ...].
  """
  position = {device: place for place, device in enumerate(jax.devices())}
  for shard in array.addressable_shards:
    yield position[shard.device], np.asarray(shard.data)[0]


def _map_params(tree: Any, function: Callable[[Any], Any]) -> Any:
  """Applies a function to each dictionary of parameters in a tree."""

  def is_params(node: Any) -> bool:
    return isinstance(node, dict) and BIAS in node

  return jax.tree.map(
    lambda node: function(node) if is_params(node) else node,
    tree,
    is_leaf=is_params,
  )


def norm_of_cut(tree: Any) -> jax.Array:
  """Computes the global norm of a cut tree. Works only inside `map_devices`."""
  # Sums of squares: of the replicated arrays, then of the shards.
  squares = [jnp.float32(0.0), jnp.float32(0.0)]
  for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
    squares[is_shard(path)] += (leaf**2).sum()
  return jnp.sqrt(squares[0] + parallel.sum_over_devices(squares[1]))
