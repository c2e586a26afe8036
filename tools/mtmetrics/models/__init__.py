"""What runs a network: encoders, language models, translators, regressors, and their packed vectors."""
