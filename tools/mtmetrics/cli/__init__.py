"""The command line: one module per command; parses, calls, prints."""
