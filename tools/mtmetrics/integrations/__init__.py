"""The bridges to other libraries: the `evaluate` base class, and its module cache."""
