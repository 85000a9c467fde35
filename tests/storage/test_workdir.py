"""Tests the work folder: saving, locking, changed settings and damage."""

import json
import os
import pathlib
import pickle
import signal
import stat
import subprocess
import sys
import threading
import zipfile

import ml_collections
import numpy as np
import pytest

from coke_jax import config as config_lib
from coke_jax.data import atomic_files, graph, text_files, vocabulary
from coke_jax.storage import format_file, json_files, metrics_log, workdir

GRAPH = graph.KnowledgeGraph(
  'mine',
  vocabulary.Vocabulary(('', ' a ', '"q"', 'NA', 'Zürich', '東'), ('nan', 'r')),
  np.array([[0, 0, 5], [1, 1, 2], [0, 0, 5], [3, 1, 4]], dtype=np.int32),
  np.array([[5, 1, 0]], dtype=np.int32),
  np.zeros((0, 3), dtype=np.int32),
)


def settings(**changes: object) -> ml_collections.ConfigDict:
  """Returns a config for GRAPH with changes, such as {'train.seed': 3}."""
  config = config_lib.default_config()
  config.data.name = 'mine'
  config.update_from_flattened_dict(changes)
  return config


@pytest.fixture
def place(tmp_path):
  """Creates a work folder and begins a run in it."""
  made = workdir.Workdir(tmp_path / 'run')
  with made.locked():
    made.create(settings(), GRAPH)
  return made


def assert_same_config(read, wanted) -> None:
  fields, others = config_lib.flatten(read), config_lib.flatten(wanted)
  assert fields == others
  assert all(type(fields[name]) is type(others[name]) for name in others)


def assert_same_data(read: graph.KnowledgeGraph) -> None:
  assert read.name == 'mine'
  assert read.vocabulary == GRAPH.vocabulary
  for split in graph.SPLITS:
    assert read.split(split).dtype == np.int32
    assert read.split(split).tolist() == GRAPH.split(split).tolist()
    assert read.split(split).shape == GRAPH.split(split).shape


# -------------------------------------------------------------- save and load


def test_a_run_is_read_back(place):
  again = workdir.Workdir(str(place.folder))
  assert again.exists
  assert_same_config(again.config(), settings())
  assert_same_data(again.data())
  names = {path.name for path in place.folder.iterdir()}
  assert names == {
    '.lock',
    'config.json',
    'data.npz',
    'format.json',
    'vocabulary.json',
  }


def test_json_files_are_readable_text(place):
  text = (place.folder / 'vocabulary.json').read_text(encoding='utf-8')
  assert 'Zürich' in text
  assert json.loads(text)['entities'] == list(GRAPH.vocabulary.entities)
  config = json.loads((place.folder / 'config.json').read_text())
  assert config['train']['target_mass'] == settings().train.target_mass


def test_every_value_of_a_config_is_read_back(tmp_path):
  config = settings(
    **{
      'data.delimiter': '\t',
      'data.columns': 'tail relation head',
      'train.learning_rate': 1 / 3,
      'train.seed': 2**32 - 1,
      'train.num_epochs': 7.0,
      'model.remat': True,
      'compilation_cache_dir': '/tmp/Zürich "x"\\',
    }
  )
  place = workdir.Workdir(tmp_path)
  place.create(config, GRAPH)
  assert_same_config(place.config(), config)


def test_a_folder_without_a_run(tmp_path):
  place = workdir.Workdir(tmp_path / 'nowhere')
  assert not place.exists
  for read in (place.config, place.data):
    with pytest.raises(workdir.WorkdirError, match=r'nowhere: no .*\.json'):
      read()
  assert not place.folder.exists()  # Reading creates no folder.


def test_results(place):
  results = {'split': 'test', 'both': {'mrr': 1 / 3}, 'dataset': 'Zürich'}
  path = place.write_results(results)
  assert path == place.folder / 'results.json'
  assert json.loads(path.read_text(encoding='utf-8')) == results
  path = place.write_results({**results, 'split': 'valid'})
  assert path == place.folder / 'results_valid.json'
  assert json.loads((place.folder / 'results.json').read_text()) == results


# ------------------------------------------------------------------------ lock

_HOLDER = """
import sys
from coke_jax.storage import workdir
with workdir.Workdir(sys.argv[1]).locked():
  print('locked', flush=True)
  sys.stdin.read()
"""


def test_the_lock_excludes_other_processes_until_its_holder_ends(tmp_path):
  # The holder creates this folder and the parents.
  place = workdir.Workdir(tmp_path / 'a' / 'b')
  holder = subprocess.Popen(
    [sys.executable, '-c', _HOLDER, str(place.folder)],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
  )
  try:
    assert holder.stdout.readline() == 'locked\n'
    with (
      pytest.raises(workdir.WorkdirError) as caught,
      place.locked(),
    ):
      pytest.fail('two processes hold the lock')
    assert str(place.folder) in str(caught.value)
    assert 'another process' in str(caught.value)
    holder.send_signal(signal.SIGKILL)  # A killed process leaves no lock.
    holder.wait(timeout=30)
    with place.locked():
      pass
  finally:
    holder.kill()
    holder.communicate()


def test_the_lock_is_free_after_an_error(tmp_path):
  place = workdir.Workdir(tmp_path)
  with pytest.raises(KeyError), place.locked():
    raise KeyError
  with place.locked():
    pass


def test_a_folder_that_cannot_be_made(tmp_path):
  (tmp_path / 'file').write_text('')
  place = workdir.Workdir(tmp_path / 'file' / 'run')
  with (
    pytest.raises(workdir.WorkdirError, match='cannot be written'),
    place.locked(),
  ):
    pass


# --------------------------------------------------------------- other settings


def other(value: object) -> object:
  """Returns another value of the same type."""
  if isinstance(value, bool):
    return not value
  return value + 'x' if isinstance(value, str) else value + 1


FIELDS = config_lib.flatten(config_lib.default_config())


@pytest.mark.parametrize('field', sorted(set(FIELDS)))
def test_which_settings_may_differ(place, field):
  value = config_lib.flatten(settings())[field]
  config = settings(**{field: other(value)})
  if field in config_lib.RUNTIME_FIELDS:
    place.check_config(config)
    return
  with pytest.raises(workdir.WorkdirError) as caught:
    place.check_config(config)
  message = str(caught.value)
  assert str(place.folder) in message
  named = {name for name in FIELDS if f' {name} is ' in message}
  assert named == {field}
  assert repr(value) in message
  assert repr(other(value)) in message


def test_the_same_settings_are_accepted(place):
  place.check_config(settings())


def test_all_settings_that_differ_are_named(place):
  config = settings(**{'train.seed': 5, 'model.num_layers': 1})
  with pytest.raises(workdir.WorkdirError) as caught:
    place.check_config(config)
  assert 'train.seed is 5: expected 0' in str(caught.value)
  assert 'model.num_layers is 1: expected 12' in str(caught.value)


def test_runtime_fields_exist():
  assert set(config_lib.RUNTIME_FIELDS) <= set(FIELDS)


# ------------------------------------------------------------ creating a folder


def test_checkpoints_without_a_config_are_refused(tmp_path):
  (tmp_path / 'checkpoints' / 'step_1').mkdir(parents=True)
  place = workdir.Workdir(tmp_path)
  with pytest.raises(workdir.WorkdirError, match='no config'):
    place.create(settings(), GRAPH)
  assert [path.name for path in tmp_path.iterdir()] == ['checkpoints']


def test_an_empty_checkpoints_folder_is_no_run(tmp_path):
  (tmp_path / 'checkpoints').mkdir()
  workdir.Workdir(tmp_path).create(settings(), GRAPH)
  assert workdir.Workdir(tmp_path).exists


def test_the_config_is_written_last(tmp_path, monkeypatch):
  """If creating the run fails, the folder contains no run."""

  def fail(*_, **__):
    raise OSError('disk full')

  monkeypatch.setattr(np, 'savez', fail)
  monkeypatch.setattr(np, 'savez_compressed', fail)
  place = workdir.Workdir(tmp_path)
  with pytest.raises(OSError, match='disk full'):
    place.create(settings(), GRAPH)
  assert not place.exists
  assert {path.name for path in tmp_path.iterdir()} <= {
    'format.json',
    'vocabulary.json',
  }
  monkeypatch.undo()
  place.create(settings(), GRAPH)
  assert_same_data(place.data())


# ---------------------------------------------------------------------- damage


def config_with(group: str, **changes: object) -> str:
  config = settings().to_dict()
  config[group].update(changes)
  return json.dumps(config)


@pytest.mark.parametrize(
  'text',
  [
    '',
    '{',
    'null',
    '[]',
    '3',
    '"train"',
    json.dumps(settings().to_dict())[:-1],
    json.dumps({**settings().to_dict(), 'unknown': {'field': 1}}),
    json.dumps({**settings().to_dict(), 'train': 3}),
    json.dumps({**settings().to_dict(), 'train': None}),
    config_with('train', unknown=1),
    config_with('train', seed='zero'),
    config_with('train', seed=None),
    config_with('train', batch_size=0.5),
    config_with('train', batch_size=0),
    config_with('model', dtype=None),
    config_with('model', dtype='float8'),
    config_with('model', num_layers=[12]),
    config_with('train', learning_rate=None),
  ],
)
def test_a_damaged_config(place, text):
  (place.folder / 'config.json').write_text(text)
  with pytest.raises(workdir.WorkdirError, match=r'config\.json'):
    place.config()


def test_a_config_of_bytes_that_are_no_text(place):
  (place.folder / 'config.json').write_bytes(b'{"a": "\xff"}')
  with pytest.raises(workdir.WorkdirError, match=r'config\.json'):
    place.config()


def test_a_config_from_before_a_field_was_added(place):
  config = settings().to_dict()
  del config['train']['log_every_steps']
  (place.folder / 'config.json').write_text(json.dumps(config))
  assert_same_config(place.config(), settings())


LABELS = {
  'entities': list(GRAPH.vocabulary.entities),
  'relations': list(GRAPH.vocabulary.relations),
}


@pytest.mark.parametrize(
  'text',
  [
    '',
    '{"entities": ["a"',
    'null',
    '[]',
    '{}',
    json.dumps({'entities': LABELS['entities']}),
    json.dumps({**LABELS, 'relations': None}),
    json.dumps({**LABELS, 'relations': 7}),
    json.dumps({**LABELS, 'entities': LABELS['entities'][:-1]}),
    json.dumps({**LABELS, 'relations': LABELS['relations'][:-1]}),
    json.dumps({**LABELS, 'entities': 'abcdef'}),
    json.dumps({**LABELS, 'entities': list(range(6))}),
    json.dumps({**LABELS, 'entities': ['twice'] * 6}),
  ],
)
def test_a_damaged_vocabulary(place, text):
  (place.folder / 'vocabulary.json').write_text(text)
  with pytest.raises(workdir.WorkdirError, match=r'vocabulary\.json|data\.npz'):
    place.data()


def test_truncated_data(place):
  path = place.folder / 'data.npz'
  whole = path.read_bytes()
  for length in (0, 1, 10, len(whole) // 2, len(whole) - 1):
    path.write_bytes(whole[:length])
    with pytest.raises(workdir.WorkdirError, match=r'data\.npz'):
      place.data()


def test_data_that_is_no_archive(place):
  path = place.folder / 'data.npz'
  with path.open('wb') as out:  # `np.save` writes one array without an archive.
    np.save(out, GRAPH.train)
  with pytest.raises(workdir.WorkdirError, match=r'data\.npz'):
    place.data()


def test_missing_data(place):
  (place.folder / 'data.npz').unlink()
  with pytest.raises(workdir.WorkdirError, match=r'data\.npz'):
    place.data()


def test_flipped_data(place):
  """A flipped byte raises an error or has no effect."""
  path = place.folder / 'data.npz'
  whole = path.read_bytes()
  noticed = 0
  for index in range(0, len(whole), 7):
    data = bytearray(whole)
    data[index] ^= 0x24
    path.write_bytes(bytes(data))
    try:
      read = place.data()
    except workdir.WorkdirError:
      noticed += 1
    else:
      assert_same_data(read)
  assert noticed


@pytest.mark.parametrize(
  'changes',
  [
    {'train': None},
    {'train': np.array([[0, 0, 6]], np.int32)},
    {'train': np.array([[0, 2, 0]], np.int32)},
    {'test': np.array([[-1, 0, 0]], np.int32)},
    {'valid': np.zeros((4, 2), np.int32)},
    {'valid': np.zeros((4, 1), np.int32)},
    {'valid': np.zeros(3, np.int32)},
    {'valid': np.array(['abc'])},
    {'valid': np.array([[0.5, 0.0, 1.0]])},
    {'valid': np.array([[None, 0, 1]])},
  ],
)
def test_data_that_does_not_fit(place, changes):
  splits = {split: GRAPH.split(split) for split in graph.SPLITS}
  splits = {k: v for k, v in {**splits, **changes}.items() if v is not None}
  np.savez(place.folder / 'data.npz', **splits)
  with pytest.raises(workdir.WorkdirError, match=r'data\.npz'):
    place.data()


def test_the_archive_holds_a_checksum_of_each_array(place):
  with zipfile.ZipFile(place.folder / 'data.npz') as archive:
    assert archive.testzip() is None
    assert {'train.npy', 'valid.npy', 'test.npy'} <= set(archive.namelist())


def test_labels_of_another_graph(place):
  labels = {**LABELS, 'entities': LABELS['entities'][::-1]}
  (place.folder / 'vocabulary.json').write_text(json.dumps(labels))
  with pytest.raises(
    workdir.WorkdirError, match=r'vocabulary\.json: .*another'
  ):
    place.data()


def test_settings_of_another_run(place):
  path = place.folder / 'config.json'
  changed = settings().to_dict()
  # `log_every_steps` and the spaces in the file may change.
  changed['train']['log_every_steps'] = 3
  path.write_text(json.dumps(changed))
  assert_same_data(place.data())
  # Another number of heads must be detected, although the parameters keep their
  # shapes.
  changed['model']['num_heads'] = 2
  path.write_text(json.dumps(changed))
  with pytest.raises(workdir.WorkdirError, match=r'config\.json: .*another'):
    place.data()


def test_data_without_digests_are_refused(place):
  splits = {split: GRAPH.split(split) for split in graph.SPLITS}
  np.savez(place.folder / 'data.npz', **splits)
  with pytest.raises(workdir.WorkdirError, match='was changed'):
    place.data()


class Payload:
  """Creates a file when it is unpickled."""

  def __init__(self, path: pathlib.Path):
    self.path = path

  def __reduce__(self):
    return pathlib.Path.touch, (self.path,)


@pytest.mark.parametrize('written', [None, {'format': 3, 'coke_jax': '9'}])
def test_a_folder_of_another_format_is_refused(place, written):
  path = place.folder / 'format.json'
  path.unlink()
  if written is not None:
    path.write_text(json.dumps(written))
  expected = rf'of format 3 .*expected format {format_file.FORMAT} '
  if written is None:
    expected = r'format\.json: is missing: .* incomplete, .* before 0\.2\.0'
  for read in (place.config, place.data):
    with pytest.raises(workdir.WorkdirError, match=expected):
      read()


def test_an_untrusted_folder_runs_no_code(place, tmp_path):
  mark = tmp_path / 'executed'
  arrays = {split: GRAPH.split(split) for split in graph.SPLITS}
  arrays['valid'] = np.array([[Payload(mark)] * 3], dtype=object)
  np.savez(place.folder / 'data.npz', **arrays)
  with pytest.raises(workdir.WorkdirError, match='allow_pickle'):
    place.data()
  pickled = pickle.dumps(Payload(mark))
  (place.folder / 'data.npz').write_bytes(pickled)
  with pytest.raises(workdir.WorkdirError, match='data'):
    place.data()
  for name in ('vocabulary.json', 'config.json'):
    (place.folder / name).write_bytes(pickled)
    with pytest.raises(workdir.WorkdirError, match=name):
      place.data()
  assert not mark.exists()
  pickle.loads(pickled)  # Check that unpickling does run the payload.
  assert mark.exists()


@pytest.mark.parametrize('name', ['config.json', 'vocabulary.json'])
def test_deeply_nested_json(place, name):
  (place.folder / name).write_text('[' * 200_000)
  with pytest.raises(workdir.WorkdirError, match=name):
    place.data()


# ----------------------------------------------------------------- metrics log


def lines(*steps: int) -> list[dict]:
  return [{'kind': 'train', 'step': step, 'loss': 1 / step} for step in steps]


def test_metrics_are_read_back_in_order(place):
  log = place.metrics()
  assert log.read() == []
  for line in lines(1, 2, 3):
    log.append(line)
  assert place.metrics().read() == lines(1, 2, 3)
  text = (place.folder / 'metrics.jsonl').read_text()
  assert [json.loads(line) for line in text.splitlines()] == lines(1, 2, 3)


@pytest.mark.parametrize(
  ('step', 'kept'), [(0, ()), (1, (1,)), (2, (1, 2, 2)), (9, (1, 2, 2, 3))]
)
def test_cut_after(place, step, kept):
  log = place.metrics()
  for line in lines(1, 2, 2, 3):
    log.append(line)
  log.cut_after(step)
  assert log.read() == lines(*kept)
  log.append(lines(8)[0])
  assert log.read() == lines(*kept, 8)


def test_cut_after_in_a_new_folder(place):
  place.metrics().cut_after(0)
  assert place.metrics().read() == []


def test_a_half_written_last_line(place):
  log = place.metrics()
  for line in lines(1, 2):
    log.append(line)
  path = place.folder / 'metrics.jsonl'
  whole = path.read_bytes()
  path.write_bytes(whole + b'{"kind": "train", "st')
  assert log.read() == lines(1, 2)
  log.cut_after(2)  # A resumed training does this first.
  log.append(lines(3)[0])
  assert log.read() == lines(1, 2, 3)
  # A line without a line end counts as incomplete.
  path.write_bytes(whole[:-1])
  assert log.read() == lines(1)


@pytest.mark.parametrize(
  'line',
  [
    b'',
    b'{',
    b'[]',
    b'3',
    b'null',
    b'{"step": 2}',
    b'{"kind": "train"}',
    b'{"kind": "train", "step": "2"}',
    b'{"kind": "other", "step": 2}',
    b'{"kind": "train", "step": 2, "loss": NaN}',
    b'{"kind": "\xff", "step": 2}',
    bytes(30),
    b'[' * 200_000,
  ],
)
def test_a_damaged_line(place, line):
  path = place.folder / 'metrics.jsonl'
  for whole in lines(1):
    place.metrics().append(whole)
  damaged = path.read_bytes() + line + b'\n'
  path.write_bytes(damaged)
  for read in (place.metrics().read, lambda: place.metrics().cut_after(1)):
    with pytest.raises(
      text_files.DataError, match=r'metrics\.jsonl:2: '
    ) as caught:
      read()
    assert len(str(caught.value)) < 1000
  assert path.read_bytes() == damaged


def test_a_validation_that_is_to_be_repeated_is_cut(place):
  log = place.metrics()
  for kind, step in (('train', 1), ('valid', 1), ('train', 2), ('valid', 2)):
    log.append({'kind': kind, 'step': step})
  log.cut_after(2, last_line=2, validated=False)
  kept = [(line['kind'], line['step']) for line in log.read()]
  assert kept == [('train', 1), ('valid', 1), ('train', 2)]


@pytest.mark.parametrize(
  ('step', 'last_line', 'warned'),
  [
    (3, 3, ''),
    (5, 3, ''),
    (5, None, ''),
    (3, 2, 'lines are missing'),
    (8, 7, 'lines are missing'),
    (0, 0, 'start from step 0'),
  ],
)
def test_missing_lines_are_noticed(place, caplog, step, last_line, warned):
  log = place.metrics()
  for line in lines(1, 3):
    log.append(line)
  log.cut_after(step, last_line=last_line)
  assert warned in caplog.text
  assert bool(warned) == bool(caplog.text)


def test_a_number_that_json_cannot_represent_is_refused(place):
  with pytest.raises(ValueError, match='JSON'):
    place.metrics().append({'step': 1, 'loss': float('nan')})
  assert place.metrics().read() == []


# -------------------------------------------------------------- atomic writing


def contents(folder: pathlib.Path) -> dict[str, str]:
  return {path.name: path.read_text() for path in folder.iterdir()}


def test_a_file_is_replaced_whole(tmp_path):
  path = tmp_path / 'file'
  for text in ('one', 'two'):
    with atomic_files.whole_file(path) as temporary:
      assert temporary != path
      # A file in the same folder can be renamed instead of copied.
      assert temporary.parent == tmp_path
      temporary.write_text(text)
    assert contents(tmp_path) == {'file': text}


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
  (tmp_path / 'there').mkdir()
  target = tmp_path / 'there' / 'file'
  (tmp_path / 'second').symlink_to(pathlib.Path('there', 'file'))
  (tmp_path / 'first').symlink_to('second')
  for text in ('one', 'two'):  # The target does not exist at first.
    with atomic_files.whole_file(tmp_path / 'first') as temporary:
      assert temporary.parent == target.parent
      temporary.write_text(text)
    assert target.read_text() == text
    assert (tmp_path / 'first').is_symlink()
    assert (tmp_path / 'second').is_symlink()
  assert os.listdir(target.parent) == ['file']


def test_links_in_a_loop_are_an_error(tmp_path):
  (tmp_path / 'one').symlink_to('other')
  (tmp_path / 'other').symlink_to('one')
  with pytest.raises(atomic_files.WriteError, match='one: cannot be written'):
    json_files.write_json(tmp_path / 'one', {})
  assert sorted(os.listdir(tmp_path)) == ['one', 'other']


@pytest.mark.parametrize('linked', [False, True])
def test_a_pipe_is_written_and_not_replaced(tmp_path, linked):
  pipe = path = tmp_path / 'pipe'
  os.mkfifo(pipe)
  if linked:
    path = tmp_path / 'link'
    path.symlink_to('pipe')
  received = []
  reader = threading.Thread(
    target=lambda: received.append(pipe.read_text()), daemon=True
  )
  reader.start()
  json_files.write_json(path, {'a': 1})
  assert pipe.is_fifo()
  reader.join(timeout=60)
  assert json.loads(received[0]) == {'a': 1}
  assert path.is_symlink() == linked


def test_a_device_is_written_and_not_replaced(tmp_path):
  device = tmp_path / 'null'
  try:
    os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    device.write_text('')
  except OSError:
    pytest.skip('only the superuser can create devices')
  json_files.write_json(device, {'a': 1})
  assert device.is_char_device()
  assert os.listdir(tmp_path) == ['null']


@pytest.mark.skipif(not os.path.isdir('/proc/self/fd'), reason='needs /proc')
def test_an_open_file_is_written_directly(tmp_path):
  """Like `/dev/stdout`, the path is a link to an open file."""
  with (tmp_path / 'file').open('w') as opened:
    path = tmp_path / 'link'
    path.symlink_to(f'/proc/self/fd/{opened.fileno()}')
    json_files.write_json(path, {'a': 1})
    written = os.fstat(opened.fileno())
    assert os.stat(tmp_path / 'file').st_ino == written.st_ino
    assert path.is_symlink()
  assert json.loads((tmp_path / 'file').read_text()) == {'a': 1}
  assert sorted(os.listdir(tmp_path)) == ['file', 'link']


@pytest.mark.parametrize('error', [OSError, KeyboardInterrupt])
def test_a_failed_write_leaves_only_the_old_file(tmp_path, error):
  path = tmp_path / 'file'
  path.write_text('old')

  def write() -> None:
    with atomic_files.whole_file(path) as temporary:
      temporary.write_text('half of the n')
      raise error

  with pytest.raises(error):
    write()
  assert contents(tmp_path) == {'file': 'old'}


@pytest.mark.parametrize('value', [{'a': float('inf')}, {'a': object()}])
def test_a_value_that_json_cannot_represent_changes_nothing(tmp_path, value):
  path = tmp_path / 'file.json'
  json_files.write_json(path, {'a': 1})
  with pytest.raises((ValueError, TypeError)):
    json_files.write_json(path, value)
  assert list(contents(tmp_path)) == ['file.json']
  assert json.loads(path.read_text()) == {'a': 1}


def test_unfinished_files_of_a_killed_process_are_deleted(place):
  left = place.folder / f'.results.json.{"0" * 32}'
  others = [place.folder / name for name in ('.notes.txt', 'x.' + '0' * 32)]
  for path in (left, *others):
    path.write_text('half of the n')
  with atomic_files.whole_file(place.folder / 'results.json') as alive:
    alive.write_text('half')
    with place.locked():
      assert not left.exists()
      assert alive.exists()  # The writer is still running.
      assert all(path.exists() for path in others)
    alive.write_text('whole')
  assert (place.folder / 'results.json').read_text() == 'whole'


def test_a_file_that_cannot_be_written_is_named(tmp_path):
  (tmp_path / 'file').write_text('')
  path = tmp_path / 'file' / 'results.json'
  with pytest.raises(
    atomic_files.WriteError, match=r'results\.json: cannot be writ'
  ):
    json_files.write_json(path, {})
  with pytest.raises(
    atomic_files.WriteError, match=r'results\.json: cannot be writ'
  ):
    metrics_log.MetricsLog(path).append({'step': 1, 'kind': 'train'})


def test_two_writers_do_not_share_an_unfinished_file(tmp_path):
  path = tmp_path / 'file'
  with atomic_files.whole_file(path) as one:
    one.write_text('one')
    with atomic_files.whole_file(path) as other:
      assert other != one
      other.write_text('other')
    assert path.read_text() == 'other'
  assert contents(tmp_path) == {'file': 'one'}
