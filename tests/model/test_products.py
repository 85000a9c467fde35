"""Compares products and their handwritten gradients with plain NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coke_jax.model import products


@pytest.mark.parametrize('dtype', ['float32', 'bfloat16'])
def test_products_and_their_gradients(dtype):
  generator = np.random.default_rng(0)
  x = generator.normal(size=(4, 3, 16))
  kernel = generator.normal(size=(16, 8))
  weight = generator.normal(size=(4, 3, 8))

  def total(x, kernel):
    return (products.matmul(x, kernel, jnp.dtype(dtype)) * weight).sum()

  arguments = jnp.asarray(x, jnp.float32), jnp.asarray(kernel, jnp.float32)
  product = products.matmul(*arguments, jnp.dtype(dtype))
  of_x, of_kernel = jax.grad(total, argnums=(0, 1))(*arguments)
  tolerance = {'float32': 1e-5, 'bfloat16': 0.1}[dtype]
  for got, expected in (
    (product, x @ kernel),
    (of_x, weight @ kernel.T),
    (of_kernel, np.einsum('bkd,bke->de', x, weight)),
  ):
    assert got.dtype == jnp.float32
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize('compiled', [False, True])
@pytest.mark.parametrize('dtype', ['float32', 'bfloat16'])
def test_inner_products_and_their_gradients(dtype, compiled):
  generator = np.random.default_rng(0)
  x = generator.normal(size=(5, 16))
  rows = generator.normal(size=(70, 16))
  weight = generator.normal(size=(5, 70))

  def inner_products(x, rows):
    return products.inner_products(x, rows, jnp.dtype(dtype))

  def total(x, rows):
    return (inner_products(x, rows) * weight).sum()

  run = jax.jit if compiled else lambda function: function
  arguments = jnp.asarray(x, jnp.float32), jnp.asarray(rows, jnp.float32)
  product = run(inner_products)(*arguments)
  of_x, of_rows = run(jax.grad(total, argnums=(0, 1)))(*arguments)
  tolerance = {'float32': 1e-5, 'bfloat16': 0.1}[dtype]
  for got, expected in (
    (product, x @ rows.T),
    (of_x, weight @ rows),
    (of_rows, weight.T @ x),
  ):
    assert got.dtype == jnp.float32
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def test_bias_and_its_gradient():
  generator = np.random.default_rng(0)
  x, weight = generator.normal(size=(2, 5, 300)).astype(np.float32)
  bias = generator.normal(size=300).astype(np.float32)

  def total(x, bias):
    return (products.add_bias(x, bias) * weight).sum()

  of_x, of_bias = jax.grad(total, argnums=(0, 1))(x, bias)
  np.testing.assert_allclose(products.add_bias(x, bias), x + bias, rtol=1e-6)
  np.testing.assert_array_equal(of_x, weight)
  np.testing.assert_allclose(of_bias, weight.sum(axis=0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize('queries', [1, 3])
def test_mixing_and_its_gradients(queries):
  generator = np.random.default_rng(0)
  weights = generator.normal(size=(5, queries, 3, 2)).astype(np.float32)
  value = generator.normal(size=(5, 3, 2, 8)).astype(np.float32)
  of_mixed = generator.normal(size=(5, queries, 2, 8)).astype(np.float32)

  def total(weights, value):
    return (products.mix(weights, value) * of_mixed).sum()

  of_weights, of_value = jax.grad(total, argnums=(0, 1))(weights, value)
  for got, expected in (
    (products.mix(weights, value), 'bqka,bkah->bqah'),
    (of_value, 'bqka,bqah->bkah'),
    (of_weights, 'bkah,bqah->bqka'),
  ):
    operands = {'bqka': weights, 'bkah': value, 'bqah': of_mixed}
    first, second = expected.split('->')[0].split(',')
    np.testing.assert_allclose(
      got,
      np.einsum(expected, operands[first], operands[second]),
      rtol=1e-5,
      atol=1e-5,
    )
