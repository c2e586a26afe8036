"""One class per metric, the tables of presets that they read, and the signatures of their scores."""
