"""Tests that pictures are complete, reproducible and legible."""

import json
import pathlib
import re
import subprocess
import sys
import types
import xml.etree.ElementTree

import numpy as np
import pytest
import small

from coke_jax import config as config_lib
from coke_jax.data import atomic_files, graph
from coke_jax.plots import draw as draw_lib
from coke_jax.plots import map_plots, map_selection, plot_style, run_plots
from coke_jax.storage import workdir

image = pytest.importorskip('matplotlib.image')
pytest.importorskip('sklearn')

SIDES = {
  'both': {'mrr': 0.4, 'hits@1': 0.3, 'hits@10': 0.6},
  'head': {'mrr': 0.25, 'hits@1': 0.0, 'hits@10': 1.0},
  'tail': {'mrr': 0.55, 'hits@1': 0.5, 'hits@10': 0.7},
}
TRIPLE_RESULTS = {
  'dataset': 'towns',
  'split': 'test',
  'by_category': {
    '1-1': {'queries': 1234, **SIDES},
    'N-1': {'queries': 20, **SIDES, 'tail': {}},
  },
}
PATH_RESULTS = {
  'dataset': 'walked',
  'split': 'test',
  'by_length': {
    '1': {'queries': 9, 'mean_quantile': 0.9, 'hits@10': 0.8},
    '2': {'queries': 7},  # All seven are trivial, so there is no metric.
  },
  'single_edges': TRIPLE_RESULTS,
}
TRAINING = [
  {'kind': 'train', 'step': 5, 'epoch': 0.5, 'loss': 3.0, 'learning_rate': 0.1},
  {'kind': 'train', 'step': 9, 'epoch': 0.9, 'loss': 2.0, 'learning_rate': 0.2},
  {'kind': 'valid', 'step': 10, 'epoch': 1.0, **SIDES},
  {'kind': 'valid', 'step': 20, 'epoch': 2.0, **SIDES, 'both': {'mrr': 0.5}},
]


def town_graph(num_towns=16):
  """Returns a graph in which Ulm has many edges. One label contains `$`."""
  towns = ['Ulm', 'Köln', *(f'town_{i:02}' for i in range(num_towns))]
  rows = [(0, 0, town) for town in range(2, 2 + num_towns)]
  rows += [(town, 1, 0) for town in range(2, 2 + num_towns)]
  rows += [(1, 0, town) for town in range(2, 2 + num_towns)]
  triples = np.array(rows, np.int32)
  labels = small.labels(towns, ('near_to', 'pays_$_in_$'))
  return graph.KnowledgeGraph('towns', labels, triples, triples, triples)


class Fake:
  """A model whose hidden states depend on all labels of a triple."""

  def __init__(self, data):
    self.data = data

  def embed(self, sequences):
    ids = self.data.vocabulary.entity_ids | self.data.vocabulary.relation_ids
    table = np.random.default_rng(0).normal(size=(len(ids) + 9, 6))
    rows = np.array([[ids[label] for label in one] for one in sequences])
    states = table[rows].sum(axis=1, keepdims=True) + 0.1 * table[rows]
    return types.SimpleNamespace(vectors=states.astype(np.float32))


@pytest.fixture
def run_folder(tmp_path):
  """Returns the work folder of a finished run, but without parameters."""
  created = small.create_workdir(
    tmp_path / 'run', small.config(data={'name': 'towns'}), town_graph()
  )
  (created.folder / 'metrics.jsonl').write_text(
    ''.join(json.dumps(line) + '\n' for line in TRAINING)
  )
  created.write_results(TRIPLE_RESULTS)
  return created.folder


def draw(run_folder, output, **options):
  model = Fake(town_graph())
  return draw_lib.draw(run_folder, output, model=model, **options)


def texts(figure):
  """Returns all non-empty texts of a figure."""
  text = plot_style.import_extra('matplotlib.text').Text
  return [
    found.get_text() for found in figure.findobj(text) if found.get_text()
  ]


def test_curves_bars_and_maps_of_a_folder_are_drawn(run_folder, tmp_path):
  written = draw(
    run_folder, tmp_path / 'a' / 'b', entity='Ulm', relations=['near_to']
  )
  names = [
    'training_curves',
    'ranks_by_category',
    'entity_Ulm',
    'relation_near_to',
  ]
  assert [path.name for path in written] == [
    name + suffix for name in names for suffix in ('.png', '.svg', '.json')
  ]
  assert sorted(written) == sorted((tmp_path / 'a' / 'b').iterdir())
  for path in written:
    if path.suffix == '.png':
      pixels = image.imread(path)
      assert min(pixels.shape[:2]) > 500
      assert pixels[..., :3].std() > 0.0  # The picture is not blank.
    elif path.suffix == '.svg':
      assert xml.etree.ElementTree.parse(path).getroot().tag.endswith('svg')
    else:
      assert json.loads(path.read_text(encoding='utf-8'))


def test_pictures_are_reproducible(run_folder, tmp_path):
  options = {'entity': 'Ulm', 'relations': ['near_to', 'pays_$_in_$']}
  first = draw(run_folder, tmp_path / '1', **options)
  second = draw(run_folder, tmp_path / '2', **options)
  for one, other in zip(first, second, strict=True):
    assert one.read_bytes() == other.read_bytes()
  assert not [path for path in first if b'T00:' in path.read_bytes()]


def test_a_map_has_a_title_a_legend_and_a_description(run_folder, tmp_path):
  names = tmp_path / 'names.tsv'
  names.write_text('Ulm\tUlm on the Danube\nKöln\tCologne\n', encoding='utf-8')
  draw(
    run_folder,
    tmp_path,
    relations=['near_to', 'pays_$_in_$'],
    names=names,
  )
  numbers = json.loads(
    (tmp_path / 'relation_near_to_pays___in.json').read_text(encoding='utf-8')
  )
  assert numbers['sides'] == ['head', 'tail']
  with plot_style.style():
    figure = map_plots.draw(numbers)
    written = ' | '.join(texts(figure))
    figure.canvas.draw()
  assert '1  Ulm on the Danube (32)' in written
  assert '2  Cologne (16)' in written
  assert 'near to' in written
  assert r'pays \$ in \$' in written  # The text is not drawn as a formula.
  assert '48 training triples' in written
  assert 'head of “near to”, tail of “pays' in written


def test_groups_have_distinct_styles_and_small_groups_are_grey():
  groups = [
    {'name': f'group {i}', 'inverse': None, 'points': 5} for i in range(20)
  ]
  numbers = {'labels': ['one'], 'groups': groups}
  styles = map_plots.group_styles(numbers)
  shown = styles[: map_plots.MAX_GROUPS]
  seen = {(style['marker'], style['facecolor']) for style in shown}
  assert len(seen) == len(shown)
  assert plot_style.GREY not in {style['facecolor'] for style in shown}
  assert {style['facecolor'] for style in styles[len(shown) :]} == {
    plot_style.GREY
  }
  pair = map_plots.group_styles(numbers | {'labels': ['one', 'two']})
  seen = {(style['facecolor'], style['edgecolor']) for style in pair[:12]}
  # With two relations, markers show the relation, so colours must differ.
  assert len(seen) == 12


def test_an_inverse_has_the_same_colour_and_is_hollow():
  groups = [{'inverse': 1}, {'inverse': 0}, {'inverse': None}]
  one, inverse, other = map_plots.group_styles(
    {'labels': ['x'], 'groups': groups}
  )
  assert inverse['edgecolor'] == one['facecolor'] != other['facecolor']
  assert inverse['marker'] == one['marker'] != other['marker']
  assert inverse['facecolor'] == 'none'


def test_numbers_of_groups_do_not_hide_each_other():
  generator = np.random.default_rng(0)
  places = generator.normal(size=(60, 2)) * [1, 100]
  groups = np.arange(60) % 6  # The groups overlap completely.
  by_group = map_plots.number_positions(places, groups, 7)
  assert list(by_group) == list(range(6))  # The seventh group has no points.
  found = np.array(list(by_group.values())) / np.ptp(places, axis=0)
  apart = np.linalg.norm(found[:, None] - found[None], axis=-1)
  assert apart[np.triu_indices(6, 1)].min() >= map_plots.NUMBER_SIZE


def test_the_colours_are_distinct_with_any_colour_vision():
  """Simulates colour blindness with the matrices of Machado et al. (2009)."""
  to_rgb = plot_style.import_extra('matplotlib.colors').to_rgb
  colors = np.array([to_rgb(color) for color in plot_style.COLORS])
  deuteranopia = np.array(
    [
      [0.367322, 0.860646, -0.227968],
      [0.280085, 0.672501, 0.047413],
      [-0.011820, 0.042940, 0.968881],
    ]
  )
  protanopia = np.array(
    [
      [0.152286, 1.052583, -0.204868],
      [0.114503, 0.786281, 0.099216],
      [-0.003882, -0.048116, 1.051998],
    ]
  )
  for seen in (np.eye(3), deuteranopia, protanopia):
    linear = colors**2.2 @ seen.T
    shown = np.clip(linear, 0, 1) ** (1 / 2.2)
    apart = np.linalg.norm(shown[:, None] - shown[None], axis=-1)
    assert apart[np.triu_indices(len(colors), 1)].min() > 0.15


def test_curves_contain_every_line_and_name_the_best():
  numbers = run_plots.curves('towns', TRAINING)
  assert numbers['train'] == {
    'epoch': [0.5, 0.9],
    'loss': [3.0, 2.0],
    'learning_rate': [0.1, 0.2],
  }
  assert numbers['valid'] == {
    'epoch': [1.0, 2.0],
    'MRR': [0.4, 0.5],
    'hits@1': [0.3, None],
    'hits@10': [0.6, None],
  }
  with plot_style.style():
    written = texts(run_plots.draw_curves(numbers))
  assert 'best MRR: 0.500, after 2 epochs' in written
  assert {'Training on towns', 'epoch', 'validation', 'hits@10'} <= set(written)


def test_curves_of_a_path_run_and_of_a_run_without_validation():
  valid = {'kind': 'valid', 'epoch': 1.0, 'mean_quantile': 0.7, 'hits@10': 0.2}
  numbers = run_plots.curves('walked', [TRAINING[0], valid])
  assert numbers['valid']['mean quantile'] == [0.7]
  with plot_style.style():
    assert len(run_plots.draw_curves(numbers).axes) == 3
    short = run_plots.curves('walked', TRAINING[:2])
    assert len(run_plots.draw_curves(short).axes) == 2


def test_bars_show_each_side_of_each_category():
  numbers = run_plots.bars(TRIPLE_RESULTS)['ranks_by_category']
  assert numbers['groups'] == {'1-1': 1234, 'N-1': 20}
  assert numbers['metrics']['MRR'] == {
    'head (? r o)': [0.25, 0.25],
    'tail (s r ?)': [0.55, None],
  }
  with plot_style.style():
    figure = run_plots.draw_bars(numbers)
  written = texts(figure)
  assert {'.25', '.55', '1.00', '.00', '1-1\n1,234'} <= set(written)
  heights = [bar.get_height() for bar in figure.axes[0].patches]
  np.testing.assert_array_equal(heights, [0.25, 0.25, 0.55, np.nan])


def test_bars_of_paths_are_by_length_and_their_edges_by_category():
  found = run_plots.bars(PATH_RESULTS)
  assert list(found) == ['ranks_by_length', 'ranks_by_category']
  numbers = found['ranks_by_length']
  assert numbers['groups'] == {'1 relation': 9, '2 relations': 7}
  assert numbers['metrics']['mean quantile'] == {'targets': [0.9, None]}
  with plot_style.style():
    assert '.90' in texts(run_plots.draw_bars(numbers))


def test_a_wrong_label_leaves_no_picture(run_folder, tmp_path):
  with pytest.raises(map_selection.MapError, match='unknown entity'):
    draw(run_folder, tmp_path / 'out', entity='Ulmm')
  assert not (tmp_path / 'out').exists()


def test_a_folder_with_nothing_to_draw_is_an_error(tmp_path):
  with pytest.raises(workdir.WorkdirError, match='nothing to draw'):
    draw_lib.draw(tmp_path, tmp_path / 'out')


def test_a_file_in_place_of_the_folder_is_an_error(run_folder, tmp_path):
  (tmp_path / 'out').write_text('mine')
  with pytest.raises(atomic_files.WriteError, match='out: cannot be written'):
    draw_lib.draw(run_folder, tmp_path / 'out')


@pytest.mark.parametrize('module', ['matplotlib', 'sklearn'])
def test_a_missing_library_is_named(run_folder, tmp_path, monkeypatch, module):
  for name in [*sys.modules]:
    if name.partition('.')[0] == module:
      monkeypatch.delitem(sys.modules, name)
  monkeypatch.setitem(sys.modules, module, None)
  with pytest.raises(config_lib.ConfigError, match=rf'{module}: pip install'):
    draw(run_folder, tmp_path / 'out', entity='Ulm')


def test_importing_the_package_loads_no_plotting_library():
  code = (
    'import sys; from coke_jax.plots import draw; '
    "print({'matplotlib', 'sklearn'} & set(sys.modules))"
  )
  done = subprocess.run(
    [sys.executable, '-c', code], capture_output=True, text=True, check=True
  )
  assert done.stdout.strip() == 'set()'


def test_drawing_keeps_the_global_settings_of_matplotlib(run_folder, tmp_path):
  matplotlib = plot_style.import_extra('matplotlib')
  before = dict(matplotlib.rcParams)
  draw_lib.draw(run_folder, tmp_path / 'out')
  assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(
  ('labels', 'name'),
  [
    (['/m/09gq0x5'], 'entity_m_09gq0x5'),
    (['/film/director/film', '/x'], 'entity_film_director_film_x'),
    (['日本'], 'entity_日本'),
    (['../..'], 'entity_'),
  ],
)
def test_file_names_hold_no_separators(labels, name):
  assert draw_lib.file_name('entity', labels) == name


def test_long_labels_have_short_and_distinct_file_names():
  names = {draw_lib.file_name('relation', ['x' * 200 + end]) for end in 'ab'}
  assert len(names) == 2
  assert max(map(len, names)) < 110
  assert {pathlib.PurePath(name).name for name in names} == names


def test_the_page_of_pictures_quotes_their_numbers():
  docs = pathlib.Path(__file__).resolve().parents[2] / 'docs'
  page = (docs / 'pictures.md').read_text(encoding='utf-8')
  for target in re.findall(r'\]\((images/[^)]+)\)', page):
    assert (docs / target).is_file(), target
  rows = re.findall(
    r'^\| (entity_\S+|relation_\S+) \| (\d.*) \|$', page, re.MULTILINE
  )
  assert len(rows) == 2
  for name, cells in rows:
    path = docs / 'images' / f'{name}.json'
    numbers = json.loads(path.read_text(encoding='utf-8'))
    assert cells.split(' | ') == [
      str(len(numbers['points'])),
      f'{numbers["silhouette"]:.2f}',
      f'{numbers["silhouette_joined"]:.2f}',
      str(numbers['mirrored_pairs']),
      f'{numbers["mirrored_distance"]:.2f}',
    ]
