"""Trains the small models that ship with the package: a multilingual encoder and an English language model."""
