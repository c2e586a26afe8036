"""The version of the package, which signatures name."""

__version__ = "1.1.0"
