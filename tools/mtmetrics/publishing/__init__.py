"""Puts artifacts and metrics on the Hub."""
