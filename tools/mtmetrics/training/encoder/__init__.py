"""Trains a multilingual encoder: what an English sentence encoder says of a translation, it learns to say of the source."""
