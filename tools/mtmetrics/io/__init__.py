"""Text and rows in and out, files that are whole or absent, and the languages of texts."""
