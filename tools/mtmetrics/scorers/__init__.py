"""One class per metric of the papers."""
