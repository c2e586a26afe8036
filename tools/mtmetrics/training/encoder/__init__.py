"""Trains a multilingual encoder to say of a source what an English one says of its translation."""
