"""``mtmetrics doctor``: checks the installation.

Each check is a function that yields lines of the report; `run` prints them."""

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import mtmetrics
from mtmetrics.artifacts.catalog import catalog, find_problems
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
    from mtmetrics.scorers.available import PresetListing

# Largest difference of float32 scores that another processor, number of threads or version of a
# library explains.
_ROUNDING = 1e-5
# Largest difference that the rounded numbers in the cards of the metrics do not show.
_INVISIBLE = 5e-4
_OK, _NOTE, _FAIL = "ok", "note", "FAIL"


class _Finding(NamedTuple):
    """A line of the report.

    Attributes:
        state: ``ok``, ``note`` for something that may be intended, or ``FAIL``.
        text: describes the state of one thing, such as a package or a preset.
    """

    state: str
    text: str


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Checks the installation, and prints its findings, one per line: ok, note (may be "
        "intended) or FAIL. The exit code is 1 after a FAIL. The options for models are for "
        "--scores."
    )
    scores_help = (
        "check instead that the bundled metrics reproduce their stored scores on this machine, in "
        "any number format"
    )
    parser.add_argument("--scores", action="store_true", help=scores_help)
    add_model_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the findings; returns 1 if one of them is a FAIL, else 0."""
    findings = _check_installation()
    if args.scores:
        findings = _guarded("scores", lambda: _check_scores(args))
    has_failed = False
    for finding in findings:
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
        "module cache": _check_registration,
        "offline": _check_offline_variables,
    }
    for name, check in checks.items():
        yield from _guarded(name, check)


def _guarded(name: str, check: Callable[[], Iterator[_Finding]]) -> Iterator[_Finding]:
    """Yields the findings of a check. An ImportError, of an absent or broken package, ends the
    check with a FAIL."""
    try:
        yield from check()
    except ImportError as error:
        yield _Finding(_FAIL, f"{name}: a package cannot be imported ({error})")


def _check_scores(args: argparse.Namespace) -> Iterator[_Finding]:
    """Compares scores of the bundled metrics with stored ones."""
    from mtmetrics.reports.reproduction import reproduced

    pool = model_pool(args)
    # The stored scores are in float32; formats with fewer digits differ more.
    tolerance = _INVISIBLE if pool.dtype == "float32" else 100 * _INVISIBLE
    for name, difference, is_same_metric in reproduced(pool):
        if not is_same_metric:
            yield _Finding(_FAIL, f"{name}: is not the metric that scores are stored of")
            continue
        if difference <= _ROUNDING:
            state = _OK
        elif difference <= tolerance:
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

    name_and_version = f"mtmetrics {mtmetrics._version.__version__}"
    try:
        package = metadata.metadata("mtmetrics")
    except metadata.PackageNotFoundError:
        yield _Finding(
            _NOTE,
            f"{name_and_version}: used from its source folder, not installed; requirements are not known",
        )
        return
    yield _Finding(_OK, name_and_version)
    requirements = [Requirement(line) for line in package.get_all("Requires-Dist") or ()]
    for requirement in _requirements_of_extra("", requirements):
        problem = _problem_with(requirement)
        version = "" if problem else f"{requirement.name} {metadata.version(requirement.name)}"
        yield _Finding(_FAIL if problem else _OK, f"package {problem or version}")
    for extra in package.get_all("Provides-Extra") or ():
        problems = []
        for requirement in _requirements_of_extra(extra, requirements):
            problem = _problem_with(requirement)
            if problem and problem not in problems:
                problems.append(problem)
        if problems:
            advice = install_command(extra)
            yield _Finding(_NOTE, f"extra {extra}: lacks {', '.join(problems)}; {advice}")
        else:
            yield _Finding(_OK, f"extra {extra}: installed")


def _requirements_of_extra(
    extra: str, requirements: "Sequence[Requirement]"
) -> "list[Requirement]":
    """Returns the requirements of an extra, and those of the extras that it includes.

    Args:
        extra: name of the extra; "" for the requirements without extras.
        requirements: all requirements of the package.
    """
    requirements_of_extra = []
    included_extras = [extra]
    for included_extra in included_extras:  # grows meanwhile
        for requirement in requirements:
            marker = requirement.marker
            if not (marker.evaluate({"extra": included_extra}) if marker else not included_extra):
                continue
            if requirement.name == "mtmetrics":
                included_extras += sorted(requirement.extras - {*included_extras})
            else:
                requirements_of_extra.append(requirement)
    return requirements_of_extra


def _problem_with(requirement: "Requirement") -> str:
    """Describes how a requirement is not met, with the installed version; returns "" if it is met."""
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

    torch_info = f"torch {torch.__version__}, {torch.get_num_threads()} threads"
    yield _Finding(_OK, f"device 'auto' is {pick_device('auto')} here ({torch_info})")


def _check_artifacts() -> Iterator[_Finding]:
    try:
        entries = [entry for entry in catalog().values() if entry.bundled]
    except MTMetricsError as error:
        yield _Finding(_FAIL, f"artifacts: {error}")
        return
    for entry in entries:
        problems = "; ".join(find_problems(entry.name))
        all_match = f"all {len(entry.files)} files match the catalog"
        yield _Finding(
            _FAIL if problems else _OK, f"artifact {entry.name}: {problems or all_match}"
        )


def _check_presets() -> Iterator[_Finding]:
    """Tries each preset of each metric offline, on the device 'auto'. Presets that have nothing to
    download must work: their models ship with the package, or they have none."""
    from mtmetrics.models.pool import ModelPool
    from mtmetrics.scorers.available import USER_SUPPLIED_METRICS, list_presets

    try:
        installed_plugins()  # adds their metrics to METRICS
    except MTMetricsError as error:
        yield _Finding(_FAIL, str(error))
    pool = ModelPool(local_files_only=True)
    for metric in METRICS.values():
        if metric.name in USER_SUPPLIED_METRICS:
            continue
        try:
            rows = list(list_presets(metric))
        except MTMetricsError as error:
            yield _Finding(_FAIL, f"presets of {metric.name}: {error}")
            continue
        for row in rows:
            yield from _check_preset(row, pool)


def _check_preset(row: "PresetListing", pool: "ModelPool") -> Iterator[_Finding]:
    """Scores with each side that a metric can compare with: source, reference or both. Sides with
    the same outcome share one line."""
    columns_of_finding: dict[_Finding, list[str]] = {}
    for side in row.compares_with:
        finding = _try_scoring(row, side, pool)
        columns = " and ".join(Side(side).columns)
        columns_of_finding.setdefault(finding, []).append(columns)
    name = f"preset {row.metric}/{row.preset}" if row.preset else f"metric {row.metric}"
    for (state, text), columns in columns_of_finding.items():
        yield _Finding(state, f"{name}, against {' or '.join(columns)}: {text}")


def _try_scoring(row: "PresetListing", side: str, pool: "ModelPool") -> _Finding:
    """Scores a pair of texts, with only the files that are already on this machine."""
    must_score = row.bundled
    # `lacks`: side -> what this machine has not. `needs`: all that the preset has to download.
    problem = row.lacks.get(side)
    if problem is None:
        problem = _problem_in_scoring(row, side, pool)
        must_score = row.bundled or not row.needs
    if problem is None:
        return _Finding(_OK, "loads and scores offline")
    return _Finding(_FAIL if must_score else _NOTE, f"does not load offline: {problem}")


def _problem_in_scoring(row: "PresetListing", side: str, pool: "ModelPool") -> str | None:
    """Loads a preset and scores with it. Returns the error message, or None on success."""
    metric = METRICS[row.metric]
    options = {"against": side} if len(metric.sides) > 1 else {}
    # `plugin_path` is set for plug-ins. They are third-party code, which may raise any exception.
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
    """Returns a language pair that a preset supports, de-en if possible.

    `languages` has language pairs, or single languages that may be combined."""
    directions = [language for language in languages if "-" in language]
    if directions:
        return "de-en" if "de-en" in directions else directions[0]
    if len(languages) < 2 or {"de", "en"} <= {*languages}:
        return "de-en"
    return "-".join(languages[:2])


def _check_registration() -> Iterator[_Finding]:
    """Checks that `evaluate.load` finds this version of each metric."""
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


def _check_offline_variables() -> Iterator[_Finding]:
    """Checks that the variables that turn the network off agree with each other."""
    values = {name: os.environ.get(name) for name in ("HF_HUB_OFFLINE", "HF_EVALUATE_OFFLINE")}
    shown = ", ".join(
        f"{name} unset" if value is None else f"{name}={value}" for name, value in values.items()
    )
    states = {(value or "").upper() in {"1", "ON", "YES", "TRUE"} for value in values.values()}
    if len(states) > 1:  # one variable is on, the other is off
        note = (
            "the command stays offline only with HF_HUB_OFFLINE, evaluate.load finds a metric "
            "offline only with HF_EVALUATE_OFFLINE"
        )
        yield _Finding(_NOTE, f"offline: {shown}; {note}")
    else:
        yield _Finding(_OK, f"offline: {shown}")
