"""Metrics run on judged data or systems: tables of what came out, tuning, recipes of papers, and
pictures."""
