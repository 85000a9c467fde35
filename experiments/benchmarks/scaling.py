"""Estimates the memory and time of a training step with formulas.

    python -m experiments.benchmarks.scaling
    python -m experiments.benchmarks.scaling --entities 4600000 --width 128

docs/guides/scaling.md explains the formulas. If most parameters are embeddings,
the error of the memory is at most a tenth. Times assume that a machine reaches
a fixed share of its published rates.

Letters: V entities, D width, B rows of a batch, n devices, P parameters.
"""

import argparse
import dataclasses

from experiments.benchmarks import flops

# Bytes per parameter in a step, measured with the compiler's memory analysis.
STATE_BYTES = 12  # the parameter and two moments of Adam
ADAGRAD_STATE_BYTES = 8  # the parameter and one sum of Adagrad
GRADIENT_BYTES = 8  # the gradient and temporary arrays
# Bytes per parameter that a step reads or writes. The optimizer needs 28 bytes:
# it reads parameters, moments and gradient, and writes parameters and moments.
# Before that, the gradient is written and read about twice: another 16 bytes.
TRAFFIC_BYTES = 28 + 16
LOGITS_COPIES = 2  # the logits [B, V] and their gradient
LOGITS_PASSES = 8  # the number of times that a step reads or writes the logits
# Logits that need more than LARGEST_LOGITS bytes are computed in chunks of
# CHUNK_BYTES.
CHUNK_BYTES = 64 * 2**20
LARGEST_LOGITS = 2**30
# The shares of the published rates that a step reaches.
COMPUTE_SHARE, MEMORY_SHARE, LINK_SHARE = 0.4, 0.7, 0.7
LENGTH = 3  # tokens of a triple


@dataclasses.dataclass(frozen=True)
class Machine:
  """The published rates of a machine.

  Attributes:
    name: the name in tables.
    devices: n, the number of devices over all hosts.
    hosts: the number of hosts.
    memory: bytes of one device.
    flops: operations per second of one device in bfloat16.
    bandwidth: bytes per second from and to the memory of one device.
    link: bytes per second that one device sends to another of the same host.
    network: bytes per second that one host sends to another. 0 if there is only
      one host.
  """

  name: str
  devices: int
  hosts: int
  memory: float
  flops: float
  bandwidth: float
  link: float = 0.0
  network: float = 0.0


MACHINES = (
  Machine('H100', 1, 1, 80e9, 989e12, 3.35e12),
  Machine('8 x H100', 8, 1, 80e9, 989e12, 3.35e12, 450e9),
  Machine('v5e-8', 8, 1, 16e9, 197e12, 0.82e12, 100e9),
  Machine('4 hosts, v5e-8', 32, 4, 16e9, 197e12, 0.82e12, 100e9, 12.5e9),
)


@dataclasses.dataclass(frozen=True)
class Shape:
  """A model and its batch.

  Attributes:
    entities: V.
    width: D.
    batch: B, over all devices.
    layers: number of blocks.
    candidates: number of entities in the softmax of a step; 0 for all entities.
    relations: number of relations.
    adagrad: whether the optimizer is Adagrad. With Adagrad and candidates, and
      without shards, a step reads and updates only embeddings of candidates.
    shards: whether each device has only a part of the entities.
  """

  entities: int
  width: int
  batch: int
  layers: int = 0
  candidates: int = 0
  relations: int = 822
  adagrad: bool = False
  shards: bool = False

  @property
  def other_parameters(self) -> int:
    """All parameters except those of entities, with feed-forward size 2 D."""
    relations = 4 * self.relations * self.width
    return relations + 8 * self.layers * self.width**2

  def parameters(self, machine: Machine) -> int:
    """Returns P, the number of parameters on one device."""
    entities = self.entities
    if self.shards:
      entities = -(-entities // machine.devices)
    return entities * (self.width + 1) + self.other_parameters

  def updated(self, machine: Machine) -> int:
    """Returns the number of parameters that a step changes on one device."""
    if self.shards or not (self.adagrad and self.candidates):
      return self.parameters(machine)
    entities = min(self.candidates, self.entities)
    return dataclasses.replace(self, entities=entities).parameters(machine)

  def state_bytes(self, machine: Machine) -> int:
    """Returns the bytes of the parameters and the optimizer's arrays."""
    return self.parameters(machine) * (
      ADAGRAD_STATE_BYTES if self.adagrad else STATE_BYTES
    )

  def exchanged(self, machine: Machine) -> int:
    """Returns the bytes of the arrays that are summed over the devices."""
    if not self.shards:
      return 4 * self.updated(machine)
    # The four arrays are the embeddings of known entities, the queries, and the
    # gradients of both. Each array has a vector for each candidate or, without
    # candidates, for each row.
    rows = self.candidates or self.batch
    return 4 * (self.other_parameters + 4 * rows * self.width)

  def logits_bytes(self, machine: Machine) -> int:
    """Returns the bytes of the logits of one device."""
    rows = -(-self.batch // machine.devices)
    return 4 * rows * (self.candidates or self.entities)

  def in_chunks(self, machine: Machine) -> bool:
    """Returns whether the logits are computed in chunks by default."""
    return not self.candidates and self.logits_bytes(machine) > LARGEST_LOGITS


def memory(shape: Shape, machine: Machine) -> float:
  """Returns the bytes of a step on one device: state, gradient and logits."""
  logits = shape.logits_bytes(machine)
  if shape.in_chunks(machine):
    logits = CHUNK_BYTES
  gradient = GRADIENT_BYTES * shape.updated(machine)
  return shape.state_bytes(machine) + gradient + LOGITS_COPIES * logits


def seconds(shape: Shape, machine: Machine) -> dict[str, float]:
  """Estimates the seconds of a step.

  Returns:
    A dictionary of seconds: `products` for the matrix products, `memory` for
    reading and writing memory, and `exchange` for adding up the gradients of
    all devices. `step` is the greater of `products` and `memory`, plus
    `exchange`.
  """
  scored = shape.candidates or shape.entities
  chunks = shape.in_chunks(machine)
  rows = shape.batch / machine.devices
  entity_products = 2 * shape.width * scored
  operations = (4 if chunks else 3) * entity_products
  if shape.layers:
    model = flops.Shape(0, shape.layers, shape.width, 2 * shape.width)
    operations += model.training(LENGTH)
  products = rows * operations / (COMPUTE_SHARE * machine.flops)
  traffic = TRAFFIC_BYTES * shape.updated(machine)
  traffic += LOGITS_PASSES * shape.logits_bytes(machine)
  moved = traffic / (MEMORY_SHARE * machine.bandwidth)
  gradient = shape.exchanged(machine)
  exchange = 0.0
  own = machine.devices // machine.hosts
  if own > 1:
    exchange += 2 * (own - 1) / own * gradient / (LINK_SHARE * machine.link)
  if machine.hosts > 1:
    exchange += (
      2
      * (machine.hosts - 1)
      / machine.hosts
      * gradient
      / (LINK_SHARE * machine.network)
    )
  return {
    'products': products,
    'memory': moved,
    'exchange': exchange,
    'step': max(products, moved) + exchange,
  }


# Maps the name of a setting to its shape and its number of training triples.
SETTINGS = {
  'FB15k-237, paper': (Shape(14_541, 256, 512, 12, relations=237), 272_115),
  '500,000 entities': (Shape(500_000, 128, 1024), 2_000_000),
  'Wikidata5M, 65,536 candidates, Adagrad': (
    Shape(4_594_485, 128, 1024, candidates=65_536, adagrad=True),
    20_614_279,
  ),
  'Wikidata5M, 65,536 candidates': (
    Shape(4_594_485, 128, 1024, candidates=65_536),
    20_614_279,
  ),
  'Wikidata5M': (Shape(4_594_485, 128, 1024), 20_614_279),
  'Wikidata5M, width 256': (Shape(4_594_485, 256, 1024), 20_614_279),
  'Wikidata5M, width 256, shards': (
    Shape(4_594_485, 256, 1024, shards=True),
    20_614_279,
  ),
}


def table(settings: dict[str, tuple[Shape, int]]) -> str:
  """Returns a Markdown table with a row for each setting and machine."""
  lines = [
    '| setting | machine | memory | products | memory traffic | exchange '
    '| step | epoch |',
    '|---|---|---:|---:|---:|---:|---:|---:|',
  ]
  for name, (shape, triples) in settings.items():
    for machine in MACHINES:
      needed = memory(shape, machine)
      spent = seconds(shape, machine)
      used = f'{needed / 1e9:,.1f} GB'
      if needed > 0.9 * machine.memory:
        used += ', too much'
      steps = 2 * triples / shape.batch
      cells = [f'{1000 * value:,.2f} ms' for value in spent.values()]
      epoch = steps * spent['step']
      shown = f'{epoch:,.1f} s' if epoch < 60 else f'{epoch / 60:,.0f} min'
      lines.append(
        f'| {name} | {machine.name} | {used} | {" | ".join(cells)} | {shown} |'
      )
  return '\n'.join(lines)


def main() -> None:
  """Prints the table of SETTINGS or of the flags."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument(
    '--entities', type=int, help='V; default: print several settings'
  )
  parser.add_argument('--width', type=int, default=128, help='D')
  parser.add_argument('--batch', type=int, default=1024, help='B')
  parser.add_argument('--layers', type=int, default=0, help='blocks')
  parser.add_argument(
    '--candidates', type=int, default=0, help='entities in the softmax; 0: all'
  )
  parser.add_argument(
    '--adagrad', action='store_true', help='use Adagrad instead of Adam'
  )
  parser.add_argument(
    '--shards', action='store_true', help='divide entities among the devices'
  )
  parser.add_argument(
    '--triples', type=int, help='training triples; default: 4 V'
  )
  given = parser.parse_args()
  if not given.entities:
    print(table(SETTINGS))
    return
  shape = Shape(
    given.entities,
    given.width,
    given.batch,
    given.layers,
    given.candidates,
    adagrad=given.adagrad,
    shards=given.shards,
  )
  print(table({'setting': (shape, given.triples or 4 * given.entities)}))


if __name__ == '__main__':
  main()
