"""The same model in PyTorch, as one would write it: `nn.TransformerEncoder`.

Sizes, layers, places of dropout, initialisation and loss are those of
`coke_jax/model.py` and `coke_jax/loss.py`. One thing PyTorch's encoder cannot:
its last block computes all positions, ours the masked one alone.

B rows, K tokens, D width, V entities.
"""

import torch
from torch import nn
from torch.nn import functional

from coke_jax.data import batches

_LAYER_NORM_EPSILON = 1e-12
_DEVIATION = 0.02


class CoKE(nn.Module):
  """Scores every entity for the masked place of sequences of one length."""

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
    """Builds the model; the arguments are those of `coke_jax.model.CoKE`."""
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
      activation=functional.gelu,  # the exact one
      layer_norm_eps=_LAYER_NORM_EPSILON,
      batch_first=True,
      norm_first=False,
    )
    block.dropout = nn.Identity()  # between the two feed-forward layers: none
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
    """Logits of all entities for the masked position.

    Args:
      tokens: integers [B, K], without PAD: the rows of a batch have one length.
      mask_position: integers [B], the column of the MASK.

    Returns:
      [B, V].
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
  """The mean of `coke_jax.loss.smoothed_cross_entropy`, one answer a row.

  PyTorch takes s from the answer and gives s / V to every entity, the answer
  among them. The target mass m remains there if s = (1 - m) V / (V - 1).

  Args:
    logits: [B, V], V > 1.
    answers: int64 [B]; rows with PAD_ANSWER do not count.
    target_mass: m, at least 1 / V.

  Returns:
    float32 [].
  """
  num_entities = logits.shape[-1]
  smoothing = (1 - target_mass) * num_entities / (num_entities - 1)
  return functional.cross_entropy(
    logits.float(),
    answers,
    ignore_index=batches.PAD_ANSWER,
    label_smoothing=smoothing,
  )
