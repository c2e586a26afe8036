"""The page that compares systems in the browser: what it offers, reads, scores and shows."""
