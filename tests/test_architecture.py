"""Imports point one way, and no file grows beyond what can be read at once."""

import ast
import pathlib

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / 'coke_jax'
FILES = sorted(PACKAGE.rglob('*.py'))
MOST_LINES = 330


def module_name(path: pathlib.Path) -> str:
  parts = path.relative_to(PACKAGE.parent).with_suffix('').parts
  return '.'.join(parts[:-1] if parts[-1] == '__init__' else parts)


MODULES = {module_name(path): path for path in FILES}


def imports(path: pathlib.Path) -> set[str]:
  """Full names of all that a file imports, wherever in it."""
  found = set()
  for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
    if isinstance(node, ast.Import):
      found.update(alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
      assert node.level == 0, f'{path}:{node.lineno}: a relative import'
      assert node.module is not None
      found.update(f'{node.module}.{alias.name}' for alias in node.names)
  return found


def names(path: pathlib.Path) -> set[str]:
  """Every identifier and attribute of a file's code, not of its text."""
  found = set()
  for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
    if isinstance(node, ast.Name):
      found.add(node.id)
    elif isinstance(node, ast.Attribute):
      found.add(node.attr)
  return found | {part for name in imports(path) for part in name.split('.')}


def internal(path: pathlib.Path) -> set[str]:
  """The modules of this package that a file imports."""
  found = set()
  for name in imports(path):
    while name and name not in MODULES:
      name = name.rpartition('.')[0]
    if name.startswith('coke_jax.') or (name and path.name != '__init__.py'):
      found.add(name)
  return {name for name in found if MODULES[name].name != '__init__.py'}


def reached(module: str) -> set[str]:
  """All modules of this package that come with importing one."""
  found: set[str] = set()
  waiting = [module]
  while waiting:
    for name in internal(MODULES[waiting.pop()]) - found:
      found.add(name)
      waiting.append(name)
  return found


def libraries(path: pathlib.Path) -> set[str]:
  return {name.split('.')[0] for name in imports(path)}


def test_the_package_was_found():
  assert {'coke_jax.main', 'coke_jax.data.text_files'} <= set(MODULES)


@pytest.mark.parametrize(
  'module', [name for name in MODULES if name.startswith('coke_jax.data')]
)
def test_data_knows_no_jax(module):
  for name in {module, *reached(module)}:
    assert name.startswith('coke_jax.data') or name == 'coke_jax.errors'
    used = libraries(MODULES[name])
    assert not used & {'jax', 'jaxlib', 'flax', 'optax', 'orbax'}
    assert not used & {'absl', 'ml_collections'}


@pytest.mark.parametrize('module', MODULES)
def test_orbax_is_in_one_file(module):
  if module != 'coke_jax.storage.checkpoints':
    assert 'orbax' not in libraries(MODULES[module])


@pytest.mark.parametrize('module', MODULES)
def test_pmap_and_meshes_are_in_one_file(module):
  words = {'pmap', 'Mesh', 'NamedSharding', 'shard_map', 'psum', 'axis_index'}
  if module != 'coke_jax.parallel':
    assert not words & names(MODULES[module])


@pytest.mark.parametrize(
  'module',
  [
    'model.layers',
    'model.encoder',
    'model.loss',
    'evaluate.counting',
    'training.optimizer',
  ],
)
def test_the_numerical_core_knows_no_config_and_no_files(module):
  path = MODULES[f'coke_jax.{module}']
  assert internal(path) <= {'coke_jax.model.layers'}  # numbers in, arrays out
  used = libraries(path)
  assert not used & {'ml_collections', 'absl', 'pathlib', 'os', 'json', 'io'}


@pytest.mark.parametrize('module', ['model', 'scorer', 'questions', 'records'])
def test_asking_knows_no_files_and_no_config(module):
  """What a person asks with: a model and labels in, records out."""
  path = MODULES[f'coke_jax.predict.{module}']
  used = libraries(path)
  assert not used & {'ml_collections', 'absl', 'pathlib', 'os', 'json', 'io'}
  direct = internal(path)
  assert not direct & {
    'coke_jax.config',
    'coke_jax.cli.flags',
    'coke_jax.storage.workdir',
    'coke_jax.storage.checkpoints',
    'coke_jax.cli.answer_lines',
    'coke_jax.data.text_files',
  }


def test_parallel_knows_no_other_module():
  assert not internal(MODULES['coke_jax.parallel'])


@pytest.mark.parametrize('module', MODULES)
def test_nothing_imports_main(module):
  assert 'coke_jax.main' not in internal(MODULES[module])


@pytest.mark.parametrize(
  'module',
  sorted(
    {*MODULES}
    - {'coke_jax.main', 'coke_jax.cli.arguments', 'coke_jax.cli.flags'}
  ),
)
def test_flags_are_read_by_the_command_line_alone(module):
  assert 'absl.flags' not in imports(MODULES[module])
  assert 'absl.app' not in imports(MODULES[module])


@pytest.mark.parametrize('module', MODULES)
def test_nothing_can_run_code_from_a_file(module):
  """No pickle, in whatever guise; arrays are loaded without it."""
  libraries_that_do = {'pickle', 'dill', 'cloudpickle', 'joblib', 'shelve'}
  assert not libraries(MODULES[module]) & (libraries_that_do | {'marshal'})
  for node in ast.walk(ast.parse(MODULES[module].read_text(encoding='utf-8'))):
    if isinstance(node, ast.Call):
      called = ast.unparse(node.func)
      assert called not in ('eval', 'exec', 'compile', '__import__')
      if called in ('np.load', 'numpy.load'):
        assert 'allow_pickle=False' in ast.unparse(node)


@pytest.mark.parametrize('module', MODULES)
def test_no_circles(module):
  assert module not in reached(module)


def test_main_has_no_logic():
  """Flags, one call for each mode, and no model or data of its own."""
  path = MODULES['coke_jax.main']
  assert not libraries(path) & {'jax', 'flax', 'optax', 'numpy', 'scipy'}
  assert len(path.read_text(encoding='utf-8').splitlines()) <= 120


@pytest.mark.parametrize('module', MODULES)
def test_modules_are_imported_not_their_names(module):
  """`from coke_jax.data import files`, not `... files import DataError`."""
  if module == 'coke_jax':
    return  # gives the public names
  for name in imports(MODULES[module]):
    if name.startswith('coke_jax'):
      assert name in MODULES or name == 'coke_jax.version.__version__'


@pytest.mark.parametrize('module', MODULES)
def test_files_are_short(module):
  lines = MODULES[module].read_text(encoding='utf-8').splitlines()
  assert len(lines) <= MOST_LINES
