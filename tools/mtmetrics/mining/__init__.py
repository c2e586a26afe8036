"""Finds training pairs for the artifacts: aligned words, parallel sentences."""
