"""Judged translations: one table type, the layouts of shared tasks, and public sets."""
