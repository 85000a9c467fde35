"""Readers of triples: files of several formats, data frames and iterables."""
