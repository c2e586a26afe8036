"""Where the metric scripts and the bundled artifacts lie: inside an installed package, or in the
source tree."""

from pathlib import Path

from mtmetrics.errors import InputError

_PACKAGE = Path(__file__).parent
# The Space that is no metric.
COMPARE = "compare"


def _mapped(installed: str, in_tree: str) -> Path:
    # In an editable install the packages that setup.cfg maps to other folders do not exist.
    folder = _PACKAGE / installed
    return folder if folder.is_dir() else _PACKAGE.parents[1] / in_tree


def metric_scripts() -> Path:
    """The folder that holds one folder per `evaluate` metric script."""
    return _mapped("metric_scripts", "metrics")


def bundled_artifacts() -> Path:
    """The folder that holds the artifacts that ship with the package, and ``catalog.toml``."""
    return _mapped("hub_artifacts", "hub_artifacts")


def source_tree() -> Path | None:
    """The checkout that the package runs from; None where it is installed without one."""
    root = _PACKAGE.parents[1]
    return root if (root / "setup.cfg").is_file() and bundled_artifacts().parent == root else None


def metric_names() -> list[str]:
    """Names of the metrics that have a script, sorted."""
    return sorted(
        path.parent.name
        for path in metric_scripts().glob("*/*.py")
        if path.stem == path.parent.name
    )


def metric_path(name: str) -> str:
    """Path of the script folder of a metric, for
    ``evaluate.load(mtmetrics.metric_path("xmoverscore"))``, which takes no `Path`.

    Raises:
        InputError: there is no metric of that name.
    """
    if name not in metric_names():
        raise InputError(f"unknown metric {name!r}; there are: {', '.join(metric_names())}")
    return str(metric_scripts() / name)


def space_folder(name: str) -> Path:
    """The folder of a Space: that of a metric, or of the page that compares systems.

    Raises:
        InputError: there is no such Space.
    """
    return metric_scripts() / COMPARE if name == COMPARE else Path(metric_path(name))
