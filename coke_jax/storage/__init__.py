"""The files of a training: settings, data, checkpoints, metrics."""
