"""The command line: flags, commands, text input and text output."""
