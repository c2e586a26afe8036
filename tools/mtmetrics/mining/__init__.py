"""Finds sentences that translate each other: by sentence vectors, and by the words of the nearest
ones."""
