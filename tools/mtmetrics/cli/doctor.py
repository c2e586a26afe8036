"""``mtmetrics doctor``: checks the installation.

Each check is a function that yields lines of the report; `run` prints them."""

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import mtmetrics
from mtmetrics.artifacts.catalog import catalog, verify
from mtmetrics.cli.options import add_model_options, model_pool
from mtmetrics.errors import MTMetricsError, install_command
from mtmetrics.integrations.registration import registered
from mtmetrics.layout import metric_names
from mtmetrics.scorers.metric import METRICS
from mtmetrics.scorers.registry import installed_plugins, load_scorer
from mtmetrics.scorers.side import Side

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from mtmetrics.models.pool import ModelPool
    from mtmetrics.scorers.available import Listed

# Differences of scores in float32 that other processors, numbers of threads and versions cause.
_ROUNDING = 1e-5
# Those that are too small to be seen in the cards.
_INVISIBLE = 5e-4
_OK, _NOTE, _FAIL = "ok", "note", "FAIL"


class _Finding(NamedTuple):
    """A line of the report.

    Attributes:
        state: ``ok``, ``note`` for what may be intended, or ``FAIL``.
        text: what was found.
    """

    state: str
    text: str


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Checks the installation a line per check: ok, note (may be intended) or FAIL; the exit "
        "code is 1 after a FAIL."
    )
    scores_help = (
        "check instead whether the bundled metrics give the scores here that are stored of "
        "them, in any number format"
    )
    parser.add_argument("--scores", action="store_true", help=scores_help)
    add_model_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the findings, and returns 1 after a failure."""
    scores = _guarded("scores", lambda: _check_scores(args))
    has_failed = False
    for finding in scores if args.scores else _check_installation():
        print(f"{finding.state:<4}  {finding.text}", flush=True)
        has_failed |= finding.state == _FAIL
    return int(has_failed)


def _check_installation() -> Iterator[_Finding]:
    checks = {
        "python": _check_python,
        "packages": _check_packages,
        "device": _check_device,
        "artifacts": _check_artifacts,
        "presets": _check_presets,
        "module cache": _check_module_cache,
        "network": _check_network,
    }
    for name, check in checks.items():
        yield from _guarded(name, check)


def _guarded(name: str, check: Callable[[], Iterator[_Finding]]) -> Iterator[_Finding]:
    """Yields the findings of a check, which may stop because of a package that is absent or
    broken."""
    try:
        yield from check()
    except ImportError as error:
        yield _Finding(_FAIL, f"{name}: a package cannot be imported ({error})")


def _check_scores(args: argparse.Namespace) -> Iterator[_Finding]:
    """Compares scores of the bundled metrics with stored ones."""
    from mtmetrics.reports.reproduction import reproduced

    # Other number formats differ more.
    most = _INVISIBLE if args.dtype in (None, "float32") else 100 * _INVISIBLE
    for name, difference, is_same_metric in reproduced(model_pool(args)):
        if not is_same_metric:
            yield _Finding(_FAIL, f"{name}: is not the metric that scores are stored of")
            continue
        if difference <= _ROUNDING:
            state = _OK
        elif difference <= most:
            state = _NOTE
        else:
            state = _FAIL
        yield _Finding(state, f"{name}: within {difference:.1e} of the stored scores")


def _check_python() -> Iterator[_Finding]:
    state = _OK if sys.version_info >= (3, 11) else _FAIL
    yield _Finding(state, f"python {platform.python_version()} (3.11 or newer is needed)")


def _check_packages() -> Iterator[_Finding]:
    """Yields the requirements of the package, then its extras, with the installed versions."""
    from importlib import metadata

    from packaging.requirements import Requirement

    name = f"mtmetrics {mtmetrics._version.__version__}"
    try:
        package = metadata.metadata("mtmetrics")
    except metadata.PackageNotFoundError:
        yield _Finding(
            _NOTE,
            f"{name}: used from its source folder, not installed; requirements are not known",
        )
        return
    yield _Finding(_OK, name)
    requirements = [Requirement(line) for line in package.get_all("Requires-Dist") or ()]
    always_required = _of_extra("", requirements)
    for requirement in always_required:
        problem = _problem_with(requirement)
        version = "" if problem else f"{requirement.name} {metadata.version(requirement.name)}"
        yield _Finding(_FAIL if problem else _OK, f"package {problem or version}")
    for extra in package.get_all("Provides-Extra") or ():
        further = [item for item in _of_extra(extra, requirements) if item not in always_required]
        problems = ", ".join(dict.fromkeys(filter(None, map(_problem_with, further))))
        if problems:
            advice = install_command(extra)
            yield _Finding(_NOTE, f"extra {extra}: lacks {problems}; {advice}")
        else:
            yield _Finding(_OK, f"extra {extra}: installed")


def _of_extra(
    extra: str, requirements: "Sequence[Requirement]", outer: frozenset[str] = frozenset()
) -> "list[Requirement]":
    """Returns the requirements of an extra and of the extras that it consists of.

    Args:
        extra: its name; "" for the requirements without extras.
        requirements: those of the package.
        outer: the extras that it is part of.
    """
    of_extra = []
    for requirement in requirements:
        is_required = requirement.marker is None and not extra
        if requirement.marker is not None:
            is_required = requirement.marker.evaluate({"extra": extra})
        if not is_required:
            continue
        if requirement.name != "mtmetrics":
            of_extra.append(requirement)
            continue
        for inner in sorted(requirement.extras - outer - {extra}):
            of_extra += _of_extra(inner, requirements, outer | {extra})
    return of_extra


def _problem_with(requirement: "Requirement") -> str:
    """Returns a requirement that is not met, with the version that is there; "" where it is met."""
    from importlib import metadata

    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return f"{requirement.name}{requirement.specifier} (absent)"
    if requirement.specifier.contains(version, prereleases=True):
        return ""
    return f"{requirement.name}{requirement.specifier} (found {version})"


def _check_device() -> Iterator[_Finding]:
    import torch

    from mtmetrics.models.devices import pick_device

    about = f"torch {torch.__version__}, {torch.get_num_threads()} threads"
    yield _Finding(_OK, f"device 'auto' is {pick_device('auto')} here ({about})")


def _check_artifacts() -> Iterator[_Finding]:
    try:
        entries = [entry for entry in catalog().values() if entry.bundled]
    except MTMetricsError as error:
        yield _Finding(_FAIL, f"artifacts: {error}")
        return
    for entry in entries:
        problems = "; ".join(verify(entry.name))
        as_listed = f"{len(entry.files)} files as in the catalog"
        yield _Finding(
            _FAIL if problems else _OK, f"artifact {entry.name}: {problems or as_listed}"
        )


def _check_presets() -> Iterator[_Finding]:
    """Scores with each metric and preset without a network. Those whose models ship with the
    package must work."""
    from mtmetrics.models.pool import ModelPool
    from mtmetrics.scorers.available import NAMED_BY_USER, listed

    try:
        installed_plugins()
    except MTMetricsError as error:
        yield _Finding(_FAIL, str(error))
    pool = ModelPool(local_files_only=True)
    for metric in METRICS.values():
        if metric.name in NAMED_BY_USER:
            continue
        try:
            rows = list(listed(metric))
        except MTMetricsError as error:
            yield _Finding(_FAIL, f"presets of {metric.name}: {error}")
            continue
        for row in rows:
            yield from _check_preset(row, pool)


def _check_preset(row: "Listed", pool: "ModelPool") -> Iterator[_Finding]:
    """Scores with each side that a metric can compare with; yields a line for those that give the
    same result."""
    columns_of_finding: dict[_Finding, list[str]] = {}
    for side in row.compares_with:
        columns = " and ".join(Side(side).columns)
        columns_of_finding.setdefault(_try_scoring(row, side, pool), []).append(columns)
    name = f"preset {row.metric}/{row.preset}" if row.preset else f"metric {row.metric}"
    for (state, text), columns in columns_of_finding.items():
        yield _Finding(state, f"{name}, against {' or '.join(columns)}: {text}")


def _try_scoring(row: "Listed", side: str, pool: "ModelPool") -> _Finding:
    """Scores a pair of texts with the files of this machine."""
    problem = row.lacks.get(side)
    must_score = row.bundled
    if problem is None:  # nothing is missing
        problem = _problem_in_scoring(row, side, pool)
        must_score = row.bundled or not row.needs
    if problem is None:
        return _Finding(_OK, "loads and scores offline")
    return _Finding(_FAIL if must_score else _NOTE, f"does not load offline: {problem}")


def _problem_in_scoring(row: "Listed", side: str, pool: "ModelPool") -> str | None:
    metric = METRICS[row.metric]
    options = {"against": side} if len(metric.sides) > 1 else {}
    # A plug-in is code of others, which may raise anything.
    expected = MTMetricsError if metric.plugin_path is None else Exception
    try:
        scorer = load_scorer(
            row.metric,
            row.preset or None,
            lang_pair=_usable_pair(row.languages),
            pool=pool,
            **options,
        )
        scorer.score(["Good day."], sources=["Guten Tag."], references=["Guten Tag."])
    except expected as error:
        return str(error)
    return None


def _usable_pair(languages: Sequence[str]) -> str:
    """Returns a language pair that a preset knows, from German into English where it may be."""
    directions = [language for language in languages if "-" in language]
    if directions:
        return "de-en" if "de-en" in directions else directions[0]
    if len(languages) < 2 or {"de", "en"} <= {*languages}:
        return "de-en"
    return "-".join(languages[:2])


def _check_module_cache() -> Iterator[_Finding]:
    for name in metric_names():
        try:
            path = registered(name)
        except MTMetricsError as error:
            yield _Finding(_FAIL, f"evaluate.load({name!r}): {error}")
            continue
        if path is None:
            state, text = _NOTE, "this version is not registered; run 'mtmetrics install'"
        else:
            state, text = _OK, f"registered ({path})"
        yield _Finding(state, f"evaluate.load({name!r}): {text}")


def _check_network() -> Iterator[_Finding]:
    values = {name: os.environ.get(name) for name in ("HF_HUB_OFFLINE", "HF_EVALUATE_OFFLINE")}
    shown = ", ".join(
        f"{name} unset" if value is None else f"{name}={value}" for name, value in values.items()
    )
    are_on = {(value or "").upper() in {"1", "ON", "YES", "TRUE"} for value in values.values()}
    if len(are_on) > 1:
        note = "evaluate reads only HF_EVALUATE_OFFLINE, the model loaders both"
        yield _Finding(_NOTE, f"offline: {shown}; {note}")
    else:
        yield _Finding(_OK, f"offline: {shown}")
