"""Checks that the documentation is complete and its local links are valid."""

import importlib.util
import pathlib
import re

import pytest

import coke_jax
from coke_jax import config as config_lib
from coke_jax.cli import commands
from coke_jax.cli import flags as flags_lib

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = [
  *(ROOT / name for name in ('README.md', 'CHANGELOG.md', 'CONTRIBUTING.md')),
  *sorted((ROOT / 'docs').rglob('*.md')),
]
LINK = re.compile(r'\]\((?!\w+:|#)([^)\s#]+)')
CODE = re.compile(r'^```.*?^```$', re.M | re.S)


@pytest.fixture(scope='module')
def generated():
  """Returns the Markdown of each generated page by its path below docs/."""
  path = ROOT / 'docs' / 'generated_pages.py'
  spec = importlib.util.spec_from_file_location('generated_pages', path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module.render_all()


def test_every_field_is_on_the_page_of_settings(generated):
  for field in config_lib.flatten(config_lib.default_config()):
    assert f'id="{field}"' in generated['settings.md'], field


def test_every_flag_is_on_the_page_of_the_command_line(generated):
  page = generated['command_line.md']
  for mode in commands.COMMANDS:
    assert f'## coke {mode}\n' in page
  for flag in flags_lib.TABLE:
    for mode in flag.modes:
      assert f'id="{mode}-{flag.name}"' in page


def test_every_config_file_is_on_its_page(generated):
  for path in (ROOT / 'configs').rglob('*.py'):
    name = path.relative_to(ROOT).as_posix()
    assert f'## {name}\n' in generated['configs.md']


def test_every_module_has_an_entry(generated):
  entries = '\n'.join(generated.values())
  for path in (ROOT / 'coke_jax').rglob('*.py'):
    if path.stem != '__init__':
      name = '.'.join(path.relative_to(ROOT).with_suffix('').parts)
      assert f'::: {name}\n' in entries


@pytest.mark.parametrize('name', coke_jax.__all__)
def test_every_public_name_is_in_the_reference(generated, name):
  if name == '__version__':
    return
  reference = '\n'.join(
    path.read_text(encoding='utf-8')
    for path in (ROOT / 'docs' / 'reference').glob('*.md')
  )
  reference += generated['reference/errors.md']
  assert f'::: coke_jax.{name}\n' in reference


@pytest.mark.parametrize('page', PAGES, ids=lambda path: path.stem)
def test_local_links_lead_to_files(generated, page):
  text = CODE.sub('', page.read_text(encoding='utf-8'))
  for link in LINK.findall(text):
    target = (page.parent / link).resolve()
    made = page.parent == ROOT / 'docs' or (ROOT / 'docs') in page.parents
    path = target.relative_to(ROOT).as_posix().removeprefix('docs/')
    assert target.exists() or (made and path in generated), link


def test_the_version_is_the_same_everywhere():
  version = coke_jax.__version__
  citation = (ROOT / 'CITATION.cff').read_text(encoding='utf-8')
  assert f'\nversion: {version}\n' in citation
  changelog = (ROOT / 'CHANGELOG.md').read_text(encoding='utf-8')
  assert re.search(r'^## \[(.+?)\]', changelog, re.M)[1] == version


def test_every_package_is_in_the_architecture():
  page = (ROOT / 'docs' / 'architecture.md').read_text(encoding='utf-8')
  for path in (ROOT / 'coke_jax').iterdir():
    if path.is_dir() and (path / '__init__.py').exists():
      assert f'`{path.name}/`' in page
    elif path.suffix == '.py' and path.stem not in ('__init__', 'version'):
      assert f'`{path.name}`' in page
