"""Ranking protocols: filtered link prediction and path queries."""
