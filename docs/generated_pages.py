"""Pages of the documentation that are generated from the code.

This module needs the package but not mkdocs, so that tests can check the pages.
"""

import ast
import importlib.util
import inspect
import pathlib
import re
from typing import Any

from coke_jax import config as config_lib
from coke_jax import main
from coke_jax.cli import commands
from coke_jax.cli import flags as flags_lib

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = ROOT / 'coke_jax'
# Pages that are files of the repository outside of docs/.
SOURCES = {'changelog.md': 'CHANGELOG.md', 'contributing.md': 'CONTRIBUTING.md'}

_GROUPS = {
  'data': 'Data',
  'model': 'Model',
  'train': 'Training',
  'evaluate': 'Evaluation',
  '': 'Program',
}


def render_all() -> dict[str, str]:
  """Returns the Markdown of every generated page by its path below docs/."""
  pages = {
    'settings.md': settings(),
    'configs.md': config_files(),
    'command_line.md': command_line(),
    'reference/errors.md': error_classes(),
    **modules(),
  }
  for page, source in SOURCES.items():
    pages[page] = (ROOT / source).read_text(encoding='utf-8')
  return pages


def settings() -> str:
  """Returns the page of config fields, grouped as in `config.py`."""
  parts = [
    '# Config fields',
    'A config starts from the defaults below, which are the '
    "paper's setting for link prediction, and changes some fields. The command "
    'line changes fields for one run:',
    '```bash\ncoke train --config=countries \\\n'
    '  --config.model.num_layers=6 --config.train.num_epochs=20\n```',
    'An unknown field, or a value that is not valid, raises an error before '
    'anything is read or written. [Built-in configs](configs.md) lists what '
    'each config changes.',
  ]
  described = config_lib.describe()
  for group, title in _GROUPS.items():
    parts.append(f'## {title}')
    for field, default, comment in described:
      if field.rpartition('.')[0] == group:
        parts.append(
          _definition(f'`{field}`', field, comment, f'default `{default}`')
        )
  return _join(parts)


def config_files() -> str:
  """Returns the page of configs, with their purpose and changed fields."""
  parts = [
    '# Built-in configs',
    'Each config has the settings for one data set. `coke configs` lists them, '
    '`coke train --config=umls` uses one, and `coke configs umls > mine.py` '
    'writes its file, which you can change and use with `--config=mine.py`. '
    'Every field that a file does not set has [its default](settings.md).',
    'In a clone of the repository, the files are in `configs/`. Those in '
    '`configs/budgets/` are for the scripts of [Reproduction]'
    '(reproduction.md) and are not part of the installed package.',
  ]
  folder = ROOT / 'configs'
  for path in (*sorted(folder.glob('*.py')), *sorted(folder.glob('*/*.py'))):
    module = _load(path)
    name = path.relative_to(ROOT).as_posix()
    parts += [f'## {name}', _config_docstring(module.__doc__)]
    if inspect.signature(module.get_config).parameters:
      parts.append(
        f'The fields depend on the argument: see the [file](../{name}).'
      )
      continue
    changed = _changes(module.get_config())
    lines = [f'config.{field} = {value!r}' for field, value in changed.items()]
    parts.append('\n'.join(['```python', *lines, '```']))
  return _join(parts)


def command_line() -> str:
  """Returns the page of command-line flags."""
  parts = [
    '# Command line',
    '`coke` and `python -m coke_jax.main` are the same program. `coke predict` '
    'is the same as `coke --mode=predict`. `coke predict --help` shows the '
    'flags of the command. A flag that the command does not use raises an '
    'error. Dashes in a flag may be written as underscores. Flags that begin '
    'with `--config.` set [config fields](settings.md).',
    'A script completes commands, flags, config fields and built-in configs in '
    'the shell. To load it, add one of these lines to the configuration of '
    'your shell:',
    '```bash\nsource <(coke completion bash)     # ~/.bashrc\n'
    'source <(coke completion zsh)      # ~/.zshrc, after compinit\n'
    'coke completion fish | source      # ~/.config/fish/config.fish\n```',
    '## For every command',
  ]
  flag: Any
  for name in ('config', 'workdir', 'mode'):
    flag = main.FLAGS[name]
    text = 'The command to run; see below.' if name == 'mode' else flag.help
    default = f'default `{flag.default}`' if flag.default else ''
    parts.append(_definition(f'`--{name}`', name, text, default))
  parts.append(
    _definition(
      '`--config.<group>.<field>=<value>`',
      'override',
      'Sets a field of the config. The page of config fields lists them.',
    )
  )
  for mode, command in commands.COMMANDS.items():
    examples = '\n'.join(command.examples)
    parts += [f'## coke {mode}', _escape(command.help)]
    if command.positional:
      parts.append(
        f'The value of `--{command.positional}` can also be written directly '
        f'after `coke {mode}`.'
      )
    parts.append(f'```bash\n{examples}\n```')
    for flag in flags_lib.TABLE:
      if mode in flag.modes:
        notes = []
        if flag.choices:
          notes.append(' or '.join(f'`{choice}`' for choice in flag.choices))
        default = flag.default_for(mode)
        if default not in ('', False):
          notes.append(f'default `{default}`')
        parts.append(
          _definition(
            f'`{flag.typed}`',
            f'{mode}-{flag.name}',
            flag.help_for(mode),
            ', '.join(notes),
          )
        )
  return _join(parts)


def error_classes() -> str:
  """Returns the page of all subclasses of `CokeError`."""
  parts = [
    '# Errors',
    'Every error that input, settings, files or devices can cause is a '
    '`CokeError`. Its message names the place, the value and what was '
    'expected. The command line prints the message and exits with status 1. In '
    'Python:',
    "```python\ntry:\n  model = coke_jax.load('runs/countries')\n"
    'except coke_jax.CokeError as error:\n  print(error)\n```',
    '::: coke_jax.CokeError\n    options:\n      heading_level: 2',
    '::: coke_jax.QuestionError\n    options:\n      heading_level: 2',
    '## Other classes',
  ]
  for path in sorted(PACKAGE.rglob('*.py')):
    module = '.'.join(path.relative_to(ROOT).with_suffix('').parts)
    for node in ast.parse(path.read_text(encoding='utf-8')).body:
      if not isinstance(node, ast.ClassDef) or node.name == 'QuestionError':
        continue
      if any(ast.unparse(base).endswith('CokeError') for base in node.bases):
        parts.append(f'::: {module}.{node.name}')
  return _join(parts)


def module_index() -> list[tuple[str, str]]:
  """Returns the package and the path of each page of modules."""
  packages = [
    path.parent.relative_to(ROOT).as_posix().replace('/', '.')
    for path in sorted(PACKAGE.rglob('__init__.py'))
  ]
  return [(package, f'modules/{package}.md') for package in packages]


def modules() -> dict[str, str]:
  """Returns a page for each package, with all its modules."""
  pages = {}
  for package, page in module_index():
    folder = ROOT / package.replace('.', '/')
    about = ast.get_docstring(
      ast.parse((folder / '__init__.py').read_text(encoding='utf-8'))
    )
    parts = [f'# {package}', about or '']
    for path in sorted(folder.glob('*.py')):
      if path.stem not in ('__init__', '__main__'):
        parts.append(
          f'::: {package}.{path.stem}\n'
          '    options:\n'
          '      heading_level: 2\n'
          '      skip_local_inventory: true\n'
          '      show_root_full_path: true'
        )
    pages[page] = _join(parts)
  return pages


def _definition(term: str, anchor: str, text: str, notes: str = '') -> str:
  """Returns an entry of a definition list, with an anchor for links."""
  suffix = f', {notes}' if notes else ''
  return f'<span id="{anchor}"></span>{term}{suffix}\n:   {_escape(text)}'


def _escape(text: str) -> str:
  """Escapes markup of Markdown and HTML, and formats flags as `code`."""
  pieces = re.split(
    '(`[^`]*`)', re.sub('(?<![`-])--[a-z][a-z-]*', r'`\g<0>`', text)
  )
  return ''.join(
    piece
    if piece.startswith('`')
    else re.sub(r'([*\[\]])', r'\\\1', piece).replace('<', '&lt;')
    for piece in pieces
  )


def _config_docstring(text: str | None) -> str:
  """Returns a config's docstring, with its command as a block of code."""
  assert text is not None, 'every config has a docstring'
  paragraphs = []
  for paragraph in text.strip().split('\n\n'):
    paragraph = ' '.join(line.strip() for line in paragraph.splitlines())
    if paragraph.startswith('python '):
      paragraph = f'```bash\n{paragraph}\n```'
    paragraphs.append(paragraph)
  return '\n\n'.join(paragraphs)


def _changes(config: Any) -> dict[str, object]:
  """Returns the fields whose values are not the defaults."""
  default = config_lib.flatten(config_lib.default_config())
  return {
    field: value
    for field, value in config_lib.flatten(config).items()
    if value != default[field]
  }


def _load(path: pathlib.Path) -> Any:
  spec = importlib.util.spec_from_file_location(path.stem, path)
  assert spec is not None
  assert spec.loader is not None
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


def _join(parts: list[str]) -> str:
  return '\n\n'.join(part for part in parts if part) + '\n'
