"""The model of coke_jax in PyTorch, with `nn.TransformerEncoder`.

Sizes, layers, positions of dropout, initialization and loss are those of
`coke_jax.model`. The last block of PyTorch's encoder computes all positions;
the last block of coke_jax computes only the masked position.

Letters: B rows, K tokens, D width, V entities.
"""

import torch
from torch import nn
from torch.nn import functional

from coke_jax.data import batches

_LAYER_NORM_EPSILON = 1e-12
_DEVIATION = 0.02


class CoKE(nn.Module):
  """Scores every entity for the masked position of a sequence."""

  def __init__(
    self,
    *,
    num_entities: int,
    num_tokens: int,
    max_length: int,
    num_layers: int,
    hidden_size: int,
    num_heads: int,
    feed_forward_size: int,
    dropout: float,
  ):
    """Builds the model; the arguments are those of `encoder.CoKE`."""
    super().__init__()
    self.num_entities = num_entities
    self.elements = nn.Embedding(num_tokens, hidden_size)
    self.positions = nn.Embedding(max_length, hidden_size)
    self.embedding_norm = nn.LayerNorm(hidden_size, eps=_LAYER_NORM_EPSILON)
    self.embedding_dropout = nn.Dropout(dropout)
    block = nn.TransformerEncoderLayer(
      hidden_size,
      num_heads,
      feed_forward_size,
      dropout,
      activation=functional.gelu,  # exact, not the tanh approximation
      layer_norm_eps=_LAYER_NORM_EPSILON,
      batch_first=True,
      norm_first=False,
    )
    block.dropout = nn.Identity()  # no dropout between feed-forward layers
    self.encoder = nn.TransformerEncoder(
      block, num_layers, enable_nested_tensor=False
    )
    self.prediction_dense = nn.Linear(hidden_size, hidden_size)
    self.prediction_norm = nn.LayerNorm(hidden_size, eps=_LAYER_NORM_EPSILON)
    self.entity_bias = nn.Parameter(torch.zeros(num_entities))
    for name, parameter in self.named_parameters():
      if parameter.ndim > 1:
        nn.init.trunc_normal_(
          parameter, std=_DEVIATION, a=-2 * _DEVIATION, b=2 * _DEVIATION
        )
      elif name.endswith('bias'):
        nn.init.zeros_(parameter)

  def forward(
    self, tokens: torch.Tensor, mask_position: torch.Tensor
  ) -> torch.Tensor:
    """Computes the logits of all entities for the masked position.

    Args:
      tokens: integers [B, K], without PAD.
      mask_position: integers [B], the column of the MASK.

    Returns:
      The logits [B, V].
    """
    length = tokens.shape[1]
    x = self.elements(tokens) + self.positions.weight[:length]  # [B, K, D]
    x = self.embedding_dropout(self.embedding_norm(x))
    x = self.encoder(x)
    rows = torch.arange(len(tokens), device=tokens.device)
    hidden = functional.gelu(self.prediction_dense(x[rows, mask_position]))
    hidden = self.prediction_norm(hidden)  # [B, D]
    entities = self.elements.weight[: self.num_entities]
    return functional.linear(hidden, entities, self.entity_bias)


def loss(
  logits: torch.Tensor, answers: torch.Tensor, target_mass: float
) -> torch.Tensor:
  """Computes the mean smoothed cross-entropy of rows with one answer each.

  Equals the mean of `loss.smoothed_cross_entropy`. With label smoothing s,
  PyTorch gives s / V to every entity including the answer. The answer gets the
  target mass m if s = (1 - m) V / (V - 1).

  Args:
    logits: [B, V], V > 1.
    answers: int64 [B]; rows with PAD_ANSWER do not count.
    target_mass: m, at least 1 / V.

  Returns:
    The loss, float32 [].
  """
  num_entities = logits.shape[-1]
  smoothing = (1 - target_mass) * num_entities / (num_entities - 1)
  return functional.cross_entropy(
    logits.float(),
    answers,
    ignore_index=batches.PAD_ANSWER,
    label_smoothing=smoothing,
  )
