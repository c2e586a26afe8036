"""The errors that mtmetrics raises on purpose: one line that names what is wrong, where, and what mends it."""


class MTMetricsError(Exception):
    """Something could not be done; the command line exits with code 1."""


class InputError(MTMetricsError, ValueError):
    """What the user passed cannot be used; the command line exits with code 2."""


class ArtifactError(MTMetricsError):
    """A model, map, preset or other artifact is missing, damaged, or made for something else."""


class MissingExtraError(ArtifactError):
    """It comes with an optional extra of the package that is not installed."""
