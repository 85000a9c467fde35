"""Measures the rate of large matrix products, the upper limit for a model."""

import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from experiments.benchmarks import plan

_SIZES = (512, 1024, 2048, 4096)
_TINY_SIZES = (128,)
# Sizes whose product would take more than _MOST_SECONDS are left out. In
# PyTorch, bfloat16 is that slow on processors without bfloat16 instructions.
_MOST_SECONDS = 10.0
_DTYPES = ('float32', 'bfloat16')
_ROUND_SECONDS = 1.0
_TINY_ROUND_SECONDS = 0.01

# A function that computes a product the given number of times, then waits for
# the last result.
Product = Callable[[int], None]


class Matrices:
  """Measures the GFLOP/s of large products, for each type of the operands.

  In jax, the results of the products are float32, as in the model. In PyTorch,
  the results have the type of the operands.
  """

  def __init__(self, setting: plan.Setting):
    self._setting = setting

  def prepare(self) -> dict[str, Any]:
    """Selects and compiles the largest products within the time limit."""
    tiny = self._setting.dataset == plan.TINY
    seconds = _TINY_ROUND_SECONDS if tiny else _ROUND_SECONDS
    make = _torch if self._setting.framework == 'torch' else _jax
    # For each operand type: the product, the operations of one product, and the
    # number of products in a round.
    self._products: dict[str, tuple[Product, int, int]] = {}
    used = {}
    for dtype in _DTYPES:
      for size in _TINY_SIZES if tiny else _SIZES:
        multiply = make(size, dtype)
        multiply(1)
        once = _seconds(multiply, 1)
        # The next size is twice as large, so its product takes 8 times as long.
        if 2**3 * once > _MOST_SECONDS:
          break
      used[dtype] = size
      repeats = max(1, math.ceil(seconds / once))
      self._products[dtype] = multiply, 2 * size**3, repeats
    return {'sizes': used}

  def measure(self) -> dict[str, Any]:
    """Returns `gflops` of a round, by operand type."""
    return {
      'gflops': {
        dtype: repeats * flops / _seconds(multiply, repeats) / 1e9
        for dtype, (multiply, flops, repeats) in self._products.items()
      }
    }

  def finish(self) -> dict[str, Any]:
    """Returns an empty reply."""
    return {}


def _seconds(multiply: Product, count: int) -> float:
  started = time.perf_counter()
  multiply(count)
  return time.perf_counter() - started


def _jax(size: int, dtype: str) -> Product:
  keys = jax.random.split(jax.random.key(0))
  left, right = (jax.random.normal(key, (size, size), dtype) for key in keys)
  product = jax.jit(
    lambda x, y: jnp.matmul(x, y, preferred_element_type=jnp.float32)
  )

  def multiply(count: int) -> None:
    for _ in range(count):
      result = product(left, right)
    jax.block_until_ready(result)

  return multiply


def _torch(size: int, dtype: str) -> Product:
  import torch
  from torch.nn import functional

  torch.set_float32_matmul_precision('high')  # see `torch_steps`
  device = 'cuda' if torch.cuda.is_available() else 'cpu'
  left, right = torch.randn(
    2, size, size, dtype=getattr(torch, dtype), device=device
  )

  def multiply(count: int) -> None:
    for _ in range(count):
      functional.linear(left, right)  # This layout is the fastest.
    if device == 'cuda':
      torch.cuda.synchronize()

  return multiply
