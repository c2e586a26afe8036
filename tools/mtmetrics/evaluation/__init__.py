"""Judges metrics against human judgements."""
