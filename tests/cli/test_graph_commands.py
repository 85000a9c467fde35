"""Tests commands such as `discover`, `audit`, `similar` and `explain`."""

import dataclasses
import inspect
import json

import pytest
import small

import coke_jax
from coke_jax import config as config_lib
from coke_jax.cli import commands, entity_commands, flags, graph_commands
from coke_jax.predict import calibration_files, load
from coke_jax.predict import model as model_lib

MODES = (
  'discover',
  'audit',
  'similar',
  'relations',
  'explain',
  'calibrate',
)


@pytest.fixture
def model(monkeypatch):
  """Returns the model that every command loads."""
  made = small.coke_model()
  monkeypatch.setattr(graph_commands.checks, 'trained_workdir', lambda *_: None)
  monkeypatch.setattr(load, 'load', lambda _: made)
  return made


@pytest.fixture
def run(model, tmp_path):
  """Returns a function that runs a command and returns the lines it wrote."""

  def run(function, format, lines=(), **arguments):
    output = tmp_path / 'out'
    if lines:
      source = tmp_path / 'in.tsv'
      source.write_text('\n'.join('\t'.join(line) for line in lines) + '\n')
      arguments |= {'input': str(source), 'delimiter': r'\t'}
      arguments.setdefault('on_bad_line', 'stop')
    function(
      small.config(), tmp_path, output=str(output), format=format, **arguments
    )
    written = output.read_text().splitlines()
    if format == 'jsonl':
      return [json.loads(line) for line in written]
    return [line.split('\t') for line in written]

  return run


def as_json(record):
  return json.loads(json.dumps(dataclasses.asdict(record)))


@pytest.mark.parametrize('mode', MODES)
def test_each_flag_is_an_argument(mode):
  function = commands.COMMANDS[mode].function
  keywords = list(inspect.signature(function).parameters)[2:]
  used = [flag.name for flag in flags.TABLE if mode in flag.modes]
  assert sorted(keywords) == sorted(used)


def test_discover(model, run):
  arguments = {
    'top': 4,
    'relation': 'near,likes',
    'per_head': 1,
    'splits': 'train,valid',
    'any_type': True,
  }
  expected = model.discover(
    ['near', 'likes'],
    top=4,
    per_head=1,
    splits=('train', 'valid'),
    type_matching=False,
  )
  found = run(graph_commands.discover, 'jsonl', **arguments)
  assert found == [as_json(record) for record in expected]
  header, *rows = run(graph_commands.discover, 'tsv', **arguments)
  assert header[:4] == ['head', 'relation', 'tail', 'score']
  assert [tuple(row[:3]) for row in rows] == [one.fact for one in expected]
  assert float(rows[0][4]) == pytest.approx(expected[0].probability, rel=1e-4)


def test_audit(model, run):
  arguments = {'top': 3, 'relation': '', 'splits': 'train'}
  expected = model.audit(top=3, splits=('train',))
  found = run(graph_commands.audit, 'jsonl', **arguments)
  assert found == [as_json(record) for record in expected]
  header, *rows = run(graph_commands.audit, 'tsv', **arguments)
  row = dict(zip(header, rows[0], strict=True))
  assert row['expected_tails'] == ' | '.join(expected[0].expected_tails)
  assert row['known_in'] == 'train'


def test_trainings_of_folds_do_not_print_to_the_standard_output(
  model, run, monkeypatch, capsys
):
  def judges(*_):
    print('trained a fold')
    return iter(())

  monkeypatch.setattr(graph_commands.cross_audit, 'judges', judges)
  run(graph_commands.audit, 'tsv', top=1, relation='', splits='train', folds=2)
  out, err = capsys.readouterr()
  assert out == ''
  assert 'trained a fold' in err


def test_a_note_if_most_audited_facts_were_not_learned(run, capsys):
  arguments = {'top': 4, 'relation': '', 'splits': 'train,valid,test'}
  audited = small.coke_model().audit(top=4)
  for known_in, splits, expected in (
    (['valid', 'test', 'test', 'train'], 'train,valid,test', True),
    (['valid', 'test', 'train', 'train'], 'train,valid,test', False),
    (['valid', 'test', 'test', 'valid'], 'valid,test', False),
  ):
    found = [
      dataclasses.replace(one, known_in=split)
      for one, split in zip(audited, known_in, strict=True)
    ]
    with pytest.MonkeyPatch.context() as patch:
      patch.setattr(
        model_lib.Model, 'audit', lambda *_, found=found, **__: found
      )
      run(graph_commands.audit, 'tsv', **(arguments | {'splits': splits}))
    note = 'note: 3 of these 4 facts are in valid or test'
    assert (note in capsys.readouterr().err) == expected


@pytest.mark.parametrize('relation', ['', 'near'])
def test_similar(model, run, relation):
  arguments = {
    'top': 3,
    'entity': 'e04',
    'relation': relation,
    'side': 'tail',
    'type_matching': bool(relation),
  }
  expected = model.similar(
    'e04',
    relation=relation or None,
    side='tail',
    top=3,
    type_matching=bool(relation),
  )
  found = run(entity_commands.similar, 'jsonl', **arguments)
  assert found == [as_json(record) for record in expected]
  header, *rows = run(entity_commands.similar, 'tsv', **arguments)
  assert header == ['rank', 'label', 'similarity']
  assert [row[1] for row in rows] == [one.label for one in expected]
  with pytest.raises(config_lib.ConfigError, match='--entity'):
    run(entity_commands.similar, 'tsv', **{**arguments, 'entity': ''})


def test_relations(model, run):
  lines = [('e03', '?', 'e04'), ('e05', '?', 'e05')]
  arguments = {'top': 1, 'new_only': False}
  found = run(entity_commands.relations, 'jsonl', lines, **arguments)
  expected = [model.relations(head, tail)[0] for head, _, tail in lines]
  assert found == [
    {'line': number, 'head': head, 'tail': tail, **as_json(one)}
    for number, ((head, _, tail), one) in enumerate(
      zip(lines, expected, strict=True), start=1
    )
  ]
  header, *rows = run(entity_commands.relations, 'tsv', lines, **arguments)
  assert header[:4] == ['line', 'head', 'relation', 'tail']
  assert rows[1][:4] == ['2', 'e05', expected[1].label, 'e05']


def test_explain(model, run):
  lines = [('e03', 'near', 'e04'), ('e11', 'likes', 'e02')]
  found = run(entity_commands.explain, 'jsonl', lines, top=2)
  expected = [as_json(one) for one in model.explain(lines, top=2)]
  assert [one.pop('line') for one in found] == [1, 2]
  assert found == expected
  _, *rows = run(entity_commands.explain, 'tsv', lines, top=2)
  paths = [row for row in rows if row[1] == 'path' and row[0] == '1']
  assert [row[-1] for row in paths] == [
    one['text'] for one in found[0]['paths']
  ]
  assert {row[1] for row in rows} <= {'path', 'similar'}


def test_a_fact_without_explanation(run, monkeypatch):
  empty = small.coke_model(small.random_graph(sizes=(1, 0, 0), repeats=False))
  monkeypatch.setattr(load, 'load', lambda _: empty)
  (fact,) = small.facts(empty.data, 'train')
  rows = run(entity_commands.explain, 'tsv', [fact], top=2)
  assert rows[1:] == [['1', 'none', '1', '', '']]


@pytest.mark.parametrize(
  ('function', 'line', 'arguments'),
  [
    ('relations', ('e03', 'near', 'e04'), {'top': 1, 'new_only': False}),
    ('relations', ('e03', '?', 'E04'), {'top': 1, 'new_only': False}),
    ('explain', ('e03', 'near', '?'), {'top': 1}),
    ('explain', ('e03', 'nera', 'e04'), {'top': 1}),
  ],
)
def test_bad_lines(run, function, line, arguments):
  function = getattr(entity_commands, function)
  with pytest.raises(coke_jax.CokeError, match=r'in\.tsv:1: '):
    run(function, 'tsv', [line], **arguments)
  good = (
    ('e03', '?', 'e04') if 'new_only' in arguments else ('e03', 'near', 'e04')
  )
  arguments['on_bad_line'] = 'skip'
  rows = run(function, 'tsv', [line, good], **arguments)
  assert {row[0] for row in rows[1:]} == {'2'}


def test_calibrate(model, monkeypatch, tmp_path, capsys):
  monkeypatch.setattr(
    graph_commands.checks, 'trained_workdir', lambda *_, **__: None
  )
  graph_commands.calibrate(
    small.config(), tmp_path, split='test', output=str(tmp_path / 'pictures')
  )
  params = model.predictor.scorer.params
  assert calibration_files.read(tmp_path, params) == model.calibrate()
  printed = capsys.readouterr().out.splitlines()
  assert printed[0].split('\t')[-1] == 'count'
  assert len(printed) == 1 + len(model.reliability()) + 2 + 6
  numbers = json.loads((tmp_path / 'pictures' / 'reliability.json').read_text())
  assert numbers['split'] == 'test'
  assert (tmp_path / 'pictures' / 'reliability.png').stat().st_size > 1000
