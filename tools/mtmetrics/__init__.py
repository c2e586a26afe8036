"""Machine-translation evaluation metrics of four papers as Hugging Face `evaluate` modules.

The package holds all arithmetic; the scripts under ``metrics/`` and the command ``mtmetrics`` call it.
"""

from mtmetrics.integrations.trainer import make_compute_metrics
from mtmetrics.layout import metric_path
from mtmetrics.version import __version__

__all__ = ["__version__", "make_compute_metrics", "metric_path"]
