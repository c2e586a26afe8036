"""Lists the metrics with their presets: what each compares with, its languages, whether it works
here."""

import contextlib
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mtmetrics.artifacts.cards import licence_of
from mtmetrics.artifacts.catalog import catalog
from mtmetrics.artifacts.models import model_folder
from mtmetrics.artifacts.places import local_folder
from mtmetrics.artifacts.presets import MODEL_KEYS, Preset, load_preset, preset_names
from mtmetrics.checks import language_of, language_pair
from mtmetrics.errors import ArtifactError, MTMetricsError
from mtmetrics.matching.remapping_files import is_local, mapped_pairs
from mtmetrics.scorers.metric import MetricEntry
from mtmetrics.scorers.side import SETTING_OF_SIDE, Table

# Metrics of a file or a program that the user names; it is not known here.
NAMED_BY_USER = ("scores", "cmd")


class Listed(NamedTuple):
    """A metric with one of its presets.

    Attributes:
        metric: its name.
        preset: the preset's name, empty where the metric has none.
        compares_with: ``source``, ``reference`` or both.
        languages: directions such as ``de-en``, or languages; ``any``, or none where the preset
            does not say.
        offline: ``yes``; ``no:`` and what is missing on this machine; or the sides that work, and
            what others lack.
        needs: the models and maps that the preset names, encoders of regressors included where
            these are here.
        megabytes: of those that are here, on disk; None where none is.
        licences: of them, as their cards say; of published checkpoints that are not here, as the
            preset says.
        bundled: all of them ship with the package.
        lacks: side that does not work on this machine -> the reason, and what mends it.
    """

    metric: str
    preset: str
    compares_with: Sequence[str]
    languages: list[str]
    offline: str
    needs: Sequence[str] = ()
    megabytes: float | None = None
    licences: Sequence[str] = ()
    bundled: bool = False
    lacks: Mapping[str, str] = {}

    @property
    def works_with(self) -> list[str]:
        """The sides that work on this machine."""
        return [side for side in self.compares_with if side not in self.lacks]


class Lack(NamedTuple):
    """A reason why a metric cannot score: in a few words, and with the remedy."""

    short: str
    remedy: str


def lacking(metric: MetricEntry, bundle: Preset | None, side: str) -> Lack | None:
    """Finds out why a metric cannot score on this machine without a network; None where it can.

    This is the one answer to whether a metric works here. No model is loaded: files may still be
    damaged.

    Args:
        metric: a metric.
        bundle: its preset; None where it has none.
        side: what it is to compare with.
    """
    if metric.name in NAMED_BY_USER:
        return None
    if bundle is None or not metric.scorer_class().loads_models():
        return _lacking_code(metric, bundle)
    models = [*artifacts_of(_tables_of_side(side, bundle.settings))]
    if not models:
        return Lack(
            "names no model; train one",
            f"preset {bundle.name} names no model: train one (mtmetrics train), or pass one",
        )
    for key, name in models:
        try:
            _folder_here(bundle, key, name)
        except ArtifactError as error:
            return Lack(f"lacks {name}", str(error))
    return None


def _tables_of_side(side: str, tables: Table) -> Table:
    """The tables of a preset without those that are read for other sides alone."""
    of_other_sides = {
        table
        for other, setting in SETTING_OF_SIDE.items()
        if other != side
        for table in (setting, f"{setting}s")
    }
    kept = {name: value for name, value in tables.items() if name not in of_other_sides}
    if "regressors" in kept:
        regressors = kept["regressors"]
        kept["regressors"] = {side: regressors[side]} if side in regressors else {}
    return kept


def _lacking_code(metric: MetricEntry, bundle: Preset | None) -> Lack | None:
    """Makes a metric without models, to find out why it cannot score; None where it can."""
    # A plug-in is code of others, which may raise anything.
    expected = MTMetricsError if metric.plugin_path is None else Exception
    try:
        metric.scorer_class().load(None if bundle is None else bundle.name)
    except expected as error:
        return Lack(str(error), str(error))
    return None


def _folder_here(bundle: Preset, key: str, name: str) -> Path | None:
    """The folder of a model that a preset names; None of maps, which are here too. An
    `ArtifactError` if it is not."""
    place = bundle.path(name)
    if key != "artifact":
        return model_folder(place, local_files_only=True)
    if not is_local(place):
        raise ArtifactError(
            f"the maps {name!r} are not on this machine; they are fetched when they are first used"
        )
    return None


def listed(metric: MetricEntry) -> Iterator[Listed]:
    """A metric with each of its presets; loads nothing but what says that an extra is missing."""
    if metric.name in NAMED_BY_USER:
        yield Listed(metric.name, str(metric.usual_preset()), [*metric.sides], ["any"], "yes")
        return
    # Fluency is the language models of another metric's presets.
    owner = "xmoverscore" if metric.name == "fluency" else metric.name
    names = preset_names(owner)
    if not names and not metric.scorer_class().loads_models():
        offline, lacks = _answers(metric, None, metric.sides)
        yield Listed(metric.name, "", [*metric.sides], ["any"], offline, lacks=lacks)
    for name in names:
        bundle = load_preset(owner, name)
        if metric.name == "fluency":
            models = bundle.settings.get("language_models", {})
            bundle = dataclasses.replace(
                bundle, settings={"language_models": models, "languages": [*models]}
            )
        sides = metric.side_choice.sides_of_preset(bundle.settings)
        languages = _languages(bundle)
        if not languages and not metric.scorer_class().loads_models():
            languages = ["any"]
        offline, lacks = _answers(metric, bundle, sides)
        yield Listed(
            metric.name,
            name,
            sides,
            languages,
            offline,
            *_models(bundle),
            _is_bundled(bundle),
            lacks,
        )


def _answers(
    metric: MetricEntry, bundle: Preset | None, sides: Sequence[str]
) -> tuple[str, dict[str, str]]:
    """`Listed.offline` and `Listed.lacks`."""
    answers = {side: lacking(metric, bundle, side) for side in sides}
    lacks = {side: lack for side, lack in answers.items() if lack is not None}
    works_with = [side for side in sides if side not in lacks]
    reasons = "; ".join(dict.fromkeys(lack.short for lack in lacks.values()))
    if not lacks:
        offline = "yes"
    elif works_with:
        offline = f"{' and '.join(works_with)} only: {reasons}"
    else:
        offline = f"no: {reasons}"
    return offline, {side: lack.remedy for side, lack in lacks.items()}


def _is_bundled(bundle: Preset) -> bool:
    """Whether all models and maps that a preset names ship with the package."""
    shipped = {name for name, entry in catalog().items() if entry.bundled}
    models = [name for _, name in artifacts_of(bundle.settings)]
    return bool(models) and all(name in shipped or bundle.path(name) != name for name in models)


def _languages(bundle: Preset) -> list[str]:
    """The directions that have maps or language models or that a preset was made for, else its
    languages; none where it does not say."""
    settings = bundle.settings
    if "lang_pair" in settings:
        return ["-".join(language_pair(settings["lang_pair"]))]
    maps = settings.get("maps", {})
    kind = maps.get("kind", "none")
    mapped = mapped_pairs(bundle.path(maps.get("artifact", ".")), kind) if kind != "none" else []
    pairs = list(dict.fromkeys("-".join(language_pair(pair)) for pair in mapped))
    languages = [*map(language_of, settings.get("languages", []))]
    if bundle.metric == "uscore" and languages:
        # It needs a language model of the target, unless that is left out by name.
        pairs = [
            f"{source}-{target}"
            for target in map(language_of, settings["language_models"])
            for source in languages
            if source != target
        ]
    return pairs or languages


def _models(bundle: Preset) -> tuple[list[str], float | None, list[str]]:
    """`Listed.needs`, `megabytes` and `licences`."""
    needs = dict.fromkeys(name for _, name in artifacts_of(bundle.settings))
    folders: dict[str, Path] = {}
    for key, name in artifacts_of(bundle.settings):
        with contextlib.suppress(ArtifactError):
            folder = _folder_here(bundle, key, name)
            folders |= {} if folder is None else {name: folder}
    for folder in list(folders.values()):
        config = folder / "config.json"
        encoder = (
            json.loads(config.read_text(encoding="utf-8")).get("encoder")
            if config.is_file()
            else None
        )
        if isinstance(encoder, str) and (encoder_folder := local_folder(encoder, "config.json")):
            needs[encoder] = None
            folders[encoder] = encoder_folder
    files = [
        file for folder in set(folders.values()) for file in folder.rglob("*") if file.is_file()
    ]
    size = round(sum(file.stat().st_size for file in files) / 1e6, 1) if files else None
    licences = {licence: None for folder in folders.values() if (licence := licence_of(folder))}
    if not licences and bundle.metric == "comet":
        licences = {str(bundle.settings["description"]).rpartition("; ")[2].removesuffix("."): None}
    return [*needs], size, [*licences]


def artifacts_of(table: Table) -> Iterator[tuple[str, str]]:
    """The models and maps that the tables of a preset name, with the key that names each."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from artifacts_of(value)
        elif key in MODEL_KEYS:
            yield key, value
