"""One class per metric, numbers that others compute, the presets that they read, and the signatures
of scores."""
