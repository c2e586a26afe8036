"""Tests of a metric without human judgements."""
