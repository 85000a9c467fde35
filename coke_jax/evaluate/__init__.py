"""Evaluation: filtered link prediction and path queries."""
