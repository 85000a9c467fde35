"""Loads, applies and exports trained models."""
