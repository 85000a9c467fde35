"""Counts the operations of a model's matrix products from its shapes.

A multiplication and an addition count as two operations. Layer norms,
softmaxes, GELU, dropout, the loss and the optimizer are left out. So the
GFLOP/s of a model can be compared with the rate of large matrix products on the
same machine.

Letters: K tokens, D width, F feed-forward size, V entities, L blocks.
"""

import dataclasses

# For each product of the forward pass, the backward pass has two products of
# the same size: one for the gradient of each operand.
TRAINING_FACTOR = 3


@dataclasses.dataclass(frozen=True)
class Shape:
  """The sizes that determine the operations of a model.

  Attributes:
    num_entities: V.
    num_layers: L.
    hidden_size: D.
    feed_forward_size: F.
    whole_last_block: whether the last block computes all K positions, as
      `nn.TransformerEncoder` does. Otherwise, it computes only the masked
      position, as coke_jax does.
  """

  num_entities: int
  num_layers: int
  hidden_size: int
  feed_forward_size: int
  whole_last_block: bool = False

  def forward(self, length: int) -> int:
    """Returns the number of operations that score all entities for a sequence.

    Args:
      length: K.
    """
    last = length if self.whole_last_block else 1
    blocks = (self.num_layers - 1) * self._block(length, length)
    width = self.hidden_size
    head = 2 * width * (width + self.num_entities)
    return blocks + self._block(length, last) + head

  def training(self, length: int) -> int:
    """Returns the number of operations of training on a sequence.

    Args:
      length: K.
    """
    return TRAINING_FACTOR * self.forward(length)

  def _block(self, length: int, positions: int) -> int:
    """Returns the number of operations of a block.

    Args:
      length: K.
      positions: Q, the number of positions that the block computes.
    """
    width = self.hidden_size
    # Keys and values of all K tokens.
    dense = 2 * length * width * 2 * width
    # Queries, output projection and feed-forward layers of Q positions.
    dense += 2 * positions * width * 2 * (width + self.feed_forward_size)
    attention = 2 * 2 * positions * length * width  # scores and mixed values
    return dense + attention
