"""Serves a trained model over HTTP: a JSON API and a page for browsers."""
