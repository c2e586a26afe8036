"""``mtmetrics doctor``: is everything there that scoring needs?"""

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import mtmetrics
from mtmetrics.errors import InputError, MissingExtraError, MTMetricsError, install_command


class Finding(NamedTuple):
    """A line of the report; the state is ``"ok"``, ``"note"`` (may be intended) or ``"FAIL"``."""

    state: str
    text: str


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "doctor",
        help="check the installation",
        description="Checks the installation a line per check: ok, note (may be intended) or FAIL; the exit code is 1 "
        "after a FAIL.",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    states = set()
    for check in (_python, _packages, _device, _artifacts, _presets, _module_cache, _offline):
        for state, text in _guarded(check):
            print(f"{state:<4}  {text}", flush=True)
            states.add(state)
    return int("FAIL" in states)


def _guarded(check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """The findings of a check, which may stop because of a package that is absent or broken."""
    try:
        yield from check()
    except ImportError as error:
        yield Finding("FAIL", f"{check.__name__.strip('_').replace('_', ' ')}: a package cannot be imported ({error})")


def _python() -> Iterator[Finding]:
    state = "ok" if sys.version_info >= (3, 11) else "FAIL"
    yield Finding(state, f"python {platform.python_version()} (3.11 or newer is needed)")


def _packages() -> Iterator[Finding]:
    """What the package requires, then each of its extras, in the versions that are there."""
    from importlib import metadata

    from packaging.requirements import Requirement

    name = f"mtmetrics {mtmetrics.__version__}"
    try:
        own = metadata.metadata("mtmetrics")
    except metadata.PackageNotFoundError:
        yield Finding("note", f"{name}: used from its source folder, not installed; requirements are not known")
        return
    yield Finding("ok", name)
    requirements = [Requirement(line) for line in own.get_all("Requires-Dist") or ()]
    for requirement in requirements:
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            lacking = _lacking(requirement)
            found = lacking or f"{requirement.name} {metadata.version(requirement.name)}"
            yield Finding("FAIL" if lacking else "ok", f"package {found}")
    for extra in own.get_all("Provides-Extra") or ():
        wanted = [item for item in requirements if item.marker is not None and item.marker.evaluate({"extra": extra})]
        own_needs = [item for item in wanted if item.name != "mtmetrics" and not item.marker.evaluate({"extra": ""})]
        lacking = [text for item in own_needs if (text := _lacking(item))]
        advice = f"lacks {', '.join(lacking)}; {install_command(extra)}" if lacking else "installed"
        yield Finding("note" if lacking else "ok", f"extra {extra}: {advice}")


def _lacking(requirement: Any) -> str:
    from importlib import metadata

    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return f"{requirement.name}{requirement.specifier} (absent)"
    if requirement.specifier.contains(version, prereleases=True):
        return ""
    return f"{requirement.name}{requirement.specifier} (found {version})"


def _device() -> Iterator[Finding]:
    import torch

    from mtmetrics.models.device import pick_device

    about = f"torch {torch.__version__}, {torch.get_num_threads()} threads"
    yield Finding("ok", f"device 'auto' is {pick_device('auto')} here ({about})")


def _artifacts() -> Iterator[Finding]:
    from mtmetrics.artifacts.catalog import catalog, verify

    try:
        entries = [entry for entry in catalog().values() if entry.bundled]
    except MTMetricsError as error:
        yield Finding("FAIL", f"artifacts: {error}")
        return
    for entry in entries:
        problems = list(verify(entry.name))
        found = "; ".join(problems) if problems else f"{len(entry.files)} files as in the catalog"
        yield Finding("FAIL" if problems else "ok", f"artifact {entry.name}: {found}")


def _presets() -> Iterator[Finding]:
    """Would each preset score now without a network? Those whose models ship with the package must."""
    from mtmetrics.artifacts.presets import preset_names
    from mtmetrics.scorers.registry import METRICS

    for metric in METRICS:
        for name in preset_names(metric):
            for finding, columns in _tried(metric, name).items():
                yield Finding(finding.state, f"preset {metric}/{name}, against {' and '.join(columns)}: {finding.text}")


def _tried(metric: str, name: str) -> dict[Finding, list[str]]:
    """What comes of scoring a pair with the files that are here, and the columns that this holds for."""
    from mtmetrics.artifacts.presets import load_preset
    from mtmetrics.scorers.pool import ModelPool
    from mtmetrics.scorers.registry import METRICS, load_scorer

    comparison = METRICS[metric]
    found: dict[Finding, list[str]] = {}
    refused: dict[Finding, list[str]] = {}
    pool = ModelPool(local_files_only=True)
    for column, value in comparison.values.items():
        options = {comparison.option: value} if comparison.option else {}
        try:
            lang_pair = load_preset(metric, name).settings.get("lang_pair", "de-en")
            scorer = load_scorer(metric, preset=name, lang_pair=lang_pair, pool=pool, **options)
            scorer.score(["Guten Tag."], ["Good day."])
        except MTMetricsError as error:
            must = _is_bundled(metric, name) and not isinstance(error, MissingExtraError)
            finding = Finding("FAIL" if must else "note", f"does not load offline: {error}")
            # A preset may know one of the columns only.
            outcomes = refused if isinstance(error, InputError) else found
        else:
            finding, outcomes = Finding("ok", "loads and scores offline"), found
        outcomes.setdefault(finding, []).append(column)
    return found or refused


def _is_bundled(metric: str, name: str) -> bool:
    """Whether all models and maps that a preset names ship with the package."""
    from mtmetrics.artifacts.catalog import catalog
    from mtmetrics.artifacts.presets import load_preset
    from mtmetrics.scorers.available import artifacts_of

    try:
        shipped = {name for name, entry in catalog().items() if entry.bundled}
        bundle = load_preset(metric, name)
    except MTMetricsError:
        return True
    named = [name for _, name in artifacts_of(bundle.settings)]
    return bool(named) and all(name in shipped or bundle.path(name) != name for name in named)


def _module_cache() -> Iterator[Finding]:
    from mtmetrics.integrations.install import registered
    from mtmetrics.layout import metric_names

    for name in metric_names():
        try:
            path = registered(name)
        except MTMetricsError as error:
            state, text = "FAIL", str(error)
        else:
            state = "note" if path is None else "ok"
            text = f"registered ({path})" if path else "this version is not registered; run 'mtmetrics install'"
        yield Finding(state, f"evaluate.load({name!r}): {text}")


def _offline() -> Iterator[Finding]:
    values = {name: os.environ.get(name) for name in ("HF_HUB_OFFLINE", "HF_EVALUATE_OFFLINE")}
    shown = ", ".join(f"{name}={value}" if value is not None else f"{name} unset" for name, value in values.items())
    if len({(value or "").upper() in {"1", "ON", "YES", "TRUE"} for value in values.values()}) > 1:
        yield Finding("note", f"offline: {shown}; evaluate reads only HF_EVALUATE_OFFLINE, the model loaders both")
    else:
        yield Finding("ok", f"offline: {shown}")
