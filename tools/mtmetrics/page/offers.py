"""What a page offers to score with: the metrics and presets that work on this machine."""

import functools
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mtmetrics.artifacts.catalog import catalog
from mtmetrics.artifacts.models import model_folder
from mtmetrics.artifacts.presets import load_preset, preset_names
from mtmetrics.checks import language_pair
from mtmetrics.errors import InputError
from mtmetrics.reports.metric_runs import MetricSpec
from mtmetrics.scorers.available import artifacts_of, listed
from mtmetrics.scorers.metric import METRICS
from mtmetrics.scorers.registry import find_metric, installed_plugins
from mtmetrics.scorers.side import Column, Side

_ABOUT = Path(__file__).with_name("metrics.toml")


class MetricChoice(NamedTuple):
    """A metric with a preset that works here, and the side that it is to compare translations with.

    Attributes:
        spec: the metric, as the command line names it.
        name: metric and preset, such as ``SentSim mini``.
        title: the same, with the side where it may compare with either.
        side: what it compares with.
        range: of the score of a segment.
        about: a sentence on what it measures.
        default: whether it is ticked at first.
        languages: as `mtmetrics.scorers.available.Listed.languages`.
    """

    spec: MetricSpec
    name: str
    title: str
    side: Side
    range: str
    about: str
    default: bool
    languages: tuple[str, ...]

    @property
    def key(self) -> str:
        return str(self.spec)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that it compares with."""
        return self.side.columns

    @property
    def label(self) -> str:
        """Name, range and the sentence, a line each."""
        return f"{self.name}\n{self.range}\n{self.about}"

    def fits(self, columns: Collection[str], lang_pair: str) -> bool:
        """Whether it can score a language pair where these columns are given."""
        if not {*self.columns} <= {*columns}:
            return False
        if not self.languages or self.languages == ("any",):
            return True
        try:
            pair = language_pair(lang_pair)
        except InputError:  # somebody is still typing it
            return False
        if any("-" in language for language in self.languages):
            return "-".join(pair) in self.languages
        return {*pair} <= {*self.languages}


def about(metric: str) -> dict[str, Any]:
    """Title, range, and a sentence on what a metric of this package measures."""
    return _told()[metric]


@functools.cache
def _told() -> dict[str, dict[str, Any]]:
    return tomllib.loads(_ABOUT.read_text(encoding="utf-8"))


def pull_models(metric: str | None = None) -> None:
    """Fetches what a Space does not carry: the models of the presets, of one metric or of all, that
    the catalog pins.

    Raises:
        ArtifactError: one cannot be fetched.
    """
    pinned = {name for name, entry in catalog().items() if entry.repository}
    for name in [metric] if metric else METRICS:
        for preset in preset_names(name):
            models = {model for _, model in artifacts_of(load_preset(name, preset).settings)}
            for model in sorted(models if models <= pinned else ()):
                model_folder(model)


@functools.cache
def offers() -> tuple[MetricChoice, ...]:
    """All that works here without a network, in the order of ``metrics.toml``."""
    found = []
    installed_plugins()
    plugins = {
        name: {
            "title": name,
            "range": metric.made_by().scale,
            "about": (metric.made_by().__doc__ or "").split("\n")[0],
        }
        for name, metric in METRICS.items()
        if metric.where is not None
    }
    for name, told in (_told() | plugins).items():
        metric = find_metric(name)
        for row in listed(metric):
            preset = row.preset.removeprefix(name.replace("_", "-") + "-")
            for side in map(Side, row.works_with):
                spec = MetricSpec(name, row.preset or None)
                several = len(row.compares_with) > 1
                if several:
                    spec = spec.having(against=side)
                title = f"{told['title']} {preset}".strip()
                titles = title, title + (f" ({side.label})" if several else "")
                # Of a metric that may compare with either, the source is ticked alone.
                default = (
                    told.get("default", False)
                    and row.preset in ("", "mini")
                    and side == row.works_with[0]
                )
                facts = told["range"], told["about"], default, tuple(row.languages)
                found.append(MetricChoice(spec, *titles, side, *facts))
    return tuple(found)


def named(metrics: Sequence[str]) -> list[MetricChoice]:
    """Metrics that the command line names, such as ``comet:DIR``, ``cmd:NAME`` or ``scores:FILE``;
    they are ticked at first.

    Raises:
        InputError: there is no such metric, or nothing says what it compares with.
    """
    found = []
    for text in metrics:
        spec = MetricSpec.parse(text).filled(None, {})
        metric = find_metric(spec.metric)
        side = metric.side_of_preset(spec.preset, dict(spec.options))
        if len(metric.sides) > 1:
            spec = spec.having(against=side)
        made = metric.made_by()
        facts = (
            made.scale or "higher is better",
            (made.__doc__ or "").split("\n")[0],
            True,
            ("any",),
        )
        found.append(MetricChoice(spec, text, text, side, *facts))
    return found


def chosen(
    there: Sequence[MetricChoice], keys: Collection[str], columns: Collection[str], lang_pair: str
) -> list[MetricChoice]:
    """Those of the offers that a visitor ticked.

    Raises:
        InputError: none is ticked, or one does not fit what is given.
    """
    ticked = [offer for offer in there if offer.key in keys]
    if not ticked:
        raise InputError("no metric is ticked: tick at least one")
    for offer in ticked:
        if not offer.fits(columns, lang_pair):
            needs = (
                f"it compares with the {offer.side.label}; languages: {' '.join(offer.languages)}"
            )
            raise InputError(
                f"{offer.title}: cannot score these texts in {lang_pair} ({needs}); untick it"
            )
    return ticked
