"""Metrics and packages on this machine: ``mtmetrics list``, ``mtmetrics install`` and ``mtmetrics doctor``."""

import argparse
import functools
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import mtmetrics
from mtmetrics.artifacts.catalog import catalog, verify
from mtmetrics.cli.options import (
    add_model_options,
    add_output_options,
    add_plugin,
    model_pool,
)
from mtmetrics.cli.output import print_report
from mtmetrics.errors import MTMetricsError, install_command
from mtmetrics.integrations.registration import install, registered
from mtmetrics.layout import metric_names
from mtmetrics.scorers.metric import METRICS
from mtmetrics.scorers.registry import find_metric, installed_plugins, load_scorer
from mtmetrics.scorers.side import Side

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from mtmetrics.models.pool import ModelPool
    from mtmetrics.scorers.available import Listed

# A line of the doctor's report: ``"ok"``, ``"note"`` (may be intended) or ``"FAIL"``, and what was
# found.
_Finding = tuple[str, str]
# What other processors, numbers of threads and versions change in float32, and what is seen in the
# cards.
_CLOSE, _SEEN = 1e-5, 5e-4


def configure_list(parser: argparse.ArgumentParser) -> None:
    """Adds ``mtmetrics list``: which metrics and presets there are, for which languages, and what
    works here now."""
    parser.description = (
        "Lists every metric with its presets: what it compares translations with, the languages "
        "or the directions that it knows, whether all that it loads is on this machine, and "
        "what that is, with its size and licences. Loads nothing; mtmetrics doctor scores a "
        "pair with each."
    )
    parser.add_argument(
        "names", metavar="METRIC", nargs="*", default=[], help="only these (default: all)"
    )
    add_plugin(parser)
    add_output_options(parser, ("table", "json", "markdown", "csv", "tsv"))
    parser.set_defaults(run=_list)


def configure_install(parser: argparse.ArgumentParser) -> None:
    """Adds ``mtmetrics install``, which makes ``evaluate.load("xmoverscore")`` work in any
    folder."""
    parser.description = (
        'Registers the metrics in the module cache of evaluate, so that evaluate.load("xmoverscore", '
        '"mini") works in any folder and without a network. To be repeated after an update of mtmetrics; doing it '
        "twice does no harm."
    )
    parser.add_argument(
        "names", metavar="NAME", nargs="*", default=[], help="metrics (default: all)"
    )
    parser.set_defaults(run=_install)


def configure_doctor(parser: argparse.ArgumentParser) -> None:
    """Adds ``mtmetrics doctor``: is everything there that scoring needs?"""
    parser.description = (
        "Checks the installation a line per check: ok, note (may be intended) or FAIL; the exit "
        "code is 1 after a FAIL."
    )
    text = (
        "check instead whether the bundled metrics give the scores here that are stored of "
        "them, in any number format"
    )
    parser.add_argument("--scores", action="store_true", help=text)
    add_model_options(parser)
    parser.set_defaults(run=_doctor)


def _list(args: argparse.Namespace) -> None:
    from mtmetrics.reports.styles import Grid, Report
    from mtmetrics.scorers.available import listed

    installed_plugins()
    rows = [row for name in args.names or METRICS for row in listed(find_metric(name))]
    table = [
        ["metric", "preset", "compares with", "languages", "offline", "needs", "MB", "licence"]
    ]
    for row in rows:
        compared = " or ".join(row.compares_with)
        size = "" if row.megabytes is None else f"{row.megabytes:.1f}"
        needs = " ".join(row.needs), size, ", ".join(row.licences)
        table.append(
            [row.metric, row.preset, compared, _in_words(row.languages), row.offline, *needs]
        )
    print_report(Report({"metrics": [row._asdict() for row in rows]}, [Grid(table)]), args)


def _in_words(languages: Sequence[str]) -> str:
    """Languages as they are; directions with the sources of each target together."""
    if not any("-" in language for language in languages):
        return " ".join(languages) or "those of its models"
    sources: dict[str, list[str]] = {}
    for source, _, target in (pair.partition("-") for pair in languages):
        sources.setdefault(target, []).append(source)
    return "; ".join(
        f"{' '.join(found)} \N{RIGHTWARDS ARROW} {target}" for target, found in sources.items()
    )


def _install(args: argparse.Namespace) -> None:
    done = install(args.names)
    new = sum(registration.changed for registration in done)
    already = f", {len(done) - new} were registered already" if new < len(done) else ""
    print(
        f'{new} metrics registered{already}; now in Python: evaluate.load("{done[0].name}", "mini")'
    )


def _doctor(args: argparse.Namespace) -> int:
    states = set()
    checks = (_python, _packages, _device, _artifacts, _presets, _module_cache, _network)
    for check in (functools.partial(_scores, args),) if args.scores else checks:
        for state, text in _guarded(check):
            print(f"{state:<4}  {text}", flush=True)
            states.add(state)
    return int("FAIL" in states)


def _guarded(check: Callable[[], Iterator[_Finding]]) -> Iterator[_Finding]:
    """The findings of a check, which may stop because of a package that is absent or broken."""
    try:
        yield from check()
    except ImportError as error:
        name = getattr(check, "__name__", "scores").strip("_").replace("_", " ")
        yield "FAIL", f"{name}: a package cannot be imported ({error})"


def _scores(args: argparse.Namespace) -> Iterator[_Finding]:
    from mtmetrics.reports.reproduction import reproduced

    for name, difference, same in reproduced(model_pool(args)):
        if not same:
            yield "FAIL", f"{name}: is not the metric that scores are stored of"
        else:
            seen = _SEEN if args.dtype in (None, "float32") else 100 * _SEEN
            state = "ok" if difference <= _CLOSE else "note" if difference <= seen else "FAIL"
            yield state, f"{name}: within {difference:.1e} of the stored scores"


def _python() -> Iterator[_Finding]:
    state = "ok" if sys.version_info >= (3, 11) else "FAIL"
    yield state, f"python {platform.python_version()} (3.11 or newer is needed)"


def _packages() -> Iterator[_Finding]:
    """Yields the requirements of the package, then its extras, with the installed versions."""
    from importlib import metadata

    from packaging.requirements import Requirement

    name = f"mtmetrics {mtmetrics._version.__version__}"
    try:
        package = metadata.metadata("mtmetrics")
    except metadata.PackageNotFoundError:
        yield (
            "note",
            f"{name}: used from its source folder, not installed; requirements are not known",
        )
        return
    yield "ok", name
    requirements = [Requirement(line) for line in package.get_all("Requires-Dist") or ()]
    extras = package.get_all("Provides-Extra") or ()
    always = [
        item for item in requirements if item.marker is None or item.marker.evaluate({"extra": ""})
    ]
    for item in always:
        lacking = _lacking(item)
        yield (
            "FAIL" if lacking else "ok",
            f"package {lacking or f'{item.name} {metadata.version(item.name)}'}",
        )
    for extra in extras:
        more = [item for item in _of_extra(extra, requirements) if item not in always]
        lacking = ", ".join(dict.fromkeys(filter(None, map(_lacking, more))))
        advice = f"lacks {lacking}; {install_command(extra)}" if lacking else "installed"
        yield "note" if lacking else "ok", f"extra {extra}: {advice}"


def _of_extra(
    extra: str, requirements: "Sequence[Requirement]", seen: frozenset[str] = frozenset()
) -> "list[Requirement]":
    """Returns the requirements of an extra and of the extras that it consists of; `seen` are the
    extras that it is part of."""
    items = []
    for item in requirements:
        if item.marker is None or not item.marker.evaluate({"extra": extra}):
            continue
        if item.name != "mtmetrics":
            items.append(item)
            continue
        for inner in sorted(item.extras - seen - {extra}):
            items += _of_extra(inner, requirements, seen | {extra})
    return items


def _lacking(requirement: Any) -> str:
    from importlib import metadata

    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return f"{requirement.name}{requirement.specifier} (absent)"
    if requirement.specifier.contains(version, prereleases=True):
        return ""
    return f"{requirement.name}{requirement.specifier} (found {version})"


def _device() -> Iterator[_Finding]:
    import torch

    from mtmetrics.models.devices import pick_device

    about = f"torch {torch.__version__}, {torch.get_num_threads()} threads"
    yield "ok", f"device 'auto' is {pick_device('auto')} here ({about})"


def _artifacts() -> Iterator[_Finding]:
    try:
        entries = [entry for entry in catalog().values() if entry.bundled]
    except MTMetricsError as error:
        yield "FAIL", f"artifacts: {error}"
        return
    for entry in entries:
        problems = list(verify(entry.name))
        found = "; ".join(problems) if problems else f"{len(entry.files)} files as in the catalog"
        yield "FAIL" if problems else "ok", f"artifact {entry.name}: {found}"


def _presets() -> Iterator[_Finding]:
    """Would each metric and preset score now without a network? Those whose models ship with the
    package must."""
    from mtmetrics.models.pool import ModelPool
    from mtmetrics.scorers.available import NAMED_BY_USER, listed

    try:
        installed_plugins()
    except MTMetricsError as error:
        yield "FAIL", str(error)
    pool = ModelPool(local_files_only=True)
    for metric in METRICS.values():
        if metric.name in NAMED_BY_USER:
            continue
        try:
            rows = [*listed(metric)]
        except MTMetricsError as error:
            yield "FAIL", f"presets of {metric.name}: {error}"
            continue
        for row in rows:
            columns_of: dict[_Finding, list[str]] = {}
            for side in row.compares_with:
                columns_of.setdefault(_tried(row, side, pool), []).append(
                    " and ".join(Side(side).columns)
                )
            name = f"preset {row.metric}/{row.preset}" if row.preset else f"metric {row.metric}"
            for (state, text), columns in columns_of.items():
                yield state, f"{name}, against {' or '.join(columns)}: {text}"


def _tried(row: "Listed", side: str, pool: "ModelPool") -> _Finding:
    """Scores a pair of texts with the files of this machine, and says how that went."""
    problem = row.lacks.get(side)
    if problem is None:
        problem = _problem_in_scoring(row, side, pool)
        # Nothing was missing.
        must_score = row.bundled or not row.needs
    else:
        must_score = row.bundled
    if problem is None:
        return "ok", "loads and scores offline"
    return "FAIL" if must_score else "note", f"does not load offline: {problem}"


def _problem_in_scoring(row: "Listed", side: str, pool: "ModelPool") -> str | None:
    metric = METRICS[row.metric]
    options = {"against": side} if len(metric.sides) > 1 else {}
    # A plug-in is code of others, which may raise anything.
    expected = MTMetricsError if metric.where is None else Exception
    try:
        scorer = load_scorer(
            row.metric, row.preset or None, lang_pair=_pair(row.languages), pool=pool, **options
        )
        scorer.score(["Good day."], sources=["Guten Tag."], references=["Guten Tag."])
    except expected as error:
        return str(error)
    return None


def _pair(languages: Sequence[str]) -> str:
    """A language pair that a preset knows, from German into English where it may be."""
    directions = [language for language in languages if "-" in language]
    if directions:
        return "de-en" if "de-en" in directions else directions[0]
    if len(languages) < 2 or {"de", "en"} <= {*languages}:
        return "de-en"
    return "-".join(languages[:2])


def _module_cache() -> Iterator[_Finding]:
    for name in metric_names():
        try:
            path = registered(name)
        except MTMetricsError as error:
            state, text = "FAIL", str(error)
        else:
            state = "note" if path is None else "ok"
            text = (
                f"registered ({path})"
                if path
                else "this version is not registered; run 'mtmetrics install'"
            )
        yield state, f"evaluate.load({name!r}): {text}"


def _network() -> Iterator[_Finding]:
    values = {name: os.environ.get(name) for name in ("HF_HUB_OFFLINE", "HF_EVALUATE_OFFLINE")}
    shown = ", ".join(
        f"{name}={value}" if value is not None else f"{name} unset"
        for name, value in values.items()
    )
    if len({(value or "").upper() in {"1", "ON", "YES", "TRUE"} for value in values.values()}) > 1:
        yield (
            "note",
            f"offline: {shown}; evaluate reads only HF_EVALUATE_OFFLINE, the model loaders both",
        )
    else:
        yield "ok", f"offline: {shown}"
