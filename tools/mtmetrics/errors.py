"""The errors that mtmetrics raises on purpose: one line that names what is wrong, where, and what
mends it."""

import importlib.util
from collections.abc import Callable, Iterable
from typing import Self

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
    "train": ("accelerate", "peft"),
}


class MTMetricsError(Exception):
    """Something could not be done; the command line exits with code 1.

    The message names options as keywords of Python. Who shows it elsewhere, as the command line
    does, asks for it in other words: `worded`.

    Args:
        message: what is wrong, where, and what mends it.
        option: the keyword with which the message begins: "layer" of "layer 77: …".
        mentions: keywords further on, exactly as the message writes them: "lang_pair=" or
            "normalize='batch'". Of several equal ones in the message the last is meant.
    """

    def __init__(
        self, message: str = "", *, option: str | None = None, mentions: Iterable[str] = ()
    ) -> None:
        super().__init__(message)
        self.option = option
        self.mentions = tuple(mentions)
        self.inner: MTMetricsError | None = None

    def worded(self, name_option: Callable[[str, str], str | None]) -> str:
        """Returns the message with other names of options.

        Args:
            name_option: gets a keyword and the value that the message pairs with it, which may be
                empty; returns what stands for both, or None to leave them as they are.
        """
        message, inner = str(self), ""
        if self.inner is not None:
            message = message.removesuffix(str(self.inner))
            inner = self.inner.worded(name_option)
        for mention in self.mentions:
            keyword, _, value = mention.partition("=")
            option = name_option(keyword, value.strip("'"))
            before, is_there, after = message.rpartition(mention)
            if is_there and option is not None:
                message = f"{before}{option}{after}"
        if self.option is not None and message.startswith(self.option):
            option = name_option(self.option, "") or self.option
            message = option + message.removeprefix(self.option)
        return message + inner

    def within(self, subject: str, *, option: str | None = None) -> Self:
        """Returns an error of the same kind that begins with the `subject` it belongs to.

        Example:
            >>> str(InputError("layer 77: too high").within("metric bertr", option="metric"))
            'metric bertr: layer 77: too high'
        """
        outer = type(self)(f"{subject}: {self}", option=option)
        outer.inner = self
        return outer


class InputError(MTMetricsError, ValueError):
    """A value that the user passed cannot be used; the command line exits with code 2."""


class ArtifactError(MTMetricsError):
    """A model, map, preset or other artifact is missing, damaged, or made for something else."""


class MissingExtraError(ArtifactError):
    """A package of an optional extra is not installed."""


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
    """Returns the command that installs an extra, in the way in which the package was installed."""
    import json
    import urllib.request
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
