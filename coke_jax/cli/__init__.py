"""The command line: flags, commands, and questions and answers as lines."""
