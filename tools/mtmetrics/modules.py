"""What the scripts under ``metrics/`` import.

`evaluate` takes the first metric class that it finds among a script's names for the metric, so a script imports this
module and reaches the base class as an attribute: ``class XMoverScore(mtmetrics.modules.MetricModule)``.
"""

from mtmetrics.integrations.evaluate_module import MetricModule

__all__ = ["MetricModule"]
