"""What runs a network: encoders, language models, translators, regressors, COMET, and their packed
vectors."""
