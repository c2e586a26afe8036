"""The errors that mtmetrics raises on purpose: one line that names what is wrong, where, and what
mends it."""

import importlib.util
import urllib.request

# Extra -> the modules that its packages bring.
_MODULES = {
    "app": ("gradio",),
    "baselines": ("sacrebleu",),
    "completion": ("argcomplete",),
    "filter": ("py3langid",),
    "mining": ("faiss", "jieba", "py3langid", "rapidfuzz", "sacremoses"),
    "plot": ("matplotlib",),
    "ray": ("ray",),
    "serve": ("starlette", "uvicorn"),
    "train": ("accelerate",),
}


class MTMetricsError(Exception):
    """Something could not be done; the command line exits with code 1."""


class InputError(MTMetricsError, ValueError):
    """What the user passed cannot be used; the command line exits with code 2."""


class ArtifactError(MTMetricsError):
    """A model, map, preset or other artifact is missing, damaged, or made for something else."""


class MissingExtraError(ArtifactError):
    """It comes with an optional extra of the package that is not installed."""


def require_extra(extra: str, purpose: str) -> None:
    """Says how to install an extra where one of its packages is absent.

    Args:
        extra: one of those in setup.cfg, such as ``"mining"``.
        purpose: what needs it, for the message.

    Raises:
        MissingExtraError: a package cannot be found.
    """
    missing = [name for name in _MODULES[extra] if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtraError(
            f"{purpose} needs {' and '.join(missing)}; {install_command(extra)}"
        )


def install_command(extra: str) -> str:
    """What installs an extra of the package in the way in which the package was installed."""
    import json
    from importlib import metadata

    try:
        origin = json.loads(metadata.distribution("mtmetrics").read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        origin = {}
    url = origin.get("url", "")
    if "vcs_info" in origin:
        vcs = origin["vcs_info"]
        return f"pip install 'mtmetrics[{extra}] @ {vcs['vcs']}+{url}@{vcs['commit_id']}'"
    if not url.startswith("file://"):
        return f"pip install 'mtmetrics[{extra}]'"
    editable = "-e " if origin.get("dir_info", {}).get("editable") else ""
    return f"pip install {editable}'{urllib.request.url2pathname(url.removeprefix('file://'))}[{extra}]'"
