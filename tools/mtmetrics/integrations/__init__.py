"""The bridges to other libraries: modules of evaluate, metrics for trainers, and generation that a metric decides."""
