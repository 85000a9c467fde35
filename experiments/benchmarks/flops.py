"""Operations of the model's products, counted from its shapes.

Only matrix products count, a multiplication and an addition each: layer norms,
softmaxes, GELU, dropout, the loss and the optimizer are left out. So "GFLOP/s"
says how much of the machine's rate of products a training turns into training.

Letters as in `coke_jax/model.py`: K tokens, D width, F feed-forward size, V
entities, L blocks.
"""

import dataclasses

# Backwards, each product gives two more of its size: one for either operand.
TRAINING_FACTOR = 3


@dataclasses.dataclass(frozen=True)
class Shape:
  """The sizes that decide how much a model computes.

  Attributes:
    num_entities: V.
    num_layers: L.
    hidden_size: D.
    feed_forward_size: F.
    whole_last_block: whether the last block computes all K positions, as
      `nn.TransformerEncoder` does, or the masked one alone, as ours.
  """

  num_entities: int
  num_layers: int
  hidden_size: int
  feed_forward_size: int
  whole_last_block: bool = False

  def forward(self, length: int) -> int:
    """Operations to score all entities for one sequence of K tokens."""
    last = length if self.whole_last_block else 1
    blocks = (self.num_layers - 1) * self._block(length, length)
    width = self.hidden_size
    head = 2 * width * (width + self.num_entities)
    return blocks + self._block(length, last) + head

  def training(self, length: int) -> int:
    """Operations to train on one sequence of K tokens."""
    return TRAINING_FACTOR * self.forward(length)

  def _block(self, length: int, positions: int) -> int:
    """Operations of a block that computes Q positions of a sequence."""
    width = self.hidden_size
    # Keys and values of all; queries, output and feed-forward of those asked.
    dense = 2 * length * width * 2 * width
    dense += 2 * positions * width * 2 * (width + self.feed_forward_size)
    attention = 2 * 2 * positions * length * width  # scores, and mixed values
    return dense + attention
