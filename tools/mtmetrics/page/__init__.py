"""The web page that compares systems, and the demo of a single metric: offers, texts, scores,
charts."""
