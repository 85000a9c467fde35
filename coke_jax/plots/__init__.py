"""Figures of a run and of contextual embeddings."""
