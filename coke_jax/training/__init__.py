"""Training: optimizer, train step, loop and progress log."""
