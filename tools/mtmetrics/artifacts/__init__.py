"""Finds, loads, saves, verifies and publishes what the Hub or a folder holds: models, presets,
cards."""
