"""Packed vectors to numbers: transport, greedy matching, alignments, words at fault, and the maps
between languages."""
