"""Texts to packed token vectors."""
