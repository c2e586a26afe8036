"""Judged translations: one table type, the layouts of shared tasks, and public sets."""

# A cell of a row of judged data; None stands for no value.
Cell = str | float | None
