"""The version of the package, which signatures name."""

__version__ = "2.0.0"
