"""The optional packages that some work needs: what is missing is told before it begins."""

import importlib.util

from mtmetrics.errors import MTMetricsError

# Extra -> the modules that its packages bring.
_MODULES = {
    "app": ("gradio",),
    "mining": ("faiss", "jieba", "py3langid", "rapidfuzz", "sacremoses"),
    "train": ("accelerate",),
}


def require_extra(extra: str, purpose: str) -> None:
    """Says how to install an extra where one of its packages is absent.

    Args:
        extra: ``"app"``, ``"mining"`` or ``"train"``.
        purpose: what needs it, for the message.

    Raises:
        MTMetricsError: a package cannot be found.
    """
    missing = [name for name in _MODULES[extra] if importlib.util.find_spec(name) is None]
    if missing:
        raise MTMetricsError(f"{purpose} needs {' and '.join(missing)}; pip install 'mtmetrics[{extra}]'")
