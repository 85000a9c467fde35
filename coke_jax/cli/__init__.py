"""Command line: flags, commands, and questions and answers as text."""
