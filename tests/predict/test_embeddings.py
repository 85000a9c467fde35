"""Tests of contextual and static embeddings, and of their files."""

import functools

import jax
import numpy as np
import pytest
import small

import coke_jax
from coke_jax import parallel
from coke_jax.cli import answer_lines, input_lines
from coke_jax.predict import embedding_files, embeddings, label_arrays
from coke_jax.predict import model as model_lib

SEQUENCES = [
  ('e03', 'likes', 'e04'),
  ('e03', 'likes', '**near', '?'),
  ('?', 'near', 'e19'),
  ('e00', 'near', 'likes', 'e00'),
]
D, K = 8, 5


@pytest.fixture(scope='module')
def model():
  """Returns an untrained CoKE for paths with up to three relations."""
  return small.coke_model(small.random_paths(), max_length=K, max_path_length=3)


def token_of(model, label, place, length):
  words = model.data.vocabulary
  if label == '?':
    return words.mask_id
  if 0 < place < length - 1:
    return words.num_entities + words.relation_id(label)
  return words.entity_id(label)


def write_lines(path, sequences):
  path.write_bytes(''.join('\t'.join(s) + '\n' for s in sequences).encode())
  return input_lines.Lines(
    str(path), input_lines.LineFormat(relation_delimiter=',')
  )


def npz(path):
  with np.load(path, allow_pickle=False) as arrays:
    return dict(arrays)


# ------------------------------------------------------------------ contextual


def by_the_encoder(model, *arguments, **options):
  """Applies the Flax module to all sequences at once, without sharding."""
  apply = jax.jit(functools.partial(model.encoder.apply, **options))
  params = small.random_params(model.encoder)
  return np.asarray(apply({'params': params}, *arguments))


@pytest.mark.parametrize('layer', [0, 1, 2])
def test_vectors_are_those_of_the_encoder(model, layer):
  found = model.embed(SEQUENCES, layer=layer)
  assert found.layer == layer
  assert found.vectors.shape == (4, K, D)
  assert found.vectors.dtype == np.float32
  assert found.tokens.shape == (4, K)
  pad = model.data.vocabulary.pad_id
  for row, labels in enumerate(SEQUENCES):
    assert found.tokens[row].tolist() == [
      *(token_of(model, x, i, len(labels)) for i, x in enumerate(labels)),
      *[pad] * (K - len(labels)),
    ]
  expected = by_the_encoder(model, found.tokens, layer=layer, method='encode')
  real = found.tokens != pad
  np.testing.assert_allclose(found.vectors[real], expected[real], atol=1e-5)


def test_the_default_layer_is_the_last(model):
  found, last = model.embed(SEQUENCES), model.embed(SEQUENCES, layer=2)
  assert found.layer == model.num_layers == 2
  np.testing.assert_array_equal(found.vectors, last.vectors)


def test_vectors_are_zero_at_padding(model):
  found = model.embed(SEQUENCES)
  assert (
    found.vectors[found.tokens == model.data.vocabulary.pad_id] == 0
  ).all()


def test_the_vector_at_the_mask_is_the_masked_state(model):
  listed = ('e03', 'likes', '**near', '?')
  found = model.embed(listed)
  place = np.array([3], np.int32)
  state = by_the_encoder(model, found.tokens, place, method='masked_state')
  np.testing.assert_allclose(found.vectors[:, 3], state, atol=1e-5)


def test_no_sequences(model):
  found = model.embed([])
  assert found.vectors.shape == (0, K, D)
  assert found.vectors.dtype == np.float32
  assert found.tokens.shape == (0, K)


@pytest.mark.parametrize('layer', [-1, 3, 'last', 0.5])
def test_layers_that_do_not_exist(model, layer):
  for listed in (SEQUENCES, []):
    with pytest.raises(coke_jax.QuestionError, match=r'layer is .*0 .* to 2'):
      model.embed(listed, layer=layer)


def test_sequences_that_cannot_be_embedded(model):
  with pytest.raises(coke_jax.QuestionError, match='both entities masked'):
    model.embed([*SEQUENCES, ('?', 'near', '?')])
  with pytest.raises(coke_jax.QuestionError, match='4 relations'):
    model.embed(('e00', *['near'] * 4, 'e01'))


def test_changing_vectors_does_not_change_the_model(model):
  before = model.embed_elements().vectors.copy()
  for found in (model.embed(SEQUENCES), model.embed_elements()):
    found.vectors[...] = 0
  np.testing.assert_array_equal(model.embed_elements().vectors, before)
  assert model.embed(SEQUENCES).vectors.any()


def test_layout_of_an_npz(model, tmp_path):
  found = model.embed(SEQUENCES, layer=1)
  path = found.save(tmp_path / 'states.npz')
  arrays = npz(path)
  assert set(arrays) == {'vectors', 'tokens', 'labels', 'layer'}
  assert arrays['vectors'].dtype == np.float32
  assert arrays['tokens'].dtype == np.int32
  np.testing.assert_array_equal(arrays['vectors'], found.vectors)
  np.testing.assert_array_equal(arrays['tokens'], found.tokens)
  assert arrays['layer'] == 1
  words = model.data.vocabulary
  assert tuple(arrays['labels'].tolist()) == (
    *words.entities,
    *words.relations,
    '[MASK]',
    '[PAD]',
  )


@pytest.mark.parametrize('count', [0, 1, 7, 8, 9, 20])
def test_a_stream_writes_what_is_in_memory(model, tmp_path, count):
  params = parallel.replicate(small.random_params(model.encoder))
  model = model_lib.Model(model.encoder, params, model.data, 3, batch_size=8)
  sequences = (SEQUENCES * 5)[:count]
  lines = write_lines(tmp_path / 'input.tsv', sequences)
  whole = model.embed(sequences)
  whole.save(tmp_path / 'memory.npz')
  whole.save(tmp_path / 'memory')
  for name in ('stream.npz', 'stream'):
    assert answer_lines.embed(model, lines, str(tmp_path / name)) == count
  memory, stream = npz(tmp_path / 'memory.npz'), npz(tmp_path / 'stream.npz')
  for name, array in memory.items():
    assert stream[name].dtype == array.dtype
    np.testing.assert_array_equal(stream[name], array)
  for path in (tmp_path / 'memory').iterdir():
    assert (tmp_path / 'stream' / path.name).read_bytes() == path.read_bytes()


# ---------------------------------------------------------------------- static


def test_static_embeddings_are_rows_of_the_table(model, tmp_path):
  found = model.embed_elements()
  words = model.data.vocabulary
  table = small.random_params(model.encoder)['element_embedding']
  assert found.labels == (*words.entities, *words.relations)
  np.testing.assert_array_equal(found.entities, table[: words.num_entities])
  np.testing.assert_array_equal(
    found.relations, table[words.num_entities : words.mask_id]
  )
  arrays = npz(found.save(tmp_path / 'static.npz'))
  assert set(arrays) == {'vectors', 'labels', 'num_entities'}
  np.testing.assert_array_equal(arrays['vectors'], found.vectors)
  assert tuple(arrays['labels'].tolist()) == found.labels
  assert arrays['num_entities'] == words.num_entities


# ------------------------------------------------------------------- projector


def table(path):
  lines = path.read_bytes().decode().split('\n')
  assert lines.pop() == ''
  return [line.split('\t') for line in lines]


def test_projector_files_of_sequences(model, tmp_path):
  found = model.embed(SEQUENCES[:2])
  folder = found.save(tmp_path / 'maps' / 'new')
  assert {path.name for path in folder.iterdir()} == {
    'tensors.tsv',
    'metadata.tsv',
    'projector_config.pbtxt',
  }
  joined = ['e03 | likes | e04', 'e03 | likes | **near | [MASK]']
  assert table(folder / 'metadata.tsv') == [
    ['label', 'position', 'sequence'],
    *([w, str(i), joined[0]] for i, w in enumerate(joined[0].split(' | '))),
    *([w, str(i), joined[1]] for i, w in enumerate(joined[1].split(' | '))),
  ]
  vectors = np.array(table(folder / 'tensors.tsv'), dtype=np.float32)
  np.testing.assert_allclose(
    vectors, np.concatenate([found.vectors[0, :3], found.vectors[1, :4]]), 1e-6
  )
  config = (folder / 'projector_config.pbtxt').read_text()
  assert 'tensor_path: "tensors.tsv"' in config
  assert 'metadata_path: "metadata.tsv"' in config


def test_labels_in_a_projector_stay_in_their_columns(tmp_path):
  labels = ('a\tb', 'c\nd', '\r', 'ä "x"', '\u2028')
  found = embeddings.Static(np.eye(5, dtype=np.float32), labels, 4)
  folder = found.save(tmp_path / 'projector')
  assert table(folder / 'metadata.tsv') == [
    ['label', 'kind'],
    [r'a\tb', 'entity'],
    [r'c\nd', 'entity'],
    [r'\r', 'entity'],
    ['ä "x"', 'entity'],
    [r'\u2028', 'relation'],
  ]
  assert len(table(folder / 'tensors.tsv')) == 5


# --------------------------------------------------------------------- failure


def test_labels_that_numpy_cannot_keep(tmp_path):
  labels = ('a', 'b\0')
  static = embeddings.Static(np.eye(2, dtype=np.float32), labels, 1)
  with pytest.raises(embedding_files.EmbeddingError, match=r'b\\x00.*NUL'):
    static.save(tmp_path / 'static.npz')
  states = embeddings.Contextual(
    np.zeros((1, 1, 2), np.float32), np.zeros((1, 1), np.int32), labels, 0
  )
  with pytest.raises(embedding_files.EmbeddingError, match='NUL'):
    states.save(tmp_path / 'states.npz')
  assert not list(tmp_path.iterdir())
  static.save(tmp_path / 'static')  # Text files can contain NUL.


def test_one_long_label_does_not_widen_the_file(tmp_path, monkeypatch):
  labels = (*(f'entity {i}' for i in range(500)), 'ä' * 20_000, '')
  static = embeddings.Static(
    np.zeros((len(labels), 2), np.float32), labels, len(labels)
  )
  states = embeddings.Contextual(
    np.zeros((1, 1, 2), np.float32), np.zeros((1, 1), np.int32), labels, 0
  )
  for made in (static, states):
    path = made.save(tmp_path / 'embeddings.npz')
    # Without compression, padding to the longest label would take 40 MB.
    assert path.stat().st_size < 200_000
    assert tuple(npz(path)['labels'].tolist()) == labels
  monkeypatch.setattr(label_arrays, '_ALWAYS_ALLOWED_BYTES', 1 << 20)
  for made in (static, states):
    with pytest.raises(
      embedding_files.EmbeddingError, match=r'has 20,000 characters.*projector'
    ):
      made.save(tmp_path / 'other.npz')
  assert [path.name for path in tmp_path.iterdir()] == ['embeddings.npz']


@pytest.mark.parametrize('name', ['states.npz', 'states'])
@pytest.mark.parametrize('new', [False, True])
def test_a_failing_stream_leaves_existing_files(model, tmp_path, name, new):
  place = tmp_path / 'out'
  place.mkdir()
  if not new:
    model.embed(SEQUENCES).save(place / name)
  before = {
    path: path.read_bytes() for path in place.rglob('*') if path.is_file()
  }
  lines = write_lines(
    tmp_path / 'input.tsv', [*SEQUENCES * 3, ('e03', 'likes', 'nobody')]
  )
  with pytest.raises(input_lines.StreamError, match=r'input\.tsv:13: .*nobody'):
    answer_lines.embed(model, lines, str(place / name))
  after = {
    path: path.read_bytes() for path in place.rglob('*') if path.is_file()
  }
  assert after == before
  assert new == (not list(place.iterdir()))


def test_paths_that_cannot_be_written(model, tmp_path):
  (tmp_path / 'file').write_text('mine')
  found = model.embed(SEQUENCES)
  for place in ('file/states.npz', 'file', 'file/states', 'none/states.npz'):
    with pytest.raises(OSError, match=place.replace('.', r'\.')):
      found.save(tmp_path / place)
  assert [path.name for path in tmp_path.iterdir()] == ['file']
  assert (tmp_path / 'file').read_text() == 'mine'


def test_bad_lines_are_skipped_and_counted(model, tmp_path, capsys):
  lines = write_lines(
    tmp_path / 'input.tsv', [SEQUENCES[0], ('e03', 'likes'), SEQUENCES[1]]
  )
  lines.skip_bad = True
  path = tmp_path / 'states.npz'
  assert answer_lines.embed(model, lines, str(path), 0) == 2
  assert lines.skipped == 1
  assert 'input.tsv:2' in capsys.readouterr().err
  np.testing.assert_array_equal(
    npz(path)['vectors'], model.embed(SEQUENCES[:2], layer=0).vectors
  )
