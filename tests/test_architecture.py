"""Checks what each module of `coke_jax` may import and use."""

import ast
import functools
import pathlib

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / 'coke_jax'

# A package may import packages of lower levels, but no other package of its own
# level. The first level is the highest.
LEVELS = (
  {'main'},
  {'cli'},
  {'serve', 'fit', 'cross_audit', 'report'},
  {'plots', 'training', 'predict'},
  {'tasks', 'given_data'},
  {'storage', 'evaluate', 'recipes', 'builtin_configs', 'path_training'},
  {'shards'},
  {'data', 'parallel', 'config', 'compilation_cache'},
  {'config_checks', 'hosts'},
  {'host_cluster', 'host_guard'},
  {'model', 'errors', 'progress_bar', 'version'},
)
# Exceptions: pairs of the same level. The first package may import the second.
NEIGHBOURS = {('plots', 'predict')}

DEVICE_WORDS = {
  'pmap',
  'Mesh',
  'NamedSharding',
  'shard_map',
  'psum',
  'axis_index',
}
FILES_AND_SETTINGS = {
  'absl',
  'io',
  'json',
  'ml_collections',
  'open',
  'os',
  'pathlib',
}
RUN_CODE_FROM_FILES = {
  'cloudpickle',
  'dill',
  'joblib',
  'marshal',
  'pickle',
  'shelve',
}


def module_name(path: pathlib.Path) -> str:
  parts = path.relative_to(PACKAGE.parent).with_suffix('').parts
  return '.'.join(parts[:-1] if parts[-1] == '__init__' else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob('*.py'))}


def package_of(module: str) -> str:
  """Returns the package of a module: `data` for `coke_jax.data.graph`.

  For `coke_jax` itself, returns an empty string.
  """
  return ''.join(module.split('.')[1:2])


def modules_of(*packages: str) -> list[str]:
  return [name for name in MODULES if package_of(name) in packages]


@functools.cache
def tree(module: str) -> ast.Module:
  return ast.parse(MODULES[module].read_text(encoding='utf-8'))


@functools.cache
def imports(module: str) -> frozenset[str]:
  """Returns the full names of a module's imports, also those in functions."""
  found: set[str] = set()
  for node in ast.walk(tree(module)):
    if isinstance(node, ast.Import):
      found.update(alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
      assert node.level == 0, f'{module}:{node.lineno}: a relative import'
      found.update(f'{node.module}.{alias.name}' for alias in node.names)
  return frozenset(found)


def libraries(module: str) -> set[str]:
  return {name.split('.')[0] for name in imports(module)}


def names(module: str) -> set[str]:
  """Returns every identifier, attribute and imported name of a module."""
  found = {part for name in imports(module) for part in name.split('.')}
  for node in ast.walk(tree(module)):
    if isinstance(node, ast.Name):
      found.add(node.id)
    elif isinstance(node, ast.Attribute):
      found.add(node.attr)
  return found


def internal(module: str) -> set[str]:
  """Returns the modules of `coke_jax` that a module imports."""
  found = set()
  for name in imports(module):
    while name and name not in MODULES:
      name = name.rpartition('.')[0]
    found.add(name)
  return {name for name in found if '.' in name}


def reached(module: str) -> set[str]:
  """Returns the modules that a module imports directly or indirectly."""
  found: set[str] = set()
  waiting = [module]
  while waiting:
    for name in internal(waiting.pop()) - found:
      found.add(name)
      waiting.append(name)
  return found


def level(package: str) -> int:
  """Returns the level of a package, 0 for the lowest.

  Raises:
    AssertionError: the package is not in `LEVELS`.
  """
  for number, packages in enumerate(reversed(LEVELS)):
    if package in packages:
      return number
  raise AssertionError(f'coke_jax.{package}: add it to a level of LEVELS')


def may_import(package: str, other: str) -> bool:
  return (
    package == other
    or (package, other) in NEIGHBOURS
    or level(package) > level(other)
  )


def check(problems: list[str]) -> None:
  """Fails with one line for each problem."""
  assert not problems, '\n' + '\n'.join(sorted(problems))


@pytest.mark.parametrize(
  ('package', 'other', 'allowed'),
  [
    ('main', 'cli', True),
    ('cli', 'main', False),
    ('plots', 'predict', True),
    ('predict', 'plots', False),
    ('training', 'predict', False),
    ('predict', 'training', False),
    ('storage', 'evaluate', False),
    ('data', 'data', True),
    ('data', 'errors', True),
    ('model', 'errors', False),
    ('model', 'config', False),
  ],
)
def test_may_import(package, other, allowed):
  assert may_import(package, other) == allowed


def test_imports_point_down():
  check(
    [
      f'{module} imports {other}: {package_of(module)} must not import '
      f'{package_of(other)}, see LEVELS'
      for module in MODULES
      if module != 'coke_jax'  # This module imports all public names.
      for other in internal(module)
      if not may_import(package_of(module), package_of(other))
    ]
  )


def test_no_circular_imports():
  check(
    [
      f'{module} imports itself through other modules'
      for module in MODULES
      if module in reached(module)
    ]
  )


def test_modules_are_imported_not_names():
  check(
    [
      f'{module} imports {name}: import the module, and use module.name'
      for module in MODULES
      if module != 'coke_jax'
      for name in imports(module)
      if name.startswith('coke_jax.')
      and name not in MODULES
      and name != 'coke_jax.version.__version__'
    ]
  )


def test_files_have_at_most_300_lines():
  sizes = {
    module: len(path.read_text(encoding='utf-8').splitlines())
    for module, path in MODULES.items()
  }
  check(
    [
      f'{module} has {size} lines'
      for module, size in sizes.items()
      if size > 300
    ]
  )


def test_data_imports_no_jax():
  check(
    [
      f'{module} imports {library} through {name}'
      for module in modules_of('data')
      for name in {module, *reached(module)}
      for library in libraries(name)
      & {'jax', 'jaxlib', 'flax', 'optax', 'orbax', 'absl', 'ml_collections'}
    ]
  )


def test_predict_imports_no_optimizer():
  check(
    [
      f'{module} reaches {name}, which is in training or imports optax'
      for module in modules_of('predict')
      for name in {module, *reached(module)}
      if 'optax' in libraries(name) or package_of(name) == 'training'
    ]
  )


def test_only_one_module_imports_orbax():
  allowed = {'coke_jax.storage.orbax_noise'}
  check(
    [
      f'{module} imports orbax: expected only {allowed}'
      for module in MODULES
      if 'orbax' in libraries(module) and module not in allowed
    ]
  )


def test_only_parallel_maps_over_devices():
  check(
    [
      f'{module} uses {word}: only parallel.py may use it'
      for module in MODULES
      if module != 'coke_jax.parallel'
      for word in names(module) & DEVICE_WORDS
    ]
  )


def test_only_hosts_connects_processes():
  check(
    [
      f'{module} uses distributed: only hosts.py may use it'
      for module in MODULES
      if module != 'coke_jax.hosts' and 'distributed' in names(module)
    ]
  )


def test_parallel_imports_only_errors_and_hosts():
  allowed = {'coke_jax.errors', 'coke_jax.hosts'}
  assert internal('coke_jax.parallel') <= allowed


def test_the_numerical_core_has_no_config_and_no_files():
  """The model, the optimizer and the metrics only take and return arrays."""
  core = [*modules_of('model'), 'coke_jax.evaluate.counting']
  core.append('coke_jax.training.optimizer')
  check(
    [
      f'{module} uses {name}'
      for module in core
      for name in names(module) & FILES_AND_SETTINGS
    ]
    + [
      f'{module} imports {other}: only coke_jax.model is allowed'
      for module in core
      for other in internal(module)
      if package_of(other) != 'model'
    ]
  )


def test_the_public_model_has_no_config_and_no_files():
  """A `Model` is created from arrays and labels. `load` reads the files."""
  modules = [
    f'coke_jax.predict.{name}'
    for name in ('model', 'scorer', 'questions', 'records')
  ]
  check(
    [
      f'{module} uses {name}'
      for module in modules
      for name in names(module) & FILES_AND_SETTINGS
    ]
    + [
      f'{module} imports {other}'
      for module in modules
      for other in internal(module)
      if package_of(other) in {'config', 'storage'}
    ]
  )


def test_only_the_command_line_reads_flags():
  check(
    [
      f'{module} imports {name}'
      for module in MODULES
      if package_of(module) not in {'main', 'cli'}
      for name in imports(module) & {'absl.flags', 'absl.app'}
    ]
  )


def test_main_has_no_logic():
  """Main only defines the flags and calls `coke_jax.cli`."""
  used = libraries('coke_jax.main')
  assert not used & {'jax', 'flax', 'optax', 'numpy', 'scipy'}
  lines = MODULES['coke_jax.main'].read_text(encoding='utf-8').splitlines()
  assert len(lines) <= 120


def test_no_file_can_run_code():
  """No module unpickles data, evaluates text or loads arrays with pickle."""
  problems = [
    f'{module} imports {library}'
    for module in MODULES
    for library in libraries(module) & RUN_CODE_FROM_FILES
  ]
  for module in MODULES:
    for node in ast.walk(tree(module)):
      if isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        place = f'{module}:{node.lineno}'
        if called in ('eval', 'exec', 'compile', '__import__'):
          problems.append(f'{place}: calls {called}')
        if called in ('np.load', 'numpy.load') and (
          'allow_pickle=False' not in ast.unparse(node)
        ):
          problems.append(f'{place}: {called} without allow_pickle=False')
  check(problems)
