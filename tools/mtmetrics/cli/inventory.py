"""What there is here: ``mtmetrics list``, ``mtmetrics install`` and ``mtmetrics doctor``."""

import argparse
import functools
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mtmetrics
from mtmetrics.artifacts.catalog import catalog, verify
from mtmetrics.artifacts.presets import load_preset, preset_names
from mtmetrics.cli.options import PLUGIN, add_model_options, add_options, add_output_options, model_pool
from mtmetrics.cli.output import print_report
from mtmetrics.errors import InputError, MTMetricsError, install_command
from mtmetrics.integrations.registration import install, registered
from mtmetrics.layout import metric_names
from mtmetrics.scorers.metric import COLUMNS, METRICS
from mtmetrics.scorers.registry import find_metric, installed_plugins, load_scorer

# A line of the doctor's report: ``"ok"``, ``"note"`` (may be intended) or ``"FAIL"``, and what was found.
_Finding = tuple[str, str]
# What other processors, numbers of threads and versions change in float32, and what is seen in the cards.
_CLOSE, _SEEN = 1e-5, 5e-4


def configure_list(parser: argparse.ArgumentParser) -> None:
    """Adds ``mtmetrics list``: which metrics and presets there are, for which languages, and what works here now."""
    parser.description = (
        "Lists every metric with its presets: what it compares translations with, the languages or the "
        "directions that it knows, whether all that it loads is on this machine, and what that is, with its size and "
        "licences. Loads nothing; mtmetrics doctor scores a pair with each."
    )
    add_options(parser, {"names METRIC ...": "only these (default: all)", **PLUGIN})
    add_output_options(parser, ("table", "json", "markdown", "csv", "tsv"))
    parser.set_defaults(run=_list)


def configure_install(parser: argparse.ArgumentParser) -> None:
    """Adds ``mtmetrics install``, which makes ``evaluate.load("xmoverscore")`` work in any folder."""
    parser.description = (
        'Registers the metrics in the module cache of evaluate, so that evaluate.load("xmoverscore", '
        '"mini") works in any folder and without a network. To be repeated after an update of mtmetrics; doing it '
        "twice does no harm."
    )
    add_options(parser, {"names NAME ...": "metrics (default: all)"})
    parser.set_defaults(run=_install)


def configure_doctor(parser: argparse.ArgumentParser) -> None:
    """Adds ``mtmetrics doctor``: is everything there that scoring needs?"""
    parser.description = (
        "Checks the installation a line per check: ok, note (may be intended) or FAIL; the exit code is 1 after a FAIL."
    )
    text = (
        "check instead whether the bundled metrics give the scores here that are stored of them, in any number format"
    )
    add_options(parser, {"--scores": text})
    add_model_options(parser)
    parser.set_defaults(run=_doctor)


def _list(args: argparse.Namespace) -> None:
    from mtmetrics.reports.styles import Grid, Report
    from mtmetrics.scorers.available import listed

    installed_plugins()
    rows = [row for name in args.names or METRICS for row in listed(find_metric(name))]
    table = [["metric", "preset", "compares with", "languages", "offline", "needs", "MB", "licence"]]
    for row in rows:
        compared = " or ".join(row.compares_with)
        size = "" if row.megabytes is None else f"{row.megabytes:.1f}"
        needs = " ".join(row.needs), size, ", ".join(row.licences)
        table.append([row.metric, row.preset, compared, _in_words(row.languages), row.offline, *needs])
    print_report(Report({"metrics": [row._asdict() for row in rows]}, [Grid(table)]), args)


def _in_words(languages: Sequence[str]) -> str:
    """Languages as they are; directions with the sources of each target together."""
    if not any("-" in language for language in languages):
        return " ".join(languages) or "those of its models"
    sources: dict[str, list[str]] = {}
    for source, _, target in (pair.partition("-") for pair in languages):
        sources.setdefault(target, []).append(source)
    return "; ".join(f"{' '.join(found)} \N{RIGHTWARDS ARROW} {target}" for target, found in sources.items())


def _install(args: argparse.Namespace) -> None:
    done = install(args.names)
    new = sum(registration.changed for registration in done)
    already = f", {len(done) - new} were registered already" if new < len(done) else ""
    print(f'{new} metrics registered{already}; now in Python: evaluate.load("{done[0].name}", "mini")')


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
    """What the package requires, then each of its extras, in the versions that are there."""
    from importlib import metadata

    from packaging.requirements import Requirement

    name = f"mtmetrics {mtmetrics._version.__version__}"
    try:
        own = metadata.metadata("mtmetrics")
    except metadata.PackageNotFoundError:
        yield "note", f"{name}: used from its source folder, not installed; requirements are not known"
        return
    yield "ok", name
    requirements = [Requirement(line) for line in own.get_all("Requires-Dist") or ()]
    extras = own.get_all("Provides-Extra") or ()
    needs = {
        extra: [item for item in requirements if item.marker is None or item.marker.evaluate({"extra": extra})]
        for extra in ("", *extras)
    }
    always = needs.pop("")
    for item in always:
        lacking = _lacking(item)
        yield "FAIL" if lacking else "ok", f"package {lacking or f'{item.name} {metadata.version(item.name)}'}"
    for extra, items in needs.items():
        more = (item for item in items if item not in always and item.name != "mtmetrics")
        lacking = ", ".join(filter(None, map(_lacking, more)))
        advice = f"lacks {lacking}; {install_command(extra)}" if lacking else "installed"
        yield "note" if lacking else "ok", f"extra {extra}: {advice}"


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

    from mtmetrics.models.runner import pick_device

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
    """Would each preset score now without a network? Those whose models ship with the package must."""
    for metric in METRICS:
        for name in preset_names(metric):
            for (state, text), columns in _tried(metric, name).items():
                yield state, f"preset {metric}/{name}, against {' or '.join(columns)}: {text}"


def _tried(metric: str, name: str) -> dict[_Finding, list[str]]:
    """What comes of scoring a pair with the files that are here, and the columns that this holds for."""
    from mtmetrics.models.pool import ModelPool

    found: dict[_Finding, list[str]] = {}
    refused: dict[_Finding, list[str]] = {}  # a preset may know one of the columns only
    pool = ModelPool(local_files_only=True)
    for side in METRICS[metric].sides:
        outcomes, finding = found, ("ok", "loads and scores offline")
        try:
            lang_pair = load_preset(metric, name).settings.get("lang_pair", "de-en")
            scorer = load_scorer(metric, preset=name, lang_pair=lang_pair, pool=pool, against=side)
            scorer.score(scorer.compared({column: ["Guten Tag."] for column in scorer.compares}), ["Good day."])
        except MTMetricsError as error:
            finding = ("FAIL" if _is_bundled(metric, name) else "note", f"does not load offline: {error}")
            outcomes = refused if isinstance(error, InputError) else found
        outcomes.setdefault(finding, []).append(" and ".join(COLUMNS[side]))
    return found or refused


def _is_bundled(metric: str, name: str) -> bool:
    """Whether all models and maps that a preset names ship with the package."""
    from mtmetrics.scorers.available import artifacts_of

    try:
        shipped = {name for name, entry in catalog().items() if entry.bundled}
        bundle = load_preset(metric, name)
    except MTMetricsError:
        return True
    named = [name for _, name in artifacts_of(bundle.settings)]
    return bool(named) and all(name in shipped or bundle.path(name) != name for name in named)


def _module_cache() -> Iterator[_Finding]:
    for name in metric_names():
        try:
            path = registered(name)
        except MTMetricsError as error:
            state, text = "FAIL", str(error)
        else:
            state = "note" if path is None else "ok"
            text = f"registered ({path})" if path else "this version is not registered; run 'mtmetrics install'"
        yield state, f"evaluate.load({name!r}): {text}"


def _network() -> Iterator[_Finding]:
    values = {name: os.environ.get(name) for name in ("HF_HUB_OFFLINE", "HF_EVALUATE_OFFLINE")}
    shown = ", ".join(f"{name}={value}" if value is not None else f"{name} unset" for name, value in values.items())
    if len({(value or "").upper() in {"1", "ON", "YES", "TRUE"} for value in values.values()}) > 1:
        yield "note", f"offline: {shown}; evaluate reads only HF_EVALUATE_OFFLINE, the model loaders both"
    else:
        yield "ok", f"offline: {shown}"
