"""The command line: parse, call, print; whatever is heavy loads inside the command that needs it."""
