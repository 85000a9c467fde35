"""Checks that the examples in README.md and docs/ print the output shown."""

import contextlib
import io
import itertools
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BLOCK = re.compile(r'^```(\w+)\n(.*?)^```$', re.M | re.S)
PAGES = {
  path.relative_to(ROOT).as_posix(): path.read_text(encoding='utf-8')
  for path in (ROOT / 'README.md', *sorted((ROOT / 'docs').rglob('*.md')))
}


def with_output(page, language):
  """Returns each block of code with the `text` block directly after it."""
  blocks = list(BLOCK.finditer(PAGES[page]))
  found = []
  for block, following in itertools.pairwise(blocks):
    between = PAGES[page][block.end() : following.start()]
    if block[1] == language and following[1] == 'text' and not between.strip():
      found.append((block[2], following[2]))
  return found


def pages_with(language):
  return [page for page in PAGES if with_output(page, language)]


def lines(text):
  return [line.rstrip() for line in text.strip().splitlines()]


def test_examples_are_found():
  counts = {page: len(with_output(page, 'python')) for page in PAGES}
  assert counts['README.md'] >= 1
  assert counts['docs/tutorial.md'] >= 5
  assert counts['docs/guides/embeddings.md'] >= 2
  assert pages_with('bash')


@pytest.mark.parametrize('page', pages_with('python'))
def test_python_examples(page, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  names = {}
  for code, expected in with_output(page, 'python'):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
      exec(compile(code, page, 'exec'), names)
    assert lines(printed.getvalue()) == lines(expected), code


def close_enough(cell, expected):
  """Compares numbers with a relative tolerance of 1e-4, and text exactly."""
  try:
    return abs(float(cell) - float(expected)) <= 1e-4 * abs(float(expected))
  except ValueError:
    return cell == expected


@pytest.mark.parametrize('page', pages_with('bash'))
def test_shell_examples(page):
  folder = pathlib.Path(sys.executable).parent
  environment = {
    **os.environ,
    'PATH': f'{folder}{os.pathsep}{os.environ["PATH"]}',
  }
  for code, expected in with_output(page, 'bash'):
    done = subprocess.run(
      ['bash', '-c', code],
      cwd=ROOT,
      env=environment,
      capture_output=True,
      text=True,
      timeout=300,
    )
    assert done.returncode == 0, done.stderr
    got = [line.split('\t') for line in lines(done.stdout)]
    wanted = [line.split('\t') for line in lines(expected)]
    assert [len(row) for row in got] == [len(row) for row in wanted]
    for row, expected_row in zip(got, wanted, strict=True):
      assert all(map(close_enough, row, expected_row)), row


@pytest.mark.parametrize('page', PAGES)
def test_every_python_example_compiles(page):
  for language, code in BLOCK.findall(PAGES[page]):
    if language == 'python':
      compile(code, page, 'exec')


@pytest.mark.parametrize(
  ('install', 'command'),
  [
    ('.', 'python -m coke_jax.main --config=configs/countries.py'),
    ("'.[test]'", 'python -m pytest'),
  ],
)
def test_readme_commands(install, command):
  block = f'```bash\npip install {install} && {command}\n```'
  assert block in PAGES['README.md']
