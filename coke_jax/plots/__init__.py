"""Figures of a training and of contextual embeddings."""
