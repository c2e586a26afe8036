"""Correlations with human judgements, intervals and significance: numbers in, numbers out."""
