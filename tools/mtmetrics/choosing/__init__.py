"""From scores to decisions: which sentence pairs to keep, and which of several translations to
take."""
