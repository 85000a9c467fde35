"""Tests the triples of a small package index."""

import csv
import sys

from experiments import make_packages

INDEX = """\
Package: editor
Source: editor-source (1.2)
Section: editors
Maintainer: Ada Lovelace <ada@example.org>
Depends: library (>= 2.0), absent | library, shell:any | library,
 fonts
Tag: role::program, works-with::text, unknown::x
Description: an editor
 with: a long text

Package: library
Section: libs

Package: shell
Enhances: shell

Package: fonts
Priority: optional
"""

TRIPLES = {
  ('editor', 'source', 'source:editor-source'),
  ('editor', 'section', 'section:editors'),
  ('editor', 'maintainer', 'Ada Lovelace'),
  ('editor', 'depends', 'library'),
  ('editor', 'depends', 'shell'),
  ('editor', 'depends', 'fonts'),
  ('editor', 'role', 'role::program'),
  ('editor', 'works_with', 'works-with::text'),
  ('library', 'section', 'section:libs'),
  ('fonts', 'priority', 'priority:optional'),
}


def test_read():
  assert make_packages.read(INDEX) == TRIPLES


def test_core():
  # d has one triple. Without d, c has one triple. Without c, b has two.
  triples = {
    *(('a', relation, 'b') for relation in 'xy'),
    ('c', 'x', 'b'),
    ('c', 'x', 'd'),
  }
  assert make_packages.core(triples, 1) == triples
  assert make_packages.core(triples, 2) == {('a', 'x', 'b'), ('a', 'y', 'b')}
  assert make_packages.core(triples, 3) == set()


def test_the_command_writes_a_csv_file(tmp_path, monkeypatch, capsys):
  index, output = tmp_path / 'index.txt', tmp_path / 'packages.csv'
  index.write_text(INDEX)
  monkeypatch.setattr(
    sys, 'argv', ['make_packages', str(index), f'--output={output}']
  )
  make_packages.main()
  assert '10 triples, 11 entities, 7 relations' in capsys.readouterr().out
  with output.open(newline='') as file:
    header, *rows = csv.reader(file)
  assert header == ['head', 'relation', 'tail']
  assert set(map(tuple, rows)) == TRIPLES
