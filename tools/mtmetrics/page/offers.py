"""The metrics and presets that a page offers: those that work on this machine."""

import functools
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple, NotRequired, TypedDict

from mtmetrics.artifacts.catalog import catalog
from mtmetrics.artifacts.hub import download
from mtmetrics.artifacts.models import model_folder
from mtmetrics.artifacts.places import hub_source, local_folder
from mtmetrics.artifacts.presets import load_preset, preset_names
from mtmetrics.checks import language_pair
from mtmetrics.errors import InputError
from mtmetrics.layout import metric_names
from mtmetrics.scorers.available import encoder_of_regressor, list_presets, named_models
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.metric import METRICS
from mtmetrics.scorers.registry import find_metric, installed_plugins
from mtmetrics.scorers.side import Column, Side
from mtmetrics.scorers.spec import MetricSpec

_ABOUT = Path(__file__).with_name("metrics.toml")


class MetricChoice(NamedTuple):
    """A metric with a preset that works here, and the side that it is to compare translations with.

    Attributes:
        spec: the metric, as the command line names it.
        title: metric and preset, such as ``SentSim mini``, with the side if the metric can compare
            with either.
        label: metric and preset, the range of a segment's score, and a sentence that describes the
            metric, a line each.
        side: texts that it compares translations with.
        default: whether it is ticked at first.
        languages: codes or pairs that it can score, or ``any``; empty if the preset names none,
            which fits all. See `mtmetrics.scorers.available.PresetListing`.
    """

    spec: MetricSpec
    title: str
    label: str
    side: Side
    default: bool
    languages: tuple[str, ...]

    @property
    def key(self) -> str:
        """Name on the command line, by which a ticked box is found again."""
        return str(self.spec)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns that it compares with."""
        return self.side.columns

    def fits(self, columns: Collection[str], lang_pair: str) -> bool:
        """Whether it can score texts of these columns and language pair."""
        if not {*self.columns} <= {*columns}:
            return False
        if not self.languages or self.languages == ("any",):
            return True
        try:
            pair = language_pair(lang_pair)
        except InputError:  # a visitor is still typing it
            return False
        if any("-" in language for language in self.languages):
            return "-".join(pair) in self.languages
        return {*pair} <= {*self.languages}


class Description(TypedDict):
    """A metric in ``metrics.toml``: its title, the range of a segment's score, a
    sentence on what it measures, and whether it is ticked at first."""

    title: str
    range: str
    about: str
    default: NotRequired[bool]


def descriptions() -> dict[str, Description]:
    """Metrics in the order of ``metrics.toml``; then plug-ins, and metrics with an `evaluate` script
    that the file does not describe, with the words of their class."""
    installed_plugins()  # adds their metrics to METRICS
    by_metric: dict[str, Description] = tomllib.loads(_ABOUT.read_text(encoding="utf-8"))
    for name, metric in METRICS.items():
        if name not in by_metric and (metric.plugin_path is not None or name in metric_names()):
            scorer = metric.scorer_class()
            by_metric[name] = {"title": name, "range": _range(scorer), "about": _first_line(scorer)}
    return by_metric


def pull_models(metric: str | None = None) -> None:
    """Fetches what a Space does not carry: the models and maps of the presets of one metric or of all,
    and the encoders that regressors were trained on. Presets that name a model that the catalog does
    not pin on the Hub are left out.

    Raises:
        ArtifactError: one cannot be fetched.
    """
    pinned = {name: entry for name, entry in catalog().items() if entry.repository}
    for name in [metric] if metric else METRICS:
        for preset in preset_names(name):
            models = {model for _, model in named_models(load_preset(name, preset).settings)}
            if not models <= pinned.keys():
                continue
            for model in sorted(models):
                # A folder with one of the files is that of the model.
                folder = local_folder(model, *pinned[model].files) or download(hub_source(model))
                encoder = encoder_of_regressor(folder)
                if encoder is not None:
                    model_folder(encoder)  # fetches it


@functools.cache
def offers() -> tuple[MetricChoice, ...]:
    """Returns all metrics and presets that work here without a network, in the order of
    `descriptions`."""
    choices = []
    for name, description in descriptions().items():
        for row in list_presets(find_metric(name)):
            title = f"{description['title']} {row.preset}".strip()
            label = f"{title}\n{description['range']}\n{description['about']}"
            is_usual = description.get("default", False) and row.preset in ("", "mini")
            for side in map(Side, row.works_with):
                spec = MetricSpec(name, row.preset or None)
                title_of_side = title
                if len(row.compares_with) > 1:
                    spec = spec.having(against=side)
                    title_of_side = f"{title} ({side.label})"
                choice = MetricChoice(
                    spec=spec,
                    title=title_of_side,
                    label=label,
                    side=side,
                    # Of several sides that work, only the first is ticked: the source, if it works.
                    default=is_usual and side == row.works_with[0],
                    languages=tuple(row.languages),
                )
                choices.append(choice)
    return tuple(choices)


def _first_line(scorer: type[Scorer]) -> str:
    """Returns the first line of a scorer's description."""
    return (scorer.__doc__ or "").split("\n")[0]


def _range(scorer: type[Scorer]) -> str:
    """Returns the range of a scorer's scores, in words."""
    return scorer.scale or "higher is better"


def offers_from_names(metrics: Sequence[str]) -> list[MetricChoice]:
    """Returns metrics that the command line names, such as ``comet:DIR``, ``cmd:NAME`` or
    ``scores:FILE``; they are ticked at first.

    Raises:
        InputError: there is no such metric, or nothing says what it compares with.
    """
    choices = []
    for text in metrics:
        spec = MetricSpec.parse(text).filled(None, {})
        metric = find_metric(spec.metric)
        side = metric.resolve_side(spec.preset, dict(spec.options))
        if len(metric.sides) > 1:
            spec = spec.having(against=side)
        scorer = metric.scorer_class()
        choice = MetricChoice(
            spec=spec,
            title=text,
            label=f"{text}\n{_range(scorer)}\n{_first_line(scorer)}",
            side=side,
            default=True,
            languages=("any",),
        )
        choices.append(choice)
    return choices


def ticked_offers(
    choices: Sequence[MetricChoice], keys: Collection[str], columns: Collection[str], lang_pair: str
) -> list[MetricChoice]:
    """Returns the choices that a visitor ticked.

    Raises:
        InputError: none is ticked, or one does not fit the columns or the language pair.
    """
    ticked = [offer for offer in choices if offer.key in keys]
    if not ticked:
        raise InputError("no metric is ticked: tick at least one")
    for offer in ticked:
        if not offer.fits(columns, lang_pair):
            side, languages = offer.side.label, " ".join(offer.languages)
            needs = f"it compares with the {side}; languages: {languages}"
            raise InputError(
                f"{offer.title}: cannot score these texts in {lang_pair} ({needs}); leave it out"
            )
    return ticked
