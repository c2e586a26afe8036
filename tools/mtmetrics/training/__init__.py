"""Trainings, on one skeleton: encoders, language models, translation models, regressors and what
labels their data."""
