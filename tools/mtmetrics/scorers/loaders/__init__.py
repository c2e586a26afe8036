"""Builds the scorer of each metric from a preset and the options that override it."""
