"""Files: lines and tables in, whole files out, and the languages of texts."""
