"""Tests that exported models are read exactly, and that damage is an error."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable

import flax.traverse_util
import jax
import numpy as np
import pytest
import safetensors
import safetensors.numpy
import small

import coke_jax
from coke_jax import config as config_lib
from coke_jax import tasks
from coke_jax.data import arrays, atomic_files, graph, walks
from coke_jax.model import parameters
from coke_jax.predict import calibration_files, export
from coke_jax.predict.jobs import calibrate
from coke_jax.storage import checkpoints as checkpoints_lib
from coke_jax.storage import checksums, json_files, workdir
from coke_jax.training import progress as progress_lib
from coke_jax.training import setup as setup_lib
from coke_jax.training import train_state

ENTITIES = ('', ' a ', '"q"', 'NA', 'Zürich', '東', '\u2028', *'bcdefgh')
RELATIONS = ('nan', 'near')
BEST, LAST = 20, 30  # steps of checkpoints
KERNEL = 'blocks_0/attention/query_key_value/kernel'
FILES = {
  'model.safetensors',
  'data.safetensors',
  'config.json',
  'vocabulary.json',
  'results.json',
  'SHA256SUMS',
}


def random_graph() -> graph.KnowledgeGraph:
  return small.random_graph(
    sizes=(40, 8, 0), entities=ENTITIES, relations=RELATIONS, repeats=False
  )


def random_state(shapes, step: int):
  generator = np.random.default_rng(step)
  return jax.tree.map(
    lambda leaf: generator.normal(size=leaf.shape).astype(leaf.dtype), shapes
  )


def make_run(folder: pathlib.Path, kind: str) -> pathlib.Path:
  """Creates a work folder with checkpoints, as after training."""
  config = small.config(
    data={'kind': kind, 'max_path_length': 2 if kind == 'walks' else 1},
    model={'num_layers': 2},
  )
  data: arrays.DataSet = random_graph()
  if kind == 'walks':
    data = walks.sample_path_data(
      random_graph(), seed=0, longest=3, walks_per_train_triple=2
    )
  place = small.create_workdir(folder, config, data)
  task = tasks.make_task(config, data)
  model = tasks.build_model(config, data.vocabulary, task.max_length)
  transformation, _ = setup_lib.build_optimizer(config, 1)
  shapes = jax.eval_shape(
    lambda: train_state.to_items(
      train_state.init_state(model, transformation, seed=0)
    )
  )
  with place.checkpoints(writing=True) as checkpoints:
    for step in (10, BEST, LAST):
      progress = progress_lib.Progress(step, best_step=min(step, BEST))
      checkpoints.save(
        step, random_state(shapes, step), dataclasses.asdict(progress)
      )
  place.write_results({'split': 'test', 'both': {'mrr': 1 / 3}, 'step': BEST})
  return folder


@pytest.fixture(scope='module')
def triples(tmp_path_factory):
  """Returns a work folder and its exported model. No test changes them."""
  folder = tmp_path_factory.mktemp('exported')
  run = make_run(folder / 'run', 'triples')
  assert export.write(run, folder / 'model') == BEST
  return run, folder / 'model'


@pytest.fixture(scope='module')
def paths(tmp_path_factory):
  """Returns a work folder of path data and its exported model."""
  folder = tmp_path_factory.mktemp('paths')
  run = make_run(folder / 'run', 'walks')
  target = folder / 'made' / 'as needed'
  assert export.write(str(run), str(target)) == BEST
  return run, target


@pytest.fixture
def exported(triples, tmp_path):
  """Returns a copy of an exported model. Tests may damage the copy."""
  return pathlib.Path(shutil.copytree(triples[1], tmp_path / 'model'))


def content(folder: pathlib.Path) -> dict[str, bytes]:
  return {path.name: path.read_bytes() for path in folder.iterdir()}


def assert_same_leaves(tree, wanted) -> None:
  assert jax.tree.structure(tree) == jax.tree.structure(wanted)
  for leaf, want in zip(
    jax.tree.leaves(tree), jax.tree.leaves(wanted), strict=True
  ):
    assert (leaf.dtype, leaf.shape) == (want.dtype, want.shape)
    assert np.asarray(leaf).tobytes() == np.asarray(want).tobytes()


# ---------------------------------------------------------------- round trip


@pytest.mark.parametrize('kind', ['triples', 'paths'])
def test_the_best_checkpoint_is_read_back_exactly(kind, request):
  run, folder = request.getfixturevalue(kind)
  config, data, params, step = export.read(str(folder))
  place = workdir.Workdir(run)
  assert step == BEST
  assert config_lib.flatten(config) == config_lib.flatten(place.config())
  assert data.vocabulary == place.data().vocabulary
  assert data.name == 'random'
  assert type(data) is type(place.data())
  assert_same_leaves(arrays.to_arrays(data), arrays.to_arrays(place.data()))
  task = tasks.make_task(config, data)
  model = tasks.build_model(config, data.vocabulary, task.max_length)
  wanted, _ = place.best_params(parameters.param_shapes(model))
  assert_same_leaves(params, wanted)


def test_the_files(triples):
  run, folder = triples
  assert {path.name for path in folder.iterdir()} == FILES
  for name in ('config.json', 'vocabulary.json', 'results.json'):
    assert (folder / name).read_bytes() == (run / name).read_bytes()
  flat = safetensors.numpy.load_file(folder / 'model.safetensors')
  assert flat[KERNEL].shape == (8, 24)
  assert flat['element_embedding'].shape == (len(ENTITIES) + 4, 8)
  with safetensors.safe_open(
    folder / 'model.safetensors', framework='numpy'
  ) as opened:
    metadata = json.loads(opened.metadata()['coke_jax'])
  assert metadata == {
    'format': 1,
    'version': coke_jax.__version__,
    'step': BEST,
    'sha256': metadata['sha256'],
  }


def test_all_files_have_the_same_permissions(triples):
  modes = {path.stat().st_mode for path in triples[1].iterdir()}
  assert len(modes) == 1


def test_the_same_model_gives_the_same_bytes(triples, tmp_path):
  run, folder = triples
  export.write(run, tmp_path / 'again')
  assert content(tmp_path / 'again') == content(folder)


@pytest.mark.parametrize('step', [LAST, None])
def test_metrics_of_another_checkpoint_are_not_exported(
  triples, tmp_path, step
):
  run = shutil.copytree(triples[0], tmp_path / 'run')
  if step is None:
    (run / 'results.json').unlink()
  else:
    workdir.Workdir(run).write_results({'split': 'test', 'step': step})
  export.write(run, tmp_path / 'model')
  export.read(tmp_path / 'model')
  assert {path.name for path in (tmp_path / 'model').iterdir()} == (
    FILES - {'results.json'}
  )


def test_the_calibration_of_the_checkpoint_is_exported(triples, tmp_path):
  run = shutil.copytree(triples[0], tmp_path / 'run')
  calibration = calibrate.Calibration('valid', (-9.0, -1.0), (0, 3), (40, 5))
  _, _, params, _ = export.read(triples[1])
  calibration_files.write(run, calibration, params)
  export.write(run, tmp_path / 'model')
  loaded = coke_jax.load(tmp_path / 'model')
  assert loaded.calibration == calibration
  assert content(tmp_path / 'model').keys() == FILES | {'calibration.json'}
  others = jax.tree.map(lambda leaf: leaf + 1, params)
  calibration_files.write(run, calibration, others)
  export.write(run, tmp_path / 'of other parameters')
  assert content(tmp_path / 'of other parameters').keys() == FILES


def test_arrays_of_any_layout_keep_their_values(tmp_path):
  """Some versions of safetensors corrupt arrays that are not in C order."""
  wide = np.arange(12, dtype=np.int32).reshape(3, 4)
  named = {
    'columns': np.asfortranarray(wide),
    'turned': wide.T,
    'part': wide[:, :2],
    'backwards': wide[::-1],
    'big end first': wide.astype('>i4'),
    'none': wide[:0],
    'flags': np.array([True, False, True])[::2],
    'scalar': np.array(7, dtype=np.int32),
  }
  path = tmp_path / 'x.safetensors'
  export.write_arrays(path, named)
  read = export.read_arrays(path)
  assert read.keys() == named.keys()
  for name, array in named.items():
    assert read[name].shape == array.shape
    assert read[name].tolist() == array.tolist()


def test_old_files_stay_readable():
  """If this checksum changed, older exports could not be read."""
  params = {
    'b': {'kernel': np.arange(6, dtype=np.float32).reshape(2, 3)},
    'a': np.zeros(2, dtype=np.float32),
  }
  metadata = {'format': 1, 'version': '0.1.0', 'step': 5}
  assert checksums.of_arrays(params, metadata) == (
    '7f4e73d25fef4a952021cf9ae2891eaab443b5ae42ca1746ec22070b51f993e7'
  )


# ---------------------------------------------------------------------- writing


@pytest.mark.parametrize('there', ['file', 'folder with a file', 'run'])
def test_nothing_is_overwritten(triples, tmp_path, there):
  run, target = triples[0], tmp_path / 'target'
  if there == 'file':
    target.write_text('mine')
  elif there == 'run':
    target = run
  else:
    target.mkdir()
    (target / 'notes.txt').write_text('mine')
  before = sorted(target.parent.rglob('*'))
  with pytest.raises(export.ExportError, match='exists already: expected'):
    export.write(run, target)
  assert sorted(target.parent.rglob('*')) == before


def test_an_empty_folder_is_filled(triples, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  (tmp_path / 'model').mkdir()
  export.write(triples[0], 'model')
  assert content(tmp_path / 'model') == content(triples[1])


def test_a_linked_folder_is_filled(triples, tmp_path):
  (tmp_path / 'there').mkdir()
  for name in ('there', 'new'):
    (tmp_path / f'link to {name}').symlink_to(name)
    export.write(triples[0], tmp_path / f'link to {name}')
    assert (tmp_path / f'link to {name}').is_symlink()
    assert content(tmp_path / name) == content(triples[1])


def test_a_target_below_a_file(triples, tmp_path):
  (tmp_path / 'file').write_text('mine')
  with pytest.raises(
    atomic_files.WriteError, match='file/model: cannot be written'
  ):
    export.write(triples[0], tmp_path / 'file' / 'model')


def test_the_target_is_written_completely_or_not_at_all(
  triples, tmp_path, monkeypatch
):
  def full(*_):
    raise OSError(28, 'No space left on device')

  monkeypatch.setattr(json_files, 'write_vocabulary', full)
  with pytest.raises(atomic_files.WriteError, match=r'model: .*No space left'):
    export.write(triples[0], tmp_path / 'model')
  assert not list(tmp_path.iterdir())


def test_written_files_are_checked(triples, tmp_path, monkeypatch):
  save = safetensors.numpy.save

  def save_shuffled(named, metadata):
    return save({n: a[::-1].copy() for n, a in named.items()}, metadata)

  monkeypatch.setattr(safetensors.numpy, 'save', save_shuffled)
  with pytest.raises(export.ExportError, match=r'model\.safetensors: is dam'):
    export.write(triples[0], tmp_path / 'model')
  assert not list(tmp_path.iterdir())


def test_a_run_without_a_checkpoint(triples, tmp_path):
  run = shutil.copytree(triples[0], tmp_path / 'run')
  shutil.rmtree(run / 'checkpoints')
  with pytest.raises(
    checkpoints_lib.CheckpointError, match='no checkpoint yet'
  ):
    export.write(run, tmp_path / 'model')
  with pytest.raises(workdir.WorkdirError, match=r'nowhere: no config\.json'):
    export.write(tmp_path / 'nowhere', tmp_path / 'model')
  assert not (tmp_path / 'model').exists()


# ----------------------------------------------------------------------- damage


def test_is_export(triples, exported):
  run, _ = triples
  assert export.is_export(str(exported))
  assert not export.is_export(run)
  assert not export.is_export(exported / 'nowhere')
  (exported / 'SHA256SUMS').unlink()
  assert export.is_export(exported)
  with pytest.raises(export.ExportError, match='no SHA256SUMS'):
    export.read(exported)


@pytest.mark.parametrize('name', sorted(FILES))
def test_a_missing_file_is_named(exported, name):
  (exported / name).unlink()
  assert export.is_export(exported)
  with pytest.raises(export.ExportError, match=f'model: no {name}: expected'):
    export.read(exported)


@pytest.mark.parametrize('name', sorted(FILES))
@pytest.mark.parametrize('kept', [0.0, 0.5, 1.0])
def test_a_truncated_file_is_named(exported, name, kept):
  path = exported / name
  whole = path.read_bytes()
  path.write_bytes(whole[: min(int(len(whole) * kept), len(whole) - 1)])
  with pytest.raises(export.ExportError) as caught:
    export.read(exported)
  assert str(exported) in str(caught.value)
  assert name in str(caught.value)


def test_another_file_is_named(exported):
  (exported / 'notes.txt').write_text('mine')
  with pytest.raises(export.ExportError, match=r'notes\.txt: not listed in'):
    export.read(exported)


@pytest.mark.parametrize('name', sorted(FILES))
def test_a_flipped_byte_anywhere_is_noticed(exported, name):
  path = exported / name
  original = path.read_bytes()
  generator = np.random.default_rng(len(original))
  places = {0, len(original) - 1, *generator.integers(0, len(original), 60)}
  for place in places:
    changed = bytearray(original)
    changed[place] ^= int(generator.integers(1, 256))
    path.write_bytes(changed)
    with pytest.raises(export.ExportError) as caught:
      export.read(exported)
    assert str(exported) in str(caught.value)


def test_reformatted_json_is_noticed(exported):
  path = exported / 'config.json'
  path.write_text(path.read_text().replace('  ', '\t'))
  with pytest.raises(export.ExportError, match=r'config\.json: is damaged'):
    export.read(exported)


# --------------------------------------------- wrong files with right checksums

Change = Callable[[pathlib.Path], None]


def with_params(change: Callable[[dict], None]) -> Change:
  """Returns a change of the parameters and checksum in model.safetensors."""

  def apply(folder: pathlib.Path) -> None:
    path = folder / 'model.safetensors'
    flat = safetensors.numpy.load_file(path)
    change(flat)
    params = flax.traverse_util.unflatten_dict(flat, sep='/')
    export.write_params(path, params, step=1)

  return apply


def with_metadata(change: Callable[[dict], None]) -> Change:
  """Returns a change of only the metadata in model.safetensors."""

  def apply(folder: pathlib.Path) -> None:
    path = folder / 'model.safetensors'
    with safetensors.safe_open(path, framework='numpy') as opened:
      metadata = json.loads(opened.metadata()['coke_jax'])
    change(metadata)
    flat = safetensors.numpy.load_file(path)
    export.write_arrays(path, flat, {'coke_jax': json.dumps(metadata)})

  return apply


def with_data(change: Callable[[dict], None]) -> Change:
  """Returns a change of data.safetensors."""

  def apply(folder: pathlib.Path) -> None:
    path = folder / 'data.safetensors'
    named = safetensors.numpy.load_file(path)
    change(named)
    export.write_arrays(path, named)

  return apply


def with_json(name: str, change: Callable[[dict], object]) -> Change:
  """Returns a change of config.json or vocabulary.json."""

  def apply(folder: pathlib.Path) -> None:
    path = folder / name
    value = json.loads(path.read_text(encoding='utf-8'))
    change(value)
    json_files.write_json(path, value)

  return apply


def with_bytes(name: str, new: bytes) -> Change:
  """Returns a change that replaces the content of a file."""
  return lambda folder: (folder / name).write_bytes(new) and None


def unlisted(name: str) -> Change:
  """Returns a change that removes a file before SHA256SUMS is written."""
  return lambda folder: (folder / name).unlink()


FOREIGN = safetensors.numpy.save({'x': np.zeros(3, np.float32)})
WRONG = {
  'renamed': (
    with_params(lambda p: p.update({'other': p.pop(KERNEL)})),
    rf'model\.safetensors: lacks {KERNEL}: expected the \d+ parameters',
  ),
  'one layer less': (
    with_json('config.json', lambda c: c['model'].update(num_layers=1)),
    r'model\.safetensors: also has blocks_1/\S+, \S+, \S+, \.\.\.: expected',
  ),
  'another size': (
    with_json('config.json', lambda c: c['model'].update(hidden_size=4)),
    r'model\.safetensors: \S+ is float32 \([\d, ]+\): expected float32 \(',
  ),
  'another shape': (
    with_params(lambda p: p.update({KERNEL: p[KERNEL].T})),
    r'kernel is float32 \(24, 8\): expected float32 \(8, 24\)',
  ),
  'another type': (
    with_params(lambda p: p.update({KERNEL: p[KERNEL].astype(np.float64)})),
    r'kernel is float64 \(8, 24\): expected float32 \(8, 24\)',
  ),
  'one label less': (
    with_json('vocabulary.json', lambda v: v['relations'].pop()),
    r'data\.safetensors: cannot be used: train holds ids from 0 to 1',
  ),
  'one label more': (
    with_json('vocabulary.json', lambda v: v['entities'].append('x')),
    r'element_embedding is float32 \(18, 8\): expected float32 \(19, 8\)',
  ),
  'not a vocabulary': (
    with_json('vocabulary.json', lambda v: v.update(entities=[1])),
    r'vocabulary\.json: expected "entities" to be a list',
  ),
  'an unknown setting': (
    with_json('config.json', lambda c: c.update(other=1)),
    r'config\.json: not a config of this version',
  ),
  'not JSON': (
    with_bytes('config.json', b'{'),
    r'config\.json: cannot be read',
  ),
  'a newer format': (
    with_metadata(lambda m: m.update(format=2, version='9.9')),
    r'has format 2, written by coke_jax 9\.9: expected format 1, the only ',
  ),
  'another step': (
    with_metadata(lambda m: m.update(step=21)),
    r'model\.safetensors: is damaged: its content',
  ),
  'no checksum': (
    with_metadata(lambda m: m.pop('sha256')),
    r'model\.safetensors: is damaged: its content',
  ),
  'not a step': (
    with_metadata(lambda m: m.update(step='21')),
    r"model\.safetensors: its step is '21': expected an integer",
  ),
  'of another program': (
    with_bytes('model.safetensors', FOREIGN),
    r'model\.safetensors: has no metadata of coke_jax: expected',
  ),
  'not parameters': (
    with_bytes('model.safetensors', b'\x80\x04N.'),
    r'model\.safetensors: cannot be read',
  ),
  'not arrays': (
    with_bytes('data.safetensors', FOREIGN[:-1]),
    r'data\.safetensors: cannot be read',
  ),
  'no split': (
    with_data(lambda d: d.pop('valid')),
    r"data\.safetensors: cannot be used: 'valid'",
  ),
  'floats for ids': (
    with_data(lambda d: d.update(test=d['train'].astype(np.float32))),
    r'data\.safetensors: cannot be used: test holds float32',
  ),
  'no config': (
    unlisted('config.json'),
    r'no config\.json: expected an exported model',
  ),
  'no parameters': (
    unlisted('model.safetensors'),
    r'model\.safetensors: cannot be read: No such file',
  ),
}


@pytest.mark.parametrize('change', WRONG)
def test_a_wrong_content_is_named(exported, change):
  apply, expected = WRONG[change]
  apply(exported)
  checksums.write(exported)
  with pytest.raises(export.ExportError, match=expected) as caught:
    export.read(exported)
  assert str(exported) in str(caught.value)


def test_a_flipped_parameter_is_noticed_by_its_own_checksum(exported):
  path = exported / 'model.safetensors'
  original = path.read_bytes()
  start = 8 + int.from_bytes(original[:8], 'little')
  for place in range(start, len(original), (len(original) - start) // 10):
    changed = bytearray(original)
    changed[place] ^= 0x01
    path.write_bytes(changed)
    checksums.write(exported)
    with pytest.raises(export.ExportError, match='is damaged: its content'):
      export.read(exported)


# ---------------------------------------------------------------- without orbax

_ASK = """
import json, sys
sys.modules['orbax'] = sys.modules['orbax.checkpoint'] = None
import coke_jax
model = coke_jax.load(sys.argv[1])
for answer in model.predict(('NA', 'near', '?'), top=5):
  print(json.dumps((answer.label, answer.rank, answer.score)))
"""


def test_an_exported_model_answers_where_orbax_is_missing(triples):
  run, folder = triples
  done = subprocess.run(
    [sys.executable, '-c', _ASK, str(folder)],
    capture_output=True,
    text=True,
    env={**os.environ, 'PYTHONIOENCODING': 'utf-8'},
  )
  assert done.returncode == 0, done.stderr
  answers = coke_jax.load(run).predict(('NA', 'near', '?'), top=5)
  # The two processes can compile differently, so scores can differ slightly.
  assert [json.loads(line) for line in done.stdout.splitlines()] == [
    [answer.label, answer.rank, pytest.approx(answer.score, rel=1e-5)]
    for answer in answers
  ]


def test_a_run_needs_orbax(triples):
  done = subprocess.run(
    [sys.executable, '-c', _ASK, str(triples[0])],
    capture_output=True,
    text=True,
  )
  assert done.returncode == 1
  assert 'import of orbax' in done.stderr
