"""Registration of the metrics under their names alone, so that ``evaluate.load("xmoverscore")`` works
anywhere, offline."""

import dataclasses
import os
from pathlib import Path

from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.io.atomic import write_atomic
from mtmetrics.layout import metric_names, metric_scripts


@dataclasses.dataclass(frozen=True)
class Registration:
    """A metric that is registered.

    Attributes:
        name: of the metric.
        path: the script in the module cache of `evaluate`.
        changed: whether this call wrote or replaced the script.
    """

    name: str
    path: Path
    changed: bool


def install(names: list[str] | None = None) -> list[Registration]:
    """Copies the scripts of metrics into the module cache of `evaluate`, under their names alone.
    Scripts that are registered already are left alone.

    Args:
        names: metrics; None for all.

    Raises:
        InputError: an unknown metric.
        MTMetricsError: the cache cannot be written.
    """
    all_names = metric_names()
    for name in names or ():
        if name not in all_names:
            raise InputError(f"unknown metric {name!r}; there are: {', '.join(all_names)}")
    registrations = []
    for name in names or all_names:
        before = registered(name)
        path = before or _cached_script(name, register=True)
        if path is None:
            raise MTMetricsError(
                f"{name}: evaluate does not find the script that was put into its cache; is its "
                "version supported?"
            )
        registrations.append(Registration(name, path, before is None))
    return registrations


def registered(name: str) -> Path | None:
    """Returns the script that ``evaluate.load(name)`` takes from its cache; None where the cache
    holds none, or another version."""
    path = _cached_script(name)
    if path is None or path.read_bytes() != _script(name).read_bytes():
        return None
    return path


def _script(name: str) -> Path:
    return metric_scripts() / name / f"{name}.py"


def _cached_script(name: str, register: bool = False) -> Path | None:
    """Returns the script that `evaluate` takes for a name; None where there is none.

    `evaluate` documents nothing of this (seen in 0.4.6); all that depends on it is in this function.
    A name alone is looked for on the Hub first, as ``evaluate-metric/NAME``. Where that fails, the
    most recently written script in the cache folder of that name is taken.

    Args:
        name: of the metric.
        register: whether to put the script of this package there first.
    """
    from evaluate import loading
    from evaluate.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()  # `evaluate` warns that it uses the cache, which is wanted here
    try:
        folder = Path(loading.init_dynamic_modules(), "metrics", f"evaluate-metric--{name}")
        if register:
            factory = loading.LocalEvaluationModuleFactory(str(_script(name)))
            factory.name = f"evaluate-metric/{name}"
            path = folder / factory.get_module().hash / f"{name}.py"
            # Comments do not change the hash, and a file that exists is not copied again. After a
            # downgrade the file is not the youngest.
            if path.read_bytes() != _script(name).read_bytes():
                write_atomic(path, _script(name).read_bytes())
            os.utime(path)
        if not any(folder.glob(f"{'?' * 64}/{name}.py")):
            return None
        version = loading.CachedEvaluationModuleFactory(folder.name).get_module().hash
        return folder / version / f"{name}.py"
    except OSError as error:
        raise MTMetricsError(
            f"the module cache of evaluate, {loading.config.HF_MODULES_CACHE}, cannot be used "
            f"({error.strerror or error}); set HF_MODULES_CACHE to a folder that can be written"
        ) from error
    finally:
        logging.set_verbosity(level)
