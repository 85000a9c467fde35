"""Tests of small imitations of public files.

Models are trained on the files in READABLE. For the files in UNREADABLE, errors
state what to do.
"""

import gzip

import pytest
import small

import coke_jax

CAPITALS = (
  ('Lisbon', 'capital_of', 'Portugal'),
  ('Madrid', 'capital_of', 'Spain'),
  ('Paris', 'capital_of', 'France'),
)
FACTS = (
  *CAPITALS,
  ('Portugal', 'borders', 'Spain'),
  ('Spain', 'borders', 'Portugal'),
  ('Spain', 'borders', 'France'),
)


def lines(pattern, facts=FACTS, header=''):
  """Returns the header, and the pattern filled in for each fact.

  In the pattern, `{h}`, `{r}` and `{t}` are the labels of a fact. `{i}` is the
  number of the fact from 0. `{q}` is the head in doubled quotes: `""Lisbon""`.
  """
  return header + ''.join(
    pattern.format(h=head, r=relation, t=tail, i=number, q=f'""{head}""') + '\n'
    for number, (head, relation, tail) in enumerate(facts)
  )


TABS = '{h}\t{r}\t{t}'
TURTLE = """\
@prefix e: <http://example.org/> .
e:Lisbon e:capital_of e:Portugal ; e:name "Lisboa"@pt .
e:Madrid e:capital_of e:Spain .
e:Paris e:capital_of e:France .
e:Portugal e:borders e:Spain .
e:Spain e:borders e:Portugal , e:France .
"""
OPENKE = {
  'entity2id.txt': '6\nLisbon\t0\nMadrid\t1\nParis\t2\nPortugal\t3\nSpain\t4\n'
  'France\t5\n',
  'relation2id.txt': '2\ncapital_of\t0\nborders\t1\n',
  'train2id.txt': '6\n0 3 0\n1 4 0\n2 5 0\n3 4 1\n4 3 1\n4 5 1\n',
  'valid2id.txt': '1\n5 4 1\n',
  'test2id.txt': '0\n',
}
# For each name: the files, the path of the source, the options, and the
# prefixes of entity labels and of relation labels.
READABLE = {
  'N-Triples': (
    {
      'dump.nt': lines(
        '<http://example.org/{h}> <http://example.org/{r}> '
        '<http://example.org/{t}> .'
      )
    },
    'dump.nt',
    {},
    ('http://example.org/', 'http://example.org/'),
  ),
  'Turtle': (
    {'dump.ttl': TURTLE},
    'dump.ttl',
    {},
    ('http://example.org/', 'http://example.org/'),
  ),
  'OpenKE': (OPENKE, '.', {}, ('', '')),
  'WN18: files of splits': (
    {
      'train.txt': lines(TABS, FACTS),
      'valid.txt': 'France\tborders\tSpain\n',
      'test.txt': '',
    },
    '.',
    {},
    ('', ''),
  ),
  'DGL-KE: labels beside dictionaries of ids': (
    {
      'entities.dict': '0\tLisbon\n1\tPortugal\n',
      'relations.dict': '0\tcapital_of\n1\tborders\n',
      'train.tsv.gz': gzip.compress(lines(TABS).encode()),
    },
    '.',
    {},
    ('', ''),
  ),
  'Wikidata: quoted CSV with a header': (
    {
      'query.csv': lines(
        '"{h}","{q}, a ""label""",{r},"{t}"',
        header='item,itemLabel,property,value\r\n',
      )
    },
    'query.csv',
    {},
    ('', ''),
  ),
  'CSV of a spreadsheet': (
    {
      'table.csv': '\ufeff'
      + lines('{i};{h};{r};{t}\r', header='No;City;Is;Land\r\n')
    },
    'table.csv',
    {'delimiter': ';', 'columns': ['City', 'Is', 'Land']},
    ('', ''),
  ),
  'Neo4j: CSV of relationships': (
    {
      'edges.csv': lines(
        '{h},{t},{r},199{i}', header=':START_ID,:END_ID,:TYPE,since:int\n'
      )
    },
    'edges.csv',
    {},
    ('', ''),
  ),
  'NELL: weighted TSV': (
    {
      'beliefs.csv': lines(
        'concept:{h}\tconcept:{r}\tconcept:{t}\t{i}\t0.9{i}\tsome "text',
        header='Entity\tRelation\tValue\tIteration\tProbability\tSource\n',
      )
      + 'concept:Rome\tconcept:borders\tconcept:Oslo\t1\t0.5\t\n'
    },
    'beliefs.csv',
    {'format': 'tsv', 'weight': 'Probability', 'min_weight': 0.9},
    ('concept:', 'concept:'),
  ),
  'ConceptNet: TSV with a column of JSON': (
    {
      'assertions.csv.gz': gzip.compress(
        lines(
          '/a/[/r/{r}/,/c/en/{h}/]\t/r/{r}\t/c/en/{h}\t/c/en/{t}\t'
          '{{"dataset": "/d/atlas", "weight": 1.0}}'
        ).encode()
      )
    },
    'assertions.csv.gz',
    {'format': 'tsv', 'columns': [3, 2, 4]},
    ('/c/en/', '/r/'),
  ),
  'KGTK: TSV with ids of edges': (
    {
      'graph.tsv': lines(
        'E{i}\t{h}\t{r}\t{t}', header='id\tnode1\tlabel\tnode2\n'
      )
    },
    'graph.tsv',
    {},
    ('', ''),
  ),
  'Hetionet: edges of Cytoscape': (
    {'edges.sif': lines(TABS, header='source\tmetaedge\ttarget\n')},
    'edges.sif',
    {'format': 'tsv'},
    ('', ''),
  ),
  'PrimeKG: wide CSV with the relation first': (
    {
      'kg.csv': lines(
        '{r},{r},{i},"{h}",{i},"{t}"',
        header='relation,display_relation,x_id,x_name,y_id,y_name\n',
      )
    },
    'kg.csv',
    {'columns': ['x_name', 'relation', 'y_name']},
    ('', ''),
  ),
  'JSON lines': (
    {
      'facts.jsonl': lines(
        '{{"subject": "{h}", "predicate": "{r}", "object": "{t}", '
        '"qualifiers": {{"rank": {i}}}}}'
      )
    },
    'facts.jsonl',
    {},
    ('', ''),
  ),
}
# For each name: the files, the path of the source, and parts of the message.
UNREADABLE = {
  'other file names': (
    {'wordnet-mlj12-train.txt': lines(TABS)},
    '.',
    ['no file of train', 'wordnet-mlj12-train.txt'],
  ),
  'ConceptNet without options': (
    READABLE['ConceptNet: TSV with a column of JSON'][0],
    'assertions.csv.gz',
    ['--column-delimiter='],
  ),
  'YAGO': (
    {'facts.tsv': lines('<id_{i}>\t<{h}>\t<{r}>\t<{t}>\t')},
    'facts.tsv',
    ["'<Lisbon>'", '5 columns', '--columns='],
  ),
  'PrimeKG without options': (
    READABLE['PrimeKG: wide CSV with the relation first'][0],
    'kg.csv',
    ["'x_name'", '--columns='],
  ),
  'ids of LibKGE': (
    {'train.del': lines('{i}\t0\t{i}')},
    'train.del',
    ['--input-format=tsv'],
  ),
  'edges of OGB': (
    {'edge.csv.gz': gzip.compress(b'0,1\n1,2\n')},
    'edge.csv.gz',
    ["'0,1'", 'at least 3 fields'],
  ),
  'tensors of PyKEEN': (
    {'triples.pt': b'PK\x03\x04'},
    'triples.pt',
    ['array', 'coke_jax.prepare'],
  ),
  'a spreadsheet': ({'a.xlsx': b'PK\x03\x04'}, 'a.xlsx', ['pandas']),
  'an archive': ({'a.tar.gz': gzip.compress(b'a')}, 'a.tar.gz', ['extract']),
  'a JSON array': ({'a.json': '[["a", "r", "b"]]'}, 'a.json', ['jsonl', 'jq']),
  'another encoding': (
    {'a.csv': 'head,relation,tail\nMálaga,in,Spain\n'.encode('latin-1')},
    'a.csv',
    ['a.csv:2', 'iconv'],
  ),
  'spaces between columns': (
    {'a.txt': lines('{h} {r} {t}')},
    'a.txt',
    ["--column-delimiter=' '"],
  ),
}


def write(folder, files):
  for name, content in files.items():
    data = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(data)


@pytest.mark.parametrize('name', READABLE)
def test_a_model_is_trained_on_a_public_file(tmp_path, name):
  files, source, options, (entity, relation) = READABLE[name]
  if name in ('N-Triples', 'Turtle'):
    pytest.importorskip('pyoxigraph')
  write(tmp_path, files)
  prepared = coke_jax.prepare(tmp_path / source, **options)
  words = prepared.graph.vocabulary
  read = {
    (words.entities[head], words.relations[kind], words.entities[tail])
    for head, kind, tail in prepared.graph.train.tolist()
  }
  assert read == {
    (f'{entity}{head}', f'{relation}{kind}', f'{entity}{tail}')
    for head, kind, tail in FACTS
  }
  config = small.config(train={'num_epochs': 1})
  model = coke_jax.train(tmp_path / source, config=config, **options)
  question = (f'{entity}Lisbon', f'{relation}capital_of', '?')
  answers = model.predict(question, top=10)
  assert {answer.label for answer in answers} == set(words.entities)
  assert [a.label for a in answers if a.known_in] == [f'{entity}Portugal']


@pytest.mark.parametrize('name', UNREADABLE)
def test_other_public_files_give_errors_that_help(tmp_path, name):
  files, source, parts = UNREADABLE[name]
  write(tmp_path, files)
  with pytest.raises(coke_jax.CokeError) as caught:
    coke_jax.prepare(tmp_path / source)
  for part in parts:
    assert part in str(caught.value)


def test_parquet(tmp_path):
  pyarrow = pytest.importorskip('pyarrow')
  parquet = pytest.importorskip('pyarrow.parquet')
  heads, relations, tails = zip(*FACTS, strict=True)
  table = {'object': tails, 'subject': heads, 'predicate': relations}
  parquet.write_table(pyarrow.table(table), tmp_path / 'facts.parquet')
  config = small.config(train={'num_epochs': 1})
  model = coke_jax.train(tmp_path / 'facts.parquet', config=config)
  assert len(model.data.train) == len(FACTS)
