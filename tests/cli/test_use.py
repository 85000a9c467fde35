"""What asking writes never replaces the questions or the model."""

import shutil

import pytest

import coke_jax
from coke_jax import config as config_lib
from coke_jax.cli import commands, flags
from coke_jax.storage import workdir


@pytest.mark.parametrize('mode', [commands.predict, commands.embed])
@pytest.mark.parametrize(
  'name', ['asked.tsv', 'model.safetensors', 'config.json', 'vocabulary.json']
)
def test_output_over_the_input_or_the_model_is_refused(tmp_path, mode, name):
  model = tmp_path / 'model'
  shutil.copytree(coke_jax.EXAMPLE_MODEL, model)
  asked = model / 'asked.tsv'
  asked.write_text('France\tborders\t?\n', encoding='utf-8')
  before = (model / name).read_bytes()
  given = flags.Options(
    input=str(asked), output=str(tmp_path / 'model' / '.' / name)
  )
  with pytest.raises(config_lib.ConfigError, match=f'{name} is .*another file'):
    mode(workdir.Workdir(model).config(), model, given)
  assert (model / name).read_bytes() == before
