"""The CoKE encoder and its loss. This package reads and writes no files."""
