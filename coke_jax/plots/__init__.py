"""Figures of runs and of contextual embeddings."""
