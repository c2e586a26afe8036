"""Packed vectors to numbers: transport, alignment, token weights."""
