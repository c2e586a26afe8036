"""Scoring, filtering and mining on Ray: workers, blocks of rows, and tasks."""
