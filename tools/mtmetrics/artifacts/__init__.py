"""Finds, loads, saves and verifies what the Hub or a folder holds."""
