"""Checks that --output cannot overwrite the input or the model."""

import shutil

import pytest

import coke_jax
from coke_jax import config as config_lib
from coke_jax.cli import commands, flags
from coke_jax.storage import workdir


@pytest.mark.parametrize('mode', ['predict', 'embed'])
@pytest.mark.parametrize(
  'name',
  ['questions.tsv', 'model.safetensors', 'config.json', 'vocabulary.json'],
)
def test_output_over_the_input_or_the_model_is_refused(tmp_path, mode, name):
  model = tmp_path / 'model'
  shutil.copytree(coke_jax.EXAMPLE_MODEL, model)
  questions = model / 'questions.tsv'
  questions.write_text('France\tborders\t?\n', encoding='utf-8')
  before = (model / name).read_bytes()
  keywords = {
    flag.name: flag.default for flag in flags.TABLE if mode in flag.modes
  }
  keywords['input'] = str(questions)
  keywords['output'] = str(tmp_path / 'model' / '.' / name)
  with pytest.raises(config_lib.ConfigError, match=f'{name} is .*another file'):
    commands.COMMANDS[mode].function(
      workdir.Workdir(model).config(), model, **keywords
    )
  assert (model / name).read_bytes() == before
