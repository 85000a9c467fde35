"""Tests that reports are complete and safe, and agree with results.json."""

import base64
import dataclasses
import hashlib
import html.parser
import importlib.util
import json
import re
import shutil

import pytest
import small

import coke_jax
from coke_jax import config as config_lib
from coke_jax.cli import report_command
from coke_jax.data import atomic_files, graph
from coke_jax.plots import map_selection
from coke_jax.predict import calibration_files, export, load
from coke_jax.report import collect, content, maps, page, write
from coke_jax.storage import workdir
from coke_jax.training import run

HOSTILE = (
  '',
  '<script>alert(1)</script>',
  '</style><img src=x onerror=alert(2)>',
  '"><svg onload="alert(3)">',
  "' onmouseover='alert(4)",
  '&amp; & &lt;',
  'nul\0 and \x1b[31m',
  '\u202ereversed',
  'x' * 5000,
  'https://example.org/<i>',
)
ENTITIES = (*HOSTILE, *(f'e{i:02}' for i in range(9)))
RELATIONS = ('<b onclick="alert(5)">likes</b>', 'near')
SETTINGS = {'train': {'num_epochs': 2}}


def triples() -> graph.KnowledgeGraph:
  return small.random_graph(
    sizes=(600, 25, 25), entities=ENTITIES, relations=RELATIONS
  )


@pytest.fixture(scope='module')
def triple_run(tmp_path_factory):
  """Returns the work folder of a finished run with hostile labels."""
  folder = tmp_path_factory.mktemp('triples') / "it's <here>"
  config = small.config(**SETTINGS, model={'num_members': 2})
  run.train_and_evaluate(config, folder, data=triples())
  return folder


@pytest.fixture(scope='module')
def triple_report(triple_run):
  return collect.collect(triple_run)


@pytest.fixture(scope='module')
def path_run(tmp_path_factory):
  """Returns the work folder of a finished run of path queries."""
  folder = tmp_path_factory.mktemp('paths') / 'run'
  settings = {'kind': 'walks', 'max_path_length': 3}
  config = small.config(data=settings, **SETTINGS)
  run.train_and_evaluate(config, folder, data=small.random_paths())
  return folder


@pytest.fixture(scope='module')
def path_report(path_run):
  return collect.collect(path_run)


@pytest.fixture
def without_maps(monkeypatch):
  """Leaves out the maps, because they take most of the time."""
  missing = content.Missing('no map')
  monkeypatch.setattr(
    maps, 'compute', lambda model, chosen, given: dict.fromkeys(chosen, missing)
  )


class Document(html.parser.HTMLParser):
  """The elements, attributes, texts and tables of an HTML file.

  Attributes:
    elements: the names of all elements.
    attributes: tuples (element, attribute, value).
    text: the text outside of scripts and style sheets.
    tables: the rows of each table, by caption. A row is a list of cell texts.
  """

  def __init__(self, source: str):
    super().__init__()
    self.elements: list[str] = []
    self.attributes: list[tuple[str, str, str | None]] = []
    self.text = ''
    self.tables: dict[str, list[list[str]]] = {}
    self._open: list[str] = []
    self._rows: list[list[str]] = []
    self._caption = ''
    self.feed(source)
    self.close()
    assert not self._open, f'not closed: {self._open}'

  def handle_starttag(self, tag, attrs):
    self.elements.append(tag)
    self.attributes += [(tag, name, value) for name, value in attrs]
    if tag == 'table':
      self._rows, self._caption = [], ''
    elif tag == 'tr':
      self._rows.append([])
    elif tag in ('td', 'th'):
      self._rows[-1].append('')
    if tag not in ('meta', 'input', 'br'):
      self._open.append(tag)

  def handle_endtag(self, tag):
    assert self._open.pop() == tag
    if tag == 'table':
      self.tables[self._caption] = self._rows

  def handle_data(self, data):
    if self._open and self._open[-1] in ('script', 'style'):
      return
    self.text += data
    if 'caption' in self._open:
      self._caption += data
    elif 'table' in self._open:
      self._rows[-1][-1] += data


def metric(value) -> str:
  return '\u2013' if value is None else f'{value:.3f}'


# --------------------------------------------------------------------- content


def test_results_equal_those_of_an_evaluation(triple_run, triple_report):
  config = load.load_with_task(triple_run).config
  assert triple_report.test == json.loads(
    (triple_run / 'results.json').read_text()
  )
  assert triple_report.ranking.results == run.evaluate(
    config, triple_run, 'valid'
  )
  again = collect.collect(triple_run, split='test')
  assert again.test == again.ranking.results == triple_report.test


def test_results_of_paths_equal_those_of_an_evaluation(path_run, path_report):
  config = load.load_with_task(path_run).config
  assert path_report.test == json.loads((path_run / 'results.json').read_text())
  assert path_report.ranking.results == run.evaluate(config, path_run, 'valid')


def test_tables_of_metrics(triple_report):
  document = Document(page.render(triple_report))
  valid, test = triple_report.ranking.results, triple_report.test
  for name in ('mrr', 'hits@1', 'hits@3', 'hits@10'):
    assert metric(test['both'][name]) in document.text
    assert f'valid {metric(valid["both"][name])}' in document.text
  _, *sides = document.tables['By side']
  expected = [
    [split, f'{one[side]["mean_rank"]:,.1f}', metric(one[side]['mrr'])]
    for split, one in (('valid', valid), ('test', test))
    for side in ('both', 'head', 'tail')
  ]
  assert [[row[1], row[-1], row[3]] for row in sides] == expected
  for split, one in (('valid', valid), ('test', test)):
    _, *categories = document.tables[f'By category, {split} split']
    assert [row[:3] for row in categories] == [
      [name, f'{part["queries"]:,}', metric(part['both'].get('mrr'))]
      for name, part in one['by_category'].items()
    ]
  _, *relations = document.tables['2 relations']
  parts = valid['by_relation']
  assert {row[0] for row in relations} == set(RELATIONS)
  for row in relations:
    part = parts[row[0]]
    assert row[1:] == [
      part['category'],
      f'{part["queries"]:,}',
      *(metric(part[side].get('mrr')) for side in ('both', 'head', 'tail')),
      metric(part['both']['hits@1']),
      metric(part['both']['hits@10']),
      f'{part["both"]["mean_rank"]:,.1f}',
    ]


def test_tables_of_path_metrics(path_report):
  document = Document(page.render(path_report))
  for split, one in (
    ('valid', path_report.ranking.results),
    ('test', path_report.test),
  ):
    _, *rows = document.tables[f'By path length, {split} split']
    parts = [
      one,
      *one['by_length'].values(),
      one['deduction'],
      one['induction'],
    ]
    assert [row[1:] for row in rows] == [
      [
        f'{part["queries"]:,}',
        metric(part.get('mean_quantile')),
        metric(part.get('hits@10')),
      ]
      for part in parts
    ]
  # 'By side' is about the paths with a single relation.
  assert 'By side' in document.tables


def test_hard_relations(triple_run, triple_report):
  model = coke_jax.load(triple_run)
  parts = triple_report.ranking.results['by_relation']
  hardest = triple_report.ranking.hardest
  assert [one.relations[0] for one in hardest] == sorted(
    parts, key=lambda label: parts[label]['both']['mrr']
  )
  valid = small.facts(model.data, 'valid')
  for one in hardest:
    ranks = model.rank([fact for fact in valid if fact[1] == one.relations[0]])
    assert one.examples[0].rank == max(ranking.rank for ranking in ranks)
    for example in one.examples:
      (found,) = model.rank([example.fact], side=example.side)
      assert example.fact in valid
      assert (found.rank, found.candidates) == (
        example.rank,
        example.candidates,
      )
      head, relation, tail = example.fact
      question = (head, relation, '?')
      if example.side == 'head':
        question = ('?', relation, tail)
      best = model.predict(question, top=3, new_only=True)
      better = found.optimistic - 1
      assert example.before == tuple(answer.label for answer in best)[:better]


def test_hard_paths(path_run, path_report):
  model = coke_jax.load(path_run)
  hardest = path_report.ranking.hardest
  quantiles = [one.metrics['mean quantile'] for one in hardest]
  assert quantiles == sorted(quantiles)
  for one in hardest:
    assert one.queries >= path_report.ranking.fewest
    for example in one.examples:
      assert example.fact[1:-1] == one.relations
      options = {'splits': ('train', 'valid'), 'type_matching': True}
      (found,) = model.rank([example.fact], side='tail', **options)
      assert (found.rank, found.candidates) == (
        example.rank,
        example.candidates,
      )
      assert len(example.before) == min(3, found.optimistic - 1)
      question = (*example.fact[:-1], '?')
      best = model.predict(question, top=50, type_matching=True)
      assert set(example.before) <= {answer.label for answer in best}


def test_settings_counts_and_leaks(triple_report):
  document = Document(page.render(triple_report))
  _, *changed = document.tables['Changed fields of the config']
  assert ['model.num_members', '2', '1'] in changed
  _, *all_fields = document.tables['All fields of the config']
  flat = config_lib.flatten(config_lib.default_config())
  assert {row[0] for row in all_fields} == set(flat)
  data = triples()
  _, *counts = document.tables['Counts by split']
  assert [row[1] for row in counts] == [
    f'{len(data.split(split)):,}' for split in small.SPLITS
  ]
  _, *leaks = document.tables['What train gives away']
  assert leaks[0][0] == 'given away by an inverse relation'
  assert '2 models with 1 Transformer block' in document.text


def test_calibration(triple_run, tmp_path, without_maps):
  folder = tmp_path / 'run'
  shutil.copytree(triple_run, folder)
  model = coke_jax.load(folder)
  calibration = model.calibrate()
  calibration_files.write(folder, calibration, model.predictor.scorer.params)
  report = collect.collect(folder)
  assert report.calibration.fitted_on == 'valid'
  assert list(report.calibration.bins) == model.reliability('test')
  document = Document(page.render(report))
  _, *bins = document.tables['Mean probability and share of correct candidates']
  assert [row[1] for row in bins] == [
    f'{one.count:,}' for one in report.calibration.bins
  ]


# ---------------------------------------------------------------- missing parts


def missing_parts(report: content.Report) -> dict[str, content.Missing]:
  parts = {**vars(report), **report.maps}
  return {
    name: part
    for name, part in parts.items()
    if isinstance(part, content.Missing)
  }


def test_a_run_without_results_or_log_or_calibration(
  triple_run, tmp_path, without_maps
):
  folder = tmp_path / 'a run'
  shutil.copytree(triple_run, folder)
  (folder / 'results.json').unlink()
  (folder / 'metrics.jsonl').unlink()
  report = collect.collect(folder)
  missing = missing_parts(report)
  assert missing['test'].command == f"coke evaluate '{folder}'"
  assert missing['calibration'].command == f"coke calibrate '{folder}'"
  assert missing['curves'].command == f"coke train --workdir='{folder}'"
  document = Document(page.render(report))
  for part in missing.values():
    assert part.reason in document.text
    assert part.command in document.text


def test_results_of_another_checkpoint_are_not_used(
  triple_run, tmp_path, without_maps
):
  folder = tmp_path / 'run'
  shutil.copytree(triple_run, folder)
  results = json.loads((folder / 'results.json').read_text())
  results['step'] += 1
  (folder / 'results.json').write_text(json.dumps(results))
  assert isinstance(collect.collect(folder).test, content.Missing)
  results = {'step': results['step'] - 1, 'both': {}}
  (folder / 'results.json').write_text(json.dumps(results))
  with pytest.raises(workdir.WorkdirError, match='has no by_category'):
    collect.collect(folder)


def test_empty_splits(tmp_path, without_maps):
  data = small.random_graph(sizes=(60, 0, 0))
  folder = tmp_path / 'run'
  run.train_and_evaluate(small.config(**SETTINGS), folder, data=data)
  report = collect.collect(folder)
  missing = missing_parts(report)
  assert '--split=train' in missing['ranking'].command
  assert 'test split is empty' in missing['test'].reason
  document = Document(page.render(report))
  assert 'There are no metrics yet.' in document.text
  assert collect.collect(folder, split='train').ranking.results['queries']


def test_paths_without_single_relations(path_report):
  results = {**path_report.ranking.results, 'single_edges': {}}
  ranking = dataclasses.replace(path_report.ranking, results=results)
  report = dataclasses.replace(path_report, ranking=ranking)
  assert 'no metrics by relation' in Document(page.render(report)).text


def test_an_exported_model(triple_run, tmp_path):
  export.write(triple_run, tmp_path / 'exported')
  report = collect.collect(tmp_path / 'exported')
  assert report.exported
  assert report.test == json.loads((triple_run / 'results.json').read_text())
  missing = missing_parts(report)
  assert missing.keys() == {'curves', 'calibration'}
  assert not any(part.command for part in missing.values())
  assert Document(page.render(report))


def test_without_scikit_learn(triple_run, monkeypatch):
  find = importlib.util.find_spec
  monkeypatch.setattr(
    importlib.util,
    'find_spec',
    lambda name: None if name == 'sklearn' else find(name),
  )
  missing = missing_parts(collect.collect(triple_run))
  assert missing['entity'] == missing['relation']
  assert 'coke_jax[plots]' in missing['entity'].command


# ----------------------------------------------------------------------- safety


def test_labels_are_only_text(triple_report):
  hostile = dataclasses.replace(
    triple_report,
    name='<script>alert(0)</script>',
    names={'e01': 'half \ud800 of a pair', 'e02': '<img onerror=x>'},
  )
  source = page.render(hostile)
  source.encode()  # A surrogate would raise an error here.
  document = Document(source)
  assert document.elements.count('script') == 1
  assert document.elements.count('style') == 1
  assert not {'img', 'b onclick', 'i onclick'} & set(document.elements)
  assert not [one for one in document.attributes if one[1].startswith('on')]
  assert '<script>alert(0)</script>' in document.text
  assert RELATIONS[0] in document.text
  assert '\0' not in source
  assert '\x1b' not in source
  assert 'x' * 3000 not in source  # Long labels are shortened.


def test_there_are_no_external_references(triple_report, path_report):
  for report in (triple_report, path_report):
    source = page.render(report)
    document = Document(source)
    links = [
      value
      for _, name, value in document.attributes
      if name in ('href', 'src', 'srcset', 'action', 'data', 'poster')
    ]
    assert links
    ids = {value for _, name, value in document.attributes if name == 'id'}
    assert all(link[0] == '#' and link[1:] in ids for link in links)
    style = re.search('<style>(.*)</style>', source, re.S)[1]
    assert not re.search(r'url\(|@import', style)
    assert not {'link', 'iframe', 'object', 'embed', 'base'} & set(
      document.elements
    )


def test_the_policy_allows_only_the_script_of_the_file(triple_report):
  source = page.render(triple_report)
  script = re.search('<script>(.*)</script>', source, re.S)[1]
  digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
  policies = [
    value for tag, _, value in Document(source).attributes if tag == 'meta'
  ]
  (policy,) = [one for one in policies if 'script-src' in one]
  assert f"script-src 'sha256-{digest}'" in policy
  assert policy.startswith("default-src 'none'")


# ------------------------------------------------------------------ the command


def test_the_command(triple_run, tmp_path, capsys):
  config = load.load_with_task(triple_run).config
  output = tmp_path / 'report.html'
  options = {'split': 'valid', 'entity': 'e01', 'relation': 'near', 'names': ''}
  report_command.report(config, triple_run, output=str(output), **options)
  assert 'written to' in capsys.readouterr().err
  text = Document(output.read_text(encoding='utf-8')).text
  assert 'The entity e01 in' in text
  assert 'The relation near in' in text
  for wrong in (str(tmp_path), str(tmp_path / 'no' / 'report.html'), '-'):
    with pytest.raises(config_lib.ConfigError, match='expected an HTML file'):
      report_command.report(config, triple_run, output=wrong, **options)
  own = str(triple_run / 'config.json')
  with pytest.raises(config_lib.ConfigError, match='is a file of'):
    report_command.report(config, triple_run, output=own, **options)


def test_wrong_arguments(triple_run, tmp_path):
  output = tmp_path / 'report.html'
  with pytest.raises(config_lib.ConfigError, match="split is 'tset'"):
    write.write_report(triple_run, output, split='tset')
  with pytest.raises(map_selection.MapError, match='nobody'):
    write.write_report(triple_run, output, entity='nobody')
  with pytest.raises(map_selection.MapError, match='far'):
    write.write_report(triple_run, output, relations=['far'])
  assert not output.exists()


def test_names_replace_labels(triple_run, tmp_path, without_maps):
  names = tmp_path / 'names.tsv'
  names.write_text('near\tis close to\ne01\tUlm\n')
  report = collect.collect(triple_run, names=names)
  document = Document(page.render(report))
  _, *relations = document.tables['2 relations']
  assert 'is close to' in {row[0] for row in relations}
  assert ('bdi', 'title', 'near') in document.attributes


def test_reports_differ_only_in_their_times(triple_run, triple_report):
  again = collect.collect(triple_run)
  same = {'times': {}, 'ranking': None}
  first, second = (
    dataclasses.replace(one, **same) for one in (triple_report, again)
  )
  assert dataclasses.replace(
    triple_report.ranking, seconds=0.0
  ) == dataclasses.replace(again.ranking, seconds=0.0)
  assert first == second


def test_a_file_that_cannot_be_written(triple_run, tmp_path, monkeypatch):
  output = tmp_path / 'report.html'
  output.write_text('before')

  def fail(_):
    raise OSError('no space left')

  monkeypatch.setattr(page, 'render', fail)
  with pytest.raises(atomic_files.WriteError, match='no space left'):
    write.write_report(triple_run, output)
  assert output.read_text() == 'before'
