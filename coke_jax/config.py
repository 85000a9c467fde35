"""All settings of a run, with their defaults and descriptions."""

import inspect
import re

import ml_collections

from coke_jax import config_checks

ConfigError = config_checks.ConfigError
RUNTIME_FIELDS = config_checks.RUNTIME_FIELDS
differences = config_checks.differences
flatten = config_checks.flatten
validate = config_checks.validate


def default_config() -> ml_collections.ConfigDict:
  """Returns the paper's settings for link prediction on the countries graph.

  The files in `configs/` start from these settings. The comment above each
  setting is also its description in `--help` and in the documentation.
  """
  config = ml_collections.ConfigDict()

  config.data = data = ml_collections.ConfigDict()
  # Name of a benchmark data set. If `data.dir` contains your own files, choose
  # any other name.
  data.name = 'countries'
  # Task and type of the files. 'triples': link prediction, with files of
  # triples. 'paths': path queries, with files of paths. 'walks': path queries,
  # with paths that are sampled from files of triples by random walks.
  data.kind = 'triples'
  # Folder with the train, valid and test files. Empty: $COKE_DATA_DIR/<name> if
  # this folder exists. Otherwise, countries is read from the package, and other
  # data sets from the user's cache folder, into which they are downloaded once.
  data.dir = ''
  # Order of the columns in files of triples.
  data.columns = 'head relation tail'
  # Text between two columns.
  data.delimiter = '\t'
  # Whether the first line of each file of triples contains column names.
  data.header = False
  # Text between two relations of a path ('paths' and 'walks' only).
  data.relation_delimiter = ','
  # Prefix of a relation that a path follows from tail to head ('paths' and
  # 'walks' only).
  data.inverse_marker = '**'
  # Maximum number of relations in a training path. Must be 1 for 'triples'. For
  # 'paths', evaluation also uses longer paths. For 'walks', the sampled paths
  # of valid and test have the same maximum, or 2 if the maximum is 1.
  data.max_path_length = 1
  # Random seed for sampling paths ('walks' only).
  data.walks_seed = 0
  # Number of random walks per training triple ('walks' only). Duplicates are
  # removed.
  data.walks_per_train_triple = 20
  # Number of random walks per triple of the valid and test splits ('walks'
  # only). Duplicates and paths of earlier splits are removed.
  data.walks_per_evaluation_triple = 4

  config.model = model = ml_collections.ConfigDict()
  # Number of Transformer blocks (L in the paper). With 0 blocks and
  # `model.composition`, the entities are scored with the composition alone, as
  # in ComplEx.
  model.num_layers = 12
  # Size of embeddings and hidden states (D in the paper).
  model.hidden_size = 256
  # Number of attention heads (A in the paper). Must divide `model.hidden_size`.
  model.num_heads = 4
  # Hidden size of the feed-forward layers (2 D in the paper).
  model.feed_forward_size = 512
  # Dropout rate of embeddings, attention weights and sublayer outputs.
  model.dropout = 0.1
  # Type of the operands in products with weights and embeddings: 'float32', or
  # 'bfloat16' with accumulation in float32. Parameters, attention scores, layer
  # norms and softmaxes are always float32.
  model.dtype = 'float32'
  # Product of the known entity and the query's relations. It is added to the
  # input at the MASK, the token in place of the answer. 'complex': the complex
  # product, as in ComplEx. 'rotation': the complex product with relations of
  # modulus 1, as in RotatE. Empty: nothing is added, as in the paper.
  model.composition = ''
  # Whether queries for the head use a second embedding of each relation. The
  # positions in these queries are then counted from the tail, the known entity.
  # Not in the paper.
  model.relation_directions = False
  # Whether queries for the head are replaced by queries for the tail of the
  # inverse path ('paths' and 'walks' only): (?, r1, r2, o) by (o, inverse of
  # r2, inverse of r1, ?). Every relation must have an inverse. Not in the
  # paper.
  model.invert_head_queries = False
  # Whether a dense layer, GELU and layer norm are applied before the product
  # with the entity embeddings, as in the paper.
  model.prediction_head = True
  # Whether a layer norm is applied to the input of the first block, as in the
  # paper.
  model.input_norm = True
  # Dropout rate on the input of the first block. Negative: the value of
  # `model.dropout`.
  model.input_dropout = -1.0
  # Dropout rate on the vector that is multiplied with the entity embeddings.
  model.output_dropout = 0.0
  # Initial standard deviation of embeddings.
  model.embedding_stddev = 0.02
  # Initial standard deviation of the relation factors, the vectors by which the
  # composition multiplies. It has no effect without a composition.
  model.composition_stddev = 1.0
  # Initial standard deviation of the kernels, the matrices of dense layers.
  # 0: 1 / sqrt(size of the layer's input).
  model.kernel_stddev = 0.02
  # Number of models that are trained side by side from different initial
  # parameters. The score of an entity is the mean of their scores. Time and
  # memory are proportional to this number. Not in the paper.
  model.num_members = 1
  # Whether blocks are recomputed in the backward pass. This uses less memory
  # but is about a third slower.
  model.remat = False

  config.train = train = ml_collections.ConfigDict()
  # Number of epochs; may be a fraction. An epoch predicts the head and the tail
  # of every training triple or path once.
  train.num_epochs = 500.0
  # Number of rows in a batch, over all devices together. Must be a multiple of
  # the number of devices.
  train.batch_size = 512
  # Optimizer: 'adam', as in the paper, or 'adagrad'. Adagrad with a learning
  # rate of about .1 suits models with 0 blocks and the N3 penalty.
  train.optimizer = 'adam'
  # Peak learning rate, which is reached after linear warm-up.
  train.learning_rate = 5e-4
  # Learning rate after the warm-up. 'linear', as in the paper: it decays
  # linearly to 0. 'none': it stays at its peak, which suits Adagrad.
  train.learning_rate_decay = 'linear'
  # Factor by which the learning rate of embeddings and entity biases is
  # multiplied. Not in the paper.
  train.embedding_learning_rate_factor = 1.0
  # Fraction of all steps used for the warm-up.
  train.warmup_fraction = 0.1
  # Probability of the correct entity in the smoothed target distribution
  # (epsilon in the paper); the rest is spread evenly over all other entities.
  # 1: no label smoothing.
  train.target_mass = 0.8
  # Weight of the N3 penalty of Lacroix, Usunier and Obozinski (2018). It is the
  # sum of cubed moduli of complex numbers. Three kinds of vectors are
  # penalized: embeddings of known entities, embeddings of answers, and relation
  # factors. Relation factors of rotations and of path queries are not
  # penalized. The penalty is useful with 0 blocks and without the layer norm on
  # the input. 0, as in the paper: no penalty.
  train.n3_penalty = 0.0
  # Weight of the DURA penalty of Zhang, Cai and Wang (2020), which can replace
  # N3. It penalizes the known entity and the answer, and the products of both
  # with the query's relation factors. `coke_jax.model.regularization` contains
  # the formula. 0, as in the paper: no penalty.
  train.dura_penalty = 0.0
  # Weight of training instances with very rare answers, relative to instances
  # with the most frequent answer. Between the two, the weight grows linearly
  # with the number of training instances of the answer. All weights are scaled
  # so that their mean is one. 1, as in the paper: all weights are equal.
  train.rare_answer_weight = 1.0
  # Decoupled weight decay of all parameters, scaled by the learning rate.
  train.weight_decay = 0.01
  # Maximum global norm of the gradient. A gradient with a larger norm is scaled
  # down to it. 0: no maximum.
  train.clip_norm = 1.0
  # Content of a row in a batch. 'instance', as in the paper: a masked sequence
  # with one answer. 'query': a distinct masked sequence with all its training
  # answers, for which one pass of the encoder is enough. Both values give the
  # same total gradient of an epoch. With 'query', an epoch has fewer steps, and
  # a step takes about the same time (FB15k-237: 296 instead of 1,063 steps of
  # 512 rows).
  train.rows = 'instance'
  # Maximum number of answers in a row. A query with more answers is split into
  # several rows. It only has an effect if `train.rows` is 'query'.
  train.max_answers_per_row = 64
  # Number of candidates in the softmax of a step: the entities of the batch and
  # a uniform sample of all others. The module `coke_jax.data.candidates`
  # describes the sample. Fewer candidates make a step faster if there are
  # tens of thousands of entities. 0, as in the paper: all entities are
  # candidates.
  train.candidates = 0
  # Number of entities in a chunk, if a step computes the logits of one chunk of
  # entities at a time. With chunks, the memory does not grow with the batch
  # size times the number of entities. The loss differs only by rounding, but a
  # step computes a third more products with the embeddings. 0: chunks are used
  # only if the logits of a batch need more than 1 GiB on a device. -1: no
  # chunks.
  train.vocabulary_chunk = 0
  # Number of training steps per call of the compiled function. More steps
  # reduce the overhead of the host (15 % of the time with 12 blocks on a CPU),
  # but SIGINT and SIGTERM only take effect between calls. For path queries,
  # this is also the number of consecutive batches with paths of the same
  # length.
  train.steps_per_call = 8
  # Number of random walks that are sampled in each epoch ('paths' and 'walks'
  # only). Their edges are the training paths with one relation, in both
  # directions. They have 2 to `data.max_path_length` relations and replace all
  # training paths with more than one relation. The number is rounded up to full
  # batches. 0, as in the paper: the given training paths are used in every
  # epoch.
  train.walks_per_epoch = 0
  # Random seed for initial parameters, data order, dropout and
  # `train.walks_per_epoch`.
  train.seed = 0
  # Number of epochs between two evaluations on the valid split; may be a
  # fraction. The checkpoint with the best filtered MRR (path queries: mean
  # quantile) is kept. There is always an evaluation at the end. 0: only at the
  # end.
  train.validate_every_epochs = 10.0
  # Queries whose MRR determines the best checkpoint ('triples' only). 'both':
  # all queries. 'head' or 'tail': the queries for this side. A relation can
  # follow. For example, 'tail borders' selects the queries for the tails of the
  # relation `borders`.
  train.choose_by = 'both'
  # Stop the training after this many validations in a row without a better
  # metric. 0: never stop early.
  train.early_stopping_validations = 0
  # Minutes between two checkpoints. A checkpoint is also written at every
  # validation. 0: only at validations.
  train.checkpoint_every_minutes = 10.0
  # Number of steps between two lines of metrics.jsonl.
  train.log_every_steps = 100
  # Whether TensorBoard events are also written. This needs
  # `pip install '.[tensorboard]'`.
  train.tensorboard = False

  config.evaluate = evaluate = ml_collections.ConfigDict()
  # Number of queries ranked at a time, over all devices together. Memory use is
  # proportional to this number times the number of entities. 0: the largest
  # number whose scores need less than 64 MiB on each device, but at most 1024
  # for each device.
  evaluate.batch_size = 0

  # Whether each device has only a part of the entity embeddings, the entity
  # biases and their optimizer state. This is useful if a device has too little
  # memory for all of them. The results differ only by rounding. There is no
  # effect on a single device. The model must have a single member. With the N3
  # or DURA penalty, `train.candidates` must be above 0. If there are several
  # hosts, they must share the work folder.
  config.shard_vocabulary = False
  # Folder of JAX's persistent compilation cache, which saves most of the
  # compilation time when a program starts again. Empty: no cache.
  config.compilation_cache_dir = ''
  return config.lock()  # Now, assigning to an unknown field raises an error.


def describe() -> list[tuple[str, str, str]]:
  """Returns the field, default and description of every setting.

  They are read from the source code of `default_config`. The description of a
  setting is the comment directly above its assignment. The default is the
  assigned expression.
  """
  fields, comment = [], []
  for line in inspect.getsource(default_config).splitlines():
    line = line.strip()
    if line.startswith('# '):
      comment.append(line[2:])
      continue
    assigned = re.fullmatch(r'(\w+)\.(\w+) = (.+)', line)
    if assigned and comment:
      group, name, default = assigned.groups()
      field = name if group == 'config' else f'{group}.{name}'
      fields.append((field, default, ' '.join(comment)))
    comment = []
  return fields


def from_dict(saved: dict) -> ml_collections.ConfigDict:
  """Returns the config for a dictionary, such as the content of config.json.

  Args:
    saved: a dictionary of settings. Missing fields get their defaults.

  Raises:
    ConfigError: a field is unknown, or its value is not valid.
  """
  config = default_config()
  try:
    config.update(saved)
    validate(config)
  except (KeyError, AttributeError, TypeError) as error:
    raise ConfigError(
      f'not a config of this version of coke_jax: {error}'
    ) from error
  return config
