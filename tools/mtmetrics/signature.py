"""One line that pins a score: the metric and everything that its value depends on, in the manner of sacrebleu."""

from collections.abc import Mapping

from mtmetrics.version import __version__


def signature(metric: str, fields: Mapping[str, object]) -> str:
    """``metric|key:value|...|v:VERSION``; fields whose value is None are left out.

    Example:
        >>> signature("xmoverscore", {"lp": "de-en", "layer": 12, "drop": None}).rsplit("|", 1)[0]
        'xmoverscore|lp:de-en|layer:12'
    """
    shown = [f"{key}:{value}" for key, value in fields.items() if value is not None]
    return "|".join([metric, *shown, f"v:{__version__}"])
