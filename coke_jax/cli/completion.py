"""Scripts that complete command lines of `coke` in bash, zsh and fish.

The scripts contain all commands, flags, values, config fields and built-in
configs, so that a completion does not start Python.
"""

import dataclasses
import re
from collections.abc import Mapping

from absl import flags as absl_flags

from coke_jax import builtin_configs
from coke_jax import config as config_lib
from coke_jax.cli import command_types, flags

# For these flags, shells complete the names of files.
_PATHS = (
  'workdir',
  *(flag.name for flag in flags.TABLE if flag.is_path),
)

_BASH = """\
# Completes the commands and flags of coke. Load it in bash with:
#   source <(coke completion bash)
_coke() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local words='' reply
  # Bash separates --flag=value into three words.
  if [[ $word == '=' ]]; then
    word=''
  elif [[ $before == '=' ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  if ((COMP_CWORD == 1)); then
    words='%(commands)s --help --helpfull --version'
  elif [[ $word == --config.* ]]; then
    words='%(fields)s'
  elif [[ $word == -* ]]; then
    case ${COMP_WORDS[1]} in
%(flags)s
    esac
  else
    case "${COMP_WORDS[1]} $before" in
%(values)s
    esac
  fi
  COMPREPLY=()
  while IFS= read -r reply; do
    COMPREPLY+=("$reply")
  done < <(compgen -W "$words" -- "$word")
  if [[ ${COMPREPLY[0]-} == *[=.] ]]; then
    compopt -o nospace
  fi
}
complete -o default -F _coke coke
"""

_ZSH = """\
#compdef coke
# Completes the commands and flags of coke. Load it in zsh with:
#   source <(coke completion zsh)
_coke() {
  local -a commands flags fields
  commands=(
%(commands)s
  )
  fields=(
%(fields)s
  )
  if ((CURRENT == 2)) && [[ $PREFIX != -* ]]; then
    _describe -t commands command commands
    return
  fi
  case $words[2] in
%(flags)s
    *) flags=('--help[Show help.]' '--version[Show the version.]') ;;
  esac
  _arguments $flags '*:file:_files'
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _coke "$@"
else
  compdef _coke coke
fi
"""

_FISH = """\
# Completes the commands and flags of coke. Load it in fish with:
#   coke completion fish | source
complete -c coke -n __fish_use_subcommand -x -a help -d 'Show help.'
complete -c coke -l help -d 'Show help.'
%(lines)s
"""


@dataclasses.dataclass(frozen=True)
class _Word:
  """A flag in a completion script.

  Attributes:
    name: the name as written on the command line, such as `--top`.
    help: the first sentence of the flag's help text.
    values: the values to complete.
    is_switch: whether the flag is used without a value.
    is_path: whether to complete names of files.
  """

  name: str
  help: str
  values: tuple[str, ...] = ()
  is_switch: bool = False
  is_path: bool = False


def script(shell: str, commands: Mapping[str, command_types.Command]) -> str:
  """Returns the script that completes command lines in a shell.

  Args:
    shell: `bash`, `zsh` or `fish`.
    commands: the commands by name.
  """
  write = {'bash': _bash, 'zsh': _zsh, 'fish': _fish}[shell]
  return write(commands)


def _bash(commands: Mapping[str, command_types.Command]) -> str:
  flag_lines, value_lines = [], []
  for mode, command in commands.items():
    words = _words(mode, command)
    typed = [word.name + ('' if word.is_switch else '=') for word in words]
    if 'config' in command.common:
      typed.append('--config.')
    flag_lines.append(f"      {mode}) words='{' '.join(typed)}' ;;")
    for word in words:
      if word.values:
        case = f'"{mode} {word.name}"'
        if word.name == f'--{command.positional}':
          # The value can also be the word after the command.
          case += f' | "{mode} {mode}"'
        value_lines.append(f"      {case}) words='{' '.join(word.values)}' ;;")
  return _BASH % {
    'commands': ' '.join(commands),
    'fields': ' '.join(f'{word.name}=' for word in _fields()),
    'flags': '\n'.join(flag_lines),
    'values': '\n'.join(value_lines),
  }


def _zsh(commands: Mapping[str, command_types.Command]) -> str:
  lines = []
  for mode, command in commands.items():
    words = _words(mode, command)
    fields = ' $fields' if 'config' in command.common else ''
    specs = [_zsh_flag(word) for word in words]
    for word in words:
      if word.name == f'--{command.positional}' and word.values:
        specs.append(_quoted(f'2:value:({" ".join(word.values)})'))
    lines.append(f'    {mode}) flags=({" ".join(specs)}{fields}) ;;')
  return _ZSH % {
    'commands': '\n'.join(
      '    ' + _quoted(f'{mode}:{command.summary}')
      for mode, command in commands.items()
    ),
    'fields': '\n'.join('    ' + _zsh_flag(word) for word in _fields()),
    'flags': '\n'.join(lines),
  }


def _zsh_flag(word: _Word) -> str:
  """Returns the argument of `_arguments` for a flag."""
  text = re.sub(r'([\[\]\\])', r'\\\1', word.help)
  if word.is_switch:
    return _quoted(f'{word.name}[{text}]')
  action = '_files' if word.is_path else ' '
  if word.values:
    names = ' '.join(word.values)
    action = f'{{compadd {names}; _files}}' if word.is_path else f'({names})'
  return _quoted(f'{word.name}=[{text}]:value:{action}')


def _fish(commands: Mapping[str, command_types.Command]) -> str:
  lines = []
  for mode, command in commands.items():
    lines.append(
      f'complete -c coke -n __fish_use_subcommand -x -a {mode} '
      f'-d {_quoted(command.summary)}'
    )
    here = _quoted(f'__fish_seen_subcommand_from {mode}')
    words = _words(mode, command)
    if 'config' in command.common:
      words += _fields()
    for word in words:
      values = _quoted(' '.join(word.values))
      line = f'complete -c coke -n {here} -l {word.name.removeprefix("--")}'
      if not word.is_switch:
        line += ' -r' if word.is_path else ' -x'
      if word.values:
        line += f' -a {values}'
      lines.append(f'{line} -d {_quoted(word.help)}')
      if word.name == f'--{command.positional}' and word.values:
        lines.append(f'complete -c coke -n {here} -f -a {values}')
  return _FISH % {'lines': '\n'.join(lines)}


def _words(mode: str, command: command_types.Command) -> list[_Word]:
  """Returns the flags of a command, without the flags of config fields."""
  words = []
  for name in command.common:
    words.append(
      _Word(
        f'--{name}',
        _first_sentence(absl_flags.FLAGS[name].help),
        tuple(builtin_configs.names()) if name == 'config' else (),
        is_path=True,
      )
    )
  for flag in flags.TABLE:
    if mode in flag.modes:
      values = flag.choices
      if flag.name == 'show':
        values = tuple(builtin_configs.names())
      words.append(
        _Word(
          flag.typed,
          _first_sentence(flag.help_for(mode)),
          values,
          isinstance(flag.default, bool),
          flag.name in _PATHS,
        )
      )
  return [*words, _Word('--help', 'Show help.', is_switch=True)]


def _fields() -> list[_Word]:
  """Returns the flags of all config fields."""
  return [
    _Word(f'--config.{field}', _first_sentence(comment))
    for field, _, comment in config_lib.describe()
  ]


def _first_sentence(text: str) -> str:
  first = re.split(r'(?<=\.)\s', text, maxsplit=1)[0]
  return ' '.join(first.split())


def _quoted(text: str) -> str:
  """Quotes a text for a shell."""
  return "'" + text.replace("'", "'\\''") + "'"
