"""The command line: parse, call, print; heavy modules are imported inside the command that needs them."""
