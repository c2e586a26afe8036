"""Metrics run on judged data or systems, the tables of what came out, recipes of papers, and pictures."""
