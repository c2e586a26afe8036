"""Networks and the code that runs them: encoders, language models, translators, regressors, COMET, and their packed
vectors."""
