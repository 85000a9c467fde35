"""What the README shows is what happens."""

import contextlib
import io
import itertools
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
README = (ROOT / 'README.md').read_text(encoding='utf-8')
BLOCK = re.compile(r'^```(\w+)\n(.*?)^```$', re.M | re.S)


def with_output(language):
  """(code, output) of the blocks that are followed by what they print."""
  blocks = list(BLOCK.finditer(README))
  found = []
  for block, following in itertools.pairwise(blocks):
    if block[1] == language and following[1] == 'text':
      found.append((block[2], following[2]))
  return found


def lines(text):
  return [line.rstrip() for line in text.strip().splitlines()]


def test_the_python_examples():
  examples = with_output('python')
  assert len(examples) >= 5
  names = {}
  for code, expected in examples:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
      exec(compile(code, 'README.md', 'exec'), names)
    assert lines(printed.getvalue()) == lines(expected), code


def close_enough(cell, expected):
  """Equal texts, or numbers that differ by rounding alone."""
  try:
    return abs(float(cell) - float(expected)) < 1e-4 * abs(float(expected))
  except ValueError:
    return cell == expected


def test_the_shell_examples():
  examples = with_output('bash')
  assert examples
  folder = pathlib.Path(sys.executable).parent
  environment = {
    **os.environ,
    'PATH': f'{folder}{os.pathsep}{os.environ["PATH"]}',
  }
  for code, expected in examples:
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


def test_other_python_examples_are_of_the_library():
  """Examples without output are calls that exist."""
  for language, code in BLOCK.findall(README):
    if language == 'python':
      compile(code, 'README.md', 'exec')
