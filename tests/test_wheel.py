"""Tests the wheel in an environment and a folder without this repository."""

import importlib.metadata
import os
import pathlib
import random
import shutil
import subprocess
import sys
import venv
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCES = (
  *('coke_jax', 'configs', 'setup.py', 'setup.cfg', 'pyproject.toml'),
  *('README.md', 'LICENSE'),
)
# The libraries of the extras. The commands below must work without them.
OPTIONAL = (
  *('fastapi', 'matplotlib', 'optuna', 'pandas', 'polars', 'prometheus_client'),
  *('pyarrow', 'pyoxigraph', 'pytest', 'sklearn', 'tensorboardX', 'uvicorn'),
)


@pytest.fixture(scope='module')
def wheel(tmp_path_factory):
  """Builds the wheel from a copy of the sources, and returns its path."""
  for name, oldest in (('pip', 23), ('setuptools', 77)):
    try:
      version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
      version = '0'
    if int(version.partition('.')[0]) < oldest:
      pytest.skip(f'{name} is {version}: expected at least {oldest}')
  copy = tmp_path_factory.mktemp('sources')
  for name in SOURCES:
    source = ROOT / name
    if source.is_dir():
      ignored = shutil.ignore_patterns('__pycache__')
      shutil.copytree(source, copy / name, ignore=ignored)
    else:
      shutil.copy(source, copy)
  folder = tmp_path_factory.mktemp('wheel')
  pip('wheel', '--no-build-isolation', f'--wheel-dir={folder}', copy)
  (path,) = folder.glob('*.whl')
  return path


@pytest.fixture(scope='module')
def installed(wheel, tmp_path_factory):
  """Installs the wheel in a new environment, and returns its `bin` folder.

  The new environment finds the libraries of the current one, except OPTIONAL.
  """
  folder = tmp_path_factory.mktemp('environment')
  venv.create(folder, with_pip=False)
  (packages,) = folder.glob('lib/python*/site-packages')
  # The paths give access to the libraries. Python reads no .pth files in these
  # folders, so it finds no editable installation of coke_jax.
  lines = [path for path in sys.path if path.endswith('-packages')]
  lines.append(f'import sys; sys.modules.update(dict.fromkeys({OPTIONAL}))')
  (packages / 'libraries.pth').write_text('\n'.join(lines))
  # Without --ignore-installed, an installation of coke_jax among the libraries
  # would be used.
  options = ('--no-compile', '--ignore-installed')
  pip(f'--python={folder}/bin/python', 'install', *options, wheel)
  return folder / 'bin'


def pip(*arguments):
  command = [sys.executable, '-m', 'pip', *arguments, '--quiet', '--no-index']
  subprocess.run([*command, '--no-deps'], check=True)


def test_content(wheel):
  with zipfile.ZipFile(wheel) as archive:
    names = set(archive.namelist())
  expected = {f'coke_jax/configs/{p.name}' for p in ROOT.glob('configs/*.py')}
  for path in (ROOT / 'coke_jax').rglob('*'):
    if path.is_file() and '__pycache__' not in path.parts:
      expected.add(path.relative_to(ROOT).as_posix())
  assert len(expected) > 200
  assert sorted(expected - names) == []
  assert sorted(n for n in names - expected if '.dist-info/' not in n) == []


def facts():
  """Returns facts about towns. A town's country determines its other facts."""
  triples = []
  for number in range(60):
    town, country = f'Town {number}', f'Country {number % 6}'
    triples.append((town, 'located in', country))
    triples.append((town, 'currency', f'{country} "dollar", new'))
    triples.append((town, 'language', f'Language {number % 6 // 2}'))
  random.Random(0).shuffle(triples)
  return triples


@pytest.mark.slow
def test_four_commands_from_a_csv_file_to_answers(installed, tmp_path):
  folder = tmp_path / 'empty'
  folder.mkdir()
  environment = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(('PYTHON', 'COKE_'))
  }
  environment['PATH'] = f'{installed}{os.pathsep}{environment["PATH"]}'

  def shell(command):
    done = subprocess.run(
      ['bash', '-c', command],
      cwd=folder,
      env=environment,
      capture_output=True,
      text=True,
      check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout

  printed = shell('python -c "import coke_jax; print(coke_jax.__file__)"')
  assert printed.startswith(str(installed.parent))
  missing = ('Town 7', 'language', 'Language 0')
  lines = [
    '"{}","{}","{}"\n'.format(*(label.replace('"', '""') for label in triple))
    for triple in facts()
    if triple != missing
  ]
  text = 'subject,predicate,object\n' + ''.join(lines)
  (folder / 'facts.csv').write_text(text)

  printed = shell('coke prepare facts.csv --output=facts --seed=1')
  assert 'facts.csv: 179 rows, 0 left out' in printed
  printed = shell('coke train facts')
  assert 'test' in printed
  assert (folder / 'runs' / 'facts' / 'results.json').is_file()
  question = r"printf 'Town 7\tlanguage\t?\n'"
  printed = shell(f'{question} | coke predict runs/facts --top=1')
  assert printed.splitlines()[1].split('\t')[4] == 'Language 0'
  printed = shell('coke discover runs/facts --relation=language --top=1')
  assert tuple(printed.splitlines()[1].split('\t')[:3]) == missing

  # The built-in configs and the example model are installed, too.
  assert '\ncountries ' in shell('coke configs')
  example = 'python -c "import coke_jax; print(coke_jax.EXAMPLE_MODEL)"'
  question = r"printf 'Kenya\tregion\t?\n'"
  printed = shell(f'{question} | coke predict "$({example})" --top=1')
  assert 'Africa' in printed
