"""Reads human judgements in the layouts in which they are published."""
