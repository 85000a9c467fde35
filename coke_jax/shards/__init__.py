"""Copies parameters to all devices, or cuts the vocabulary into shards."""
