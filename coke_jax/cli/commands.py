"""The table of the commands.

The name of a command is also its *mode*: `coke predict` and
`coke --mode=predict` run the same command. To add a command, write a function
in a module of this package and add an entry to `COMMANDS`. For each flag that
the function uses, add the mode to the flag's entry in `flags.TABLE`.
"""

import os

import ml_collections

from coke_jax.cli import (
  command_types,
  completion,
  data_commands,
  entity_commands,
  graph_commands,
  information_commands,
  model_commands,
  report_command,
  serve_command,
  train_command,
)

Command = command_types.Command


def _completion(
  config: ml_collections.ConfigDict | None,
  workdir: str | os.PathLike[str],
  *,
  shell: str,
) -> None:
  """Prints the script that completes `coke` in a shell."""
  del config, workdir
  print(completion.script(shell, COMMANDS), end='')


COMMANDS = {
  'train': Command(
    train_command.train,
    'Start or continue a run in --workdir. Then evaluate the best checkpoint '
    'on --split.',
    (
      'coke train facts.csv --minutes=10',
      'coke train --config=countries',
      'coke train --config=fb15k237 --workdir=runs/mine '
      '--config.train.num_epochs=50',
    ),
    needs_config=False,
    positional='data',
    common=('config', 'workdir'),
  ),
  'evaluate': Command(
    model_commands.evaluate,
    'Evaluate the best checkpoint of --workdir on --split.',
    ('coke evaluate runs/countries --split=valid',),
    needs_config=False,
  ),
  'predict': Command(
    model_commands.predict,
    'Answer the questions of --input with the model of --workdir.',
    (
      'coke predict runs/countries --input=questions.tsv --top=3',
      r"printf 'Kenya\tregion\t?\n' | coke predict runs/countries",
    ),
  ),
  'discover': Command(
    graph_commands.discover,
    'Find the most plausible facts that are in no split.',
    (
      'coke discover runs/countries --top=100 --output=new_facts.tsv',
      'coke discover runs/countries --relation=currency',
    ),
  ),
  'audit': Command(
    graph_commands.audit,
    'Find the known facts that the model considers least plausible.',
    ('coke audit runs/countries --top=50 --splits=train',),
  ),
  'similar': Command(
    entity_commands.similar,
    'Find the entities most similar to --entity, by their embeddings.',
    (
      'coke similar runs/countries --entity=Kenya',
      'coke similar runs/countries --entity=Kenya --relation=borders',
    ),
  ),
  'relations': Command(
    entity_commands.relations,
    'Predict the relations between the pairs of entities of --input.',
    (r"printf 'Kenya\t?\tAfrica\n' | coke relations runs/countries",),
  ),
  'explain': Command(
    entity_commands.explain,
    'Find paths of known facts, and similar facts, that support the facts of '
    '--input.',
    (r"printf 'Kenya\tregion\tAfrica\n' | coke explain runs/countries",),
  ),
  'calibrate': Command(
    graph_commands.calibrate,
    'On the valid split, fit a function from the score of an answer to the '
    'probability that the answer is correct. Store the function in --workdir.',
    ('coke calibrate runs/countries --output=pictures',),
  ),
  'embed': Command(
    model_commands.embed,
    'Write the contextual embeddings of the sequences of --input to --output. '
    'With --static: write the static embeddings.',
    (
      'coke embed runs/countries --static --output=embeddings.npz',
      'coke embed runs/countries --input=triples.tsv --output=projector',
    ),
  ),
  'export': Command(
    model_commands.export,
    'Write the model of --workdir to --output, as safetensors and JSON files.',
    ('coke export runs/countries --output=exported/countries',),
  ),
  'serve': Command(
    serve_command.serve,
    'Answer questions over HTTP, with a page for browsers, until SIGTERM or '
    "SIGINT. This needs pip install 'coke_jax[serve]'.",
    ('coke serve runs/countries --port=8000',),
  ),
  'plot': Command(
    model_commands.plot,
    'Draw training curves, metrics and maps of embeddings, and write them to '
    '--output.',
    ('coke plot runs/countries --output=pictures --relation=borders',),
  ),
  'report': Command(
    report_command.report,
    'Write a report of a run or an exported model as one HTML file: metrics, '
    'hardest relations, curves, calibration, maps, data, leaks and settings.',
    (
      'coke report runs/countries --output=report.html',
      'coke report runs/countries --split=test --output=report.html',
    ),
  ),
  'prepare': Command(
    data_commands.prepare,
    'Split the triples of --input into train, valid and test in --output. '
    'Report leaks, such as test triples that follow from training triples.',
    ('coke prepare facts.csv --output=data/facts',),
    needs_config=False,
    positional='input',
    common=(),
  ),
  'sample-paths': Command(
    data_commands.sample_paths,
    'Sample paths from a graph of triples and write them to files in '
    '--workdir.',
    ('coke sample-paths --config=countries_paths --workdir=paths/countries',),
    positional='',
    common=('config', 'workdir'),
  ),
  'configs': Command(
    information_commands.configs,
    'List the built-in configs, or print the file of one of them.',
    ('coke configs', 'coke configs fb15k237 > mine.py'),
    needs_config=False,
    positional='show',
    common=(),
  ),
  'completion': Command(
    _completion,
    'Print a script that completes commands, flags and configs in --shell.',
    ('source <(coke completion bash)',),
    needs_config=False,
    positional='shell',
    common=(),
  ),
}


def mode_help() -> str:
  """Returns the help text of --mode, with one line per mode."""
  modes = [f'{mode}: {command.help}' for mode, command in COMMANDS.items()]
  return '\n'.join(['The command to run.', *modes])
