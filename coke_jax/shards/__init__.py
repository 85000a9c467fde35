"""Distributes parameters over devices, maybe with a vocabulary in shards."""
