"""Tests how checkpoints are saved, restored, kept, and checked for damage."""

import asyncio
import gc
import json
import logging
import pathlib

import jax
import numpy as np
import pytest

from coke_jax.storage import checkpoints as checkpoints_lib
from coke_jax.storage import checksums, orbax_noise

# Orbax reads arrays concurrently. If one array cannot be read, the reads of
# other arrays may later report errors to an event loop that has been closed.
pytestmark = pytest.mark.filterwarnings(
  'ignore::pytest.PytestUnraisableExceptionWarning'
)


def state_of(step: int) -> dict:
  """Returns a nested state of several dtypes, with special values."""
  generator = np.random.default_rng(step)
  weights = generator.normal(size=(17, 5)).astype(np.float32)
  weights[0] = [np.nan, np.inf, -0.0, 1e-42, 3.4e38]
  return {
    'params': {'embedding': weights, 'bias': np.zeros(3, np.float32)},
    'training': {
      'moments': (weights[1:3].copy(), np.ones((2, 1, 2), np.float32)),
      'half': jax.numpy.arange(step, step + 5, dtype=jax.numpy.bfloat16),
      'step': np.array(step, dtype=np.int32),
    },
  }


def metadata_of(step: int, best: int | None) -> dict:
  return {
    'step': step,
    'best_step': best,
    'best_metric': None if best is None else 1 / 3,
    'finished': False,
    'text': 'Zürich',
  }


TEMPLATE = jax.eval_shape(lambda: jax.tree.map(jax.numpy.asarray, state_of(0)))


def assert_same(restored, wanted) -> None:
  leaves, wanted_leaves = jax.tree.leaves(restored), jax.tree.leaves(wanted)
  assert jax.tree.structure(restored) == jax.tree.structure(wanted)
  for leaf, want in zip(leaves, wanted_leaves, strict=True):
    want = np.asarray(want)
    assert leaf.dtype == want.dtype
    assert leaf.shape == want.shape
    assert leaf.tobytes() == want.tobytes()


def save(folder: pathlib.Path, *steps: tuple[int, int | None]) -> None:
  with checkpoints_lib.Checkpoints(folder, writing=True) as checkpoints:
    for step, best in steps:
      checkpoints.save(step, state_of(step), metadata_of(step, best))


def kept(folder: pathlib.Path) -> set[int]:
  return {
    int(path.name.rsplit('_', 1)[1])
    for path in folder.iterdir()
    if path.is_dir()
  }


def files_of(folder: pathlib.Path, step: int) -> list[pathlib.Path]:
  root = folder / f'step_{step}'
  return sorted(path for path in root.rglob('*') if path.is_file())


def data_files(folder: pathlib.Path, step: int) -> list[pathlib.Path]:
  """Returns the files that contain the arrays of a checkpoint."""
  return [path for path in files_of(folder, step) if path.parent.name == 'd']


@pytest.fixture
def folder(tmp_path):
  return tmp_path / 'checkpoints'


# --------------------------------------------------------------- save and load


def test_nothing_saved_yet(folder):
  with checkpoints_lib.Checkpoints(folder, writing=True) as checkpoints:
    assert checkpoints.latest(TEMPLATE) is None
    assert checkpoints.best(TEMPLATE) is None


@pytest.mark.parametrize('template', [TEMPLATE, state_of(1)])
def test_state_and_metadata_come_back_exactly(folder, template):
  save(folder, (3, 3), (7, 3))
  with checkpoints_lib.Checkpoints(folder, writing=True) as checkpoints:
    state, metadata = checkpoints.latest(template)
    assert_same(state, state_of(7))
    assert metadata == metadata_of(7, 3)
    state, metadata = checkpoints.best(template)
    assert_same(state, state_of(3))
    assert metadata == metadata_of(3, 3)


def test_parameters_are_restored_without_the_training_state(folder):
  save(folder, (3, 3), (7, 3))
  for path in files_of(folder, 3):
    if 'training' in path.parts:
      path.unlink()
  template = {'params': TEMPLATE['params']}
  with checkpoints_lib.Checkpoints(folder, writing=False) as checkpoints:
    state, metadata = checkpoints.best(template)
  assert_same(state, {'params': state_of(3)['params']})
  assert metadata == metadata_of(3, 3)


def test_without_a_best_the_best_is_the_newest(folder):
  save(folder, (3, None), (7, None))
  with checkpoints_lib.Checkpoints(folder, writing=True) as checkpoints:
    state, metadata = checkpoints.best(TEMPLATE)
  assert_same(state, state_of(7))
  assert metadata['best_step'] is None


def test_arrays_on_devices_are_saved(folder):
  state = {'params': jax.device_put(np.arange(4, dtype=np.float32))}
  with checkpoints_lib.Checkpoints(folder, writing=True) as checkpoints:
    checkpoints.save(1, state, metadata_of(1, 1))
    restored, _ = checkpoints.latest(state)
  assert_same(restored, {'params': np.arange(4, dtype=np.float32)})


def test_a_relative_folder(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  save(pathlib.Path('here'), (1, 1))
  assert kept(tmp_path / 'here') == {1}


def test_a_step_that_has_a_good_checkpoint_is_not_written_again(folder):
  save(folder, (5, 5))
  before = {path: path.read_bytes() for path in files_of(folder, 5)}
  save(folder, (5, 5))
  assert before == {path: path.read_bytes() for path in files_of(folder, 5)}


def test_the_metadata_of_a_checkpoint_are_replaced(folder):
  save(folder, (3, 3), (5, 3))
  data = {path: path.read_bytes() for path in data_files(folder, 5)}
  save(folder, (5, 5))  # The step has been validated and is now the best.
  assert data == {path: path.read_bytes() for path in data_files(folder, 5)}
  with checkpoints_lib.Checkpoints(folder, writing=False) as checkpoints:
    state, metadata = checkpoints.latest(TEMPLATE)
  assert metadata == metadata_of(5, 5)
  assert_same(state, state_of(5))


def test_another_state_at_the_same_step_is_an_error(folder):
  save(folder, (5, 5))
  with (
    checkpoints_lib.Checkpoints(folder, writing=True) as checkpoints,
    pytest.raises(checkpoints_lib.CheckpointError, match='another state'),
  ):
    checkpoints.save(5, state_of(6), metadata_of(5, None))
  with checkpoints_lib.Checkpoints(folder, writing=False) as checkpoints:
    assert checkpoints.latest(TEMPLATE)[1] == metadata_of(5, 5)


def test_a_checkpoint_of_another_run_is_not_used(folder, caplog):
  for step, run in ((1, 'this'), (2, 'other')):
    with checkpoints_lib.Checkpoints(
      folder, writing=True, run=run
    ) as checkpoints:
      checkpoints.save(step, state_of(step), metadata_of(step, 1))
  with checkpoints_lib.Checkpoints(
    folder, writing=False, run='this'
  ) as checkpoints:
    assert checkpoints.latest(TEMPLATE)[1] == metadata_of(1, 1)
  assert 'step 2 is of another run' in caplog.text
  with checkpoints_lib.Checkpoints(folder, writing=False) as checkpoints:
    # Without the argument `run`, the run of a checkpoint is not checked.
    assert checkpoints.latest(TEMPLATE)[1] == metadata_of(2, 1)


def test_a_folder_that_cannot_be_made(tmp_path):
  (tmp_path / 'file').write_text('')
  with pytest.raises(checkpoints_lib.CheckpointError, match='cannot be opened'):
    checkpoints_lib.Checkpoints(tmp_path / 'file' / 'checkpoints', writing=True)


def test_a_pickle_in_a_checkpoint_is_not_loaded(folder):
  """Overwrites each file with a pickle. No pickle may be executed."""
  mark = folder.parent / 'executed'
  payload = b'cposix\nsystem\n(V' + f'touch {mark}'.encode() + b'\ntR.'
  save(folder, (10, 10), (20, 10))
  for path in files_of(folder, 20):
    whole = path.read_bytes()
    path.write_bytes(payload)
    with checkpoints_lib.Checkpoints(folder, writing=False) as checkpoints:
      state, metadata = checkpoints.latest(TEMPLATE)
    assert_same(state, state_of(metadata['step']))
    path.write_bytes(whole)
  assert not mark.exists()


# ------------------------------------------------------------- kept checkpoints

_SAVES = [
  # The saved step, the best step so far, and the steps that are then kept.
  (1, 1, {1}),
  (2, 1, {1, 2}),
  (3, 1, {1, 2, 3}),
  (4, 1, {1, 3, 4}),
  (5, 5, {4, 5}),
  (6, 5, {5, 6}),
  (7, 5, {5, 6, 7}),
  (8, 5, {5, 7, 8}),
  (9, 9, {8, 9}),
]


@pytest.mark.parametrize('reopen', [False, True])
def test_the_last_two_and_the_best_are_kept(folder, reopen):
  if reopen:
    for step, best, wanted in _SAVES:
      save(folder, (step, best))
      assert kept(folder) == wanted
    return
  with checkpoints_lib.Checkpoints(folder, writing=True) as checkpoints:
    for step, best, wanted in _SAVES:
      checkpoints.save(step, state_of(step), metadata_of(step, best))
      assert kept(folder) == wanted


def test_before_any_validation_the_last_two_are_kept(folder):
  save(folder, *((step, None) for step in range(1, 5)))
  assert kept(folder) == {3, 4}


def test_opening_deletes_nothing(folder):
  save(folder, (1, 1), (2, 1), (3, 1), (4, 1))
  for _ in range(2):
    with checkpoints_lib.Checkpoints(folder, writing=True) as checkpoints:
      assert checkpoints.best(TEMPLATE)[1]['step'] == 1
  assert kept(folder) == {1, 3, 4}


# ----------------------------------------------------------------------- damage


def truncate(folder: pathlib.Path, step: int) -> None:
  for path in data_files(folder, step):
    path.write_bytes(path.read_bytes()[:-7])


def empty(folder: pathlib.Path, step: int) -> None:
  for path in files_of(folder, step):
    path.write_bytes(b'')


def remove_data(folder: pathlib.Path, step: int) -> None:
  for path in data_files(folder, step):
    path.unlink()


def remove_everything(folder: pathlib.Path, step: int) -> None:
  """Deletes all files but no folders, as if a kill interrupted a deletion."""
  for path in files_of(folder, step):
    path.unlink()


def remove_metadata(folder: pathlib.Path, step: int) -> None:
  (folder / f'step_{step}' / 'metadata' / 'metadata').unlink()


def cut_metadata(folder: pathlib.Path, step: int) -> None:
  path = folder / f'step_{step}' / 'metadata' / 'metadata'
  path.write_text(path.read_text()[:20])


def forget_checksum(folder: pathlib.Path, step: int) -> None:
  path = folder / f'step_{step}' / 'metadata' / 'metadata'
  metadata = json.loads(path.read_text())
  del metadata['sha256']
  path.write_text(json.dumps(metadata))


def change_checksum(folder: pathlib.Path, step: int) -> None:
  path = folder / f'step_{step}' / 'metadata' / 'metadata'
  metadata = json.loads(path.read_text())
  metadata['sha256'] = metadata['sha256'][::-1]
  path.write_text(json.dumps(metadata))


DAMAGES = [
  truncate,
  empty,
  remove_data,
  remove_everything,
  remove_metadata,
  cut_metadata,
  forget_checksum,
  change_checksum,
]


@pytest.mark.parametrize('damage', DAMAGES)
def test_a_damaged_newest_checkpoint_is_skipped(folder, damage, caplog):
  save(folder, (10, 10), (20, 10))
  damage(folder, 20)
  with (
    checkpoints_lib.Checkpoints(folder, writing=True) as checkpoints,
    caplog.at_level(logging.WARNING),
  ):
    state, metadata = checkpoints.latest(TEMPLATE)
  assert_same(state, state_of(10))
  assert metadata == metadata_of(10, 10)
  warnings = [
    record.getMessage()
    for record in caplog.records
    if record.levelno == logging.WARNING and record.name == 'root'
  ]
  assert len(warnings) == 1
  assert 'step 20' in warnings[0]
  assert str(folder) in warnings[0]


def forget_files(folder: pathlib.Path, step: int) -> None:
  """Removes the list of files, as if a kill had prevented writing it."""
  path = folder / f'step_{step}' / 'metadata' / 'metadata'
  metadata = json.loads(path.read_text())
  del metadata['files'], metadata['sha256']
  metadata['sha256'] = checksums.of_json(metadata)
  path.write_text(json.dumps(metadata))


def test_the_damaged_file_is_named(folder, caplog):
  save(folder, (10, 10), (20, 10))
  state_files = [
    path
    for path in files_of(folder, 20)
    if {'params', 'training'} & set(path.parts)
  ]
  for path in state_files:
    original = path.read_bytes()
    path.write_bytes(bytes(len(original)))
    with checkpoints_lib.Checkpoints(folder, writing=False) as checkpoints:
      assert checkpoints.latest(TEMPLATE)[1] == metadata_of(10, 10)
    assert f'{path}: is damaged' in caplog.text
    path.write_bytes(original)
  with checkpoints_lib.Checkpoints(folder, writing=False) as checkpoints:
    assert checkpoints.latest(TEMPLATE)[1] == metadata_of(20, 10)


def test_a_checkpoint_without_a_list_of_files_is_used_and_gets_one(folder):
  save(folder, (10, 10))
  forget_files(folder, 10)
  with checkpoints_lib.Checkpoints(folder, writing=True) as checkpoints:
    state, metadata = checkpoints.latest(TEMPLATE)
    assert metadata == metadata_of(10, 10)
    assert_same(state, state_of(10))
    checkpoints.save(10, state_of(10), metadata_of(10, 10))
  path = folder / 'step_10' / 'metadata' / 'metadata'
  listed = json.loads(path.read_text())['files']
  assert {str(file) for file in data_files(folder, 10)} <= {
    str(folder / 'step_10' / name) for name in listed
  }


def test_late_errors_of_libraries_are_not_shown_and_others_are(capfd):
  """Imitates the errors that orbax logs if several arrays cannot be read."""
  loop = asyncio.new_event_loop()

  async def failing(reason: str) -> None:
    raise ValueError(reason)

  def leave_behind(reason: str) -> str:
    task = loop.create_task(failing(reason))
    loop.run_until_complete(asyncio.wait([task]))
    del task
    gc.collect()
    return capfd.readouterr().err

  logger = logging.getLogger('asyncio')
  handler = logging.StreamHandler()
  logger.addHandler(handler)
  # Clear the cache, so that the next call installs the filters again.
  orbax_noise.import_orbax.cache_clear()
  orbax_noise.import_orbax()
  try:
    assert not leave_behind('Error reading "a" at local file "b"')
    assert 'Traceback' in leave_behind('another')
  finally:
    logger.removeHandler(handler)
    loop.close()


@pytest.mark.parametrize(('listed', 'places'), [(True, 3), (False, 12)])
def test_every_flipped_byte_is_noticed_or_without_effect(
  folder, listed, places
):
  """Without checks, orbax would return wrong numbers for some flipped bytes."""
  save(folder, (10, 10), (20, 10))
  if not listed:
    forget_files(folder, 20)
  wrong = 0
  for path in data_files(folder, 20):
    original = path.read_bytes()
    for place in range(0, len(original), max(len(original) // places, 1)):
      data = bytearray(original)
      data[place] ^= 0x55
      path.write_bytes(bytes(data))
      with checkpoints_lib.Checkpoints(folder, writing=True) as checkpoints:
        state, metadata = checkpoints.latest(TEMPLATE)
      assert metadata['step'] in (10, 20)
      assert_same(state, state_of(metadata['step']))
      wrong += metadata['step'] == 10
    path.write_bytes(original)
  assert wrong


def test_flipped_metadata_is_noticed(folder):
  """A wrong best step in the metadata would select another model."""
  save(folder, (10, 10), (20, 10))
  path = folder / 'step_20' / 'metadata' / 'metadata'
  text = path.read_text()
  changed = text.replace('"best_step": 10', '"best_step": 20')
  assert changed != text
  path.write_text(changed)
  with checkpoints_lib.Checkpoints(folder, writing=True) as checkpoints:
    _, metadata = checkpoints.latest(TEMPLATE)
  assert metadata == metadata_of(10, 10)


@pytest.mark.parametrize('damage', [truncate, remove_everything])
def test_all_damaged(folder, damage):
  save(folder, (10, 10), (20, 20))
  damage(folder, 10)
  damage(folder, 20)
  with (
    checkpoints_lib.Checkpoints(folder, writing=True) as checkpoints,
    pytest.raises(checkpoints_lib.CheckpointError) as caught,
  ):
    checkpoints.latest(TEMPLATE)
  assert str(folder) in str(caught.value)
  assert '20' in str(caught.value)
  assert '10' in str(caught.value)


@pytest.mark.parametrize('damage', [truncate, remove_everything])
def test_for_a_damaged_best_checkpoint_the_newest_is_used(
  folder, damage, caplog
):
  save(folder, (10, 10), (20, 10))
  damage(folder, 10)
  with checkpoints_lib.Checkpoints(folder, writing=False) as checkpoints:
    state, metadata = checkpoints.best(TEMPLATE)
  assert metadata['step'] == 20
  assert_same(state, state_of(20))
  assert 'step 10' in caplog.text
  assert 'using the newest, of step 20' in caplog.text


def test_for_a_missing_best_checkpoint_the_newest_is_used(folder, caplog):
  save(folder, (10, 10), (20, 10), (30, 10))
  for path in sorted((folder / 'step_10').rglob('*'), reverse=True):
    path.unlink() if path.is_file() else path.rmdir()
  (folder / 'step_10').rmdir()
  with checkpoints_lib.Checkpoints(folder, writing=False) as checkpoints:
    assert checkpoints.best(TEMPLATE)[1]['step'] == 30
  assert 'step 10, is missing' in caplog.text


@pytest.mark.parametrize('damage', [truncate, remove_everything])
def test_training_continues_after_a_damaged_checkpoint(folder, damage):
  """Training restarts at step 10 and saves at steps 15 and 20.

  The damaged checkpoint of step 20 must be replaced.
  """
  save(folder, (10, 10), (20, 20))
  damage(folder, 20)
  with checkpoints_lib.Checkpoints(folder, writing=True) as checkpoints:
    assert checkpoints.latest(TEMPLATE)[1]['step'] == 10
    checkpoints.save(15, state_of(15), metadata_of(15, 10))
    assert checkpoints.latest(TEMPLATE)[1]['step'] == 15
    checkpoints.save(20, state_of(20), metadata_of(20, 20))
  with checkpoints_lib.Checkpoints(folder, writing=True) as checkpoints:
    state, metadata = checkpoints.latest(TEMPLATE)
    assert metadata == metadata_of(20, 20)
    assert_same(state, state_of(20))
    assert checkpoints.best(TEMPLATE)[1]['step'] == 20


@pytest.mark.parametrize('damage', [truncate, remove_everything])
def test_a_damaged_checkpoint_is_written_again(folder, damage):
  """Training restarts at step 10 and saves next at step 20."""
  save(folder, (10, 10), (20, 20))
  damage(folder, 20)
  with checkpoints_lib.Checkpoints(folder, writing=True) as checkpoints:
    assert checkpoints.latest(TEMPLATE)[1]['step'] == 10
    checkpoints.save(20, state_of(20), metadata_of(20, 20))
  with checkpoints_lib.Checkpoints(folder, writing=True) as checkpoints:
    assert checkpoints.latest(TEMPLATE)[1] == metadata_of(20, 20)


# ------------------------------------------------------------ other templates


def test_a_template_of_other_shapes(folder):
  save(folder, (1, 1))
  other = state_of(0)
  other['params']['embedding'] = np.zeros((18, 5), np.float32)
  with (
    checkpoints_lib.Checkpoints(folder, writing=True) as checkpoints,
    pytest.raises(checkpoints_lib.CheckpointError),
  ):
    checkpoints.latest(other)


def test_a_template_with_another_leaf(folder):
  save(folder, (1, 1))
  other = {**state_of(0), 'new': np.zeros(3, np.float32)}
  with (
    checkpoints_lib.Checkpoints(folder, writing=True) as checkpoints,
    pytest.raises(checkpoints_lib.CheckpointError),
  ):
    checkpoints.latest(other)


# ----------------------------------------------------------------------- digest


def test_digest():
  one = {'a': np.arange(3, dtype=np.float32), 'b': np.zeros((2, 3))}
  same = {'b': np.zeros((2, 3)), 'a': np.arange(3, dtype=np.float32)}
  assert checksums.of_arrays(one, {}) == checksums.of_arrays(same, {})
  others = [
    {**one, 'a': np.arange(3, dtype=np.int32)},
    {**one, 'a': np.array([0, 2, 1], np.float32)},
    {**one, 'b': np.zeros((3, 2))},
    {**one, 'b': -np.zeros((2, 3))},
    {'a': one['a'], 'c': one['b']},
    {'a': one['a']},
  ]
  digests = [checksums.of_arrays(tree, {}) for tree in (one, *others)]
  assert len(set(digests)) == len(digests)


def test_digest_does_not_depend_on_memory_layout():
  array = np.arange(12, dtype=np.float32).reshape(3, 4)
  assert checksums.of_arrays({'a': array}, {}) == checksums.of_arrays(
    {'a': np.asfortranarray(array)}, {}
  )


def test_a_checkpoint_under_the_name_of_another_is_not_used(tmp_path, caplog):
  """Each of these checkpoints is intact, but its folder names another step."""
  save(tmp_path, (1, 1), (2, 1), (3, 1))
  assert {path.name for path in tmp_path.glob('step_*')} == {
    'step_1',
    'step_2',
    'step_3',
  }
  (tmp_path / 'step_1').rename(tmp_path / 'aside')
  (tmp_path / 'step_2').rename(tmp_path / 'step_1')
  (tmp_path / 'aside').rename(tmp_path / 'step_2')
  (tmp_path / 'step_9').symlink_to(tmp_path / 'step_3')
  with checkpoints_lib.Checkpoints(tmp_path, writing=False) as checkpoints:
    state, metadata = checkpoints.latest(TEMPLATE)
    assert metadata['step'] == 3
    assert_same(state, state_of(3))
    assert 'step 9 is a renamed checkpoint of step 3' in caplog.text
    state, metadata = checkpoints.best(TEMPLATE)
    assert metadata['step'] == 3  # The checkpoint of step 2 is not used.
    assert 'step 1 is a renamed checkpoint of step 2' in caplog.text
  with checkpoints_lib.Checkpoints(tmp_path, writing=True) as checkpoints:
    checkpoints.latest(TEMPLATE)
    checkpoints.save(4, state_of(4), metadata_of(4, 4))
    assert checkpoints.steps()[0] == 4
    assert_same(checkpoints.latest(TEMPLATE)[0], state_of(4))


@pytest.mark.parametrize('writing', [True, False])
def test_a_file_in_the_place_of_the_folder(tmp_path, writing):
  place = tmp_path / 'checkpoints'
  place.write_text('x')
  with pytest.raises(
    checkpoints_lib.CheckpointError, match='is a file: expected'
  ):
    checkpoints_lib.Checkpoints(place, writing=writing)
  assert place.read_text() == 'x'
