"""Lists the presets of each metric: the sides that it compares translations with, its languages, its
models, and whether it can score on this machine without a network."""

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

# The user supplies the file or the program of these metrics, so there is nothing to check before.
USER_SUPPLIED_METRICS = ("scores", "cmd")


class PresetListing(NamedTuple):
    """A metric with one of its presets. ``mtmetrics list`` prints the fields.

    Attributes:
        metric: name of the metric.
        preset: name of the preset, empty if the metric has none.
        compares_with: the sides that translations can be compared with, see
            `mtmetrics.scorers.side.Side`.
        languages: directions such as ``de-en``, or languages; ``any``; empty if the preset does not
            say.
        offline: text for the user: ``yes``, ``no: REASON``, or ``SIDE only: REASON``.
        needs: names of the models and maps that the preset uses, and of the encoders of its
            regressors (trained networks) that are on this machine.
        megabytes: size of those models that are on this machine; None if none is.
        licences: licences of these, from their cards; of a COMET checkpoint that is not on this
            machine, the licence that the preset states.
        bundled: whether the preset names models or maps, and all of them ship with the package.
        lacks: side that cannot be used on this machine -> the reason and how to mend it.
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
        """The sides that can be used on this machine."""
        return [side for side in self.compares_with if side not in self.lacks]


class Problem(NamedTuple):
    """The reason why a metric cannot score: in a few words, and in a sentence that says how to mend
    it."""

    summary: str
    remedy: str


def list_presets(metric: MetricEntry) -> Iterator[PresetListing]:
    """Lists a metric with each of its presets, or alone if it has none.

    Loads no models. Metrics without models are made, to see whether a dependency is missing; but not
    if they need a language pair.
    """
    if metric.name in USER_SUPPLIED_METRICS:
        placeholder = str(metric.usual_preset())
        yield PresetListing(metric.name, placeholder, [*metric.sides], ["any"], "yes")
        return
    presets = _presets(metric)
    loads_models = metric.scorer_class().loads_models()
    if not presets and not loads_models:
        offline, lacks = _availability(metric, None, metric.sides)
        yield PresetListing(metric.name, "", [*metric.sides], ["any"], offline, lacks=lacks)
    for preset in presets:
        sides = metric.side_choice.sides_of_preset(preset.settings)
        languages = _languages(preset)
        if not languages and not loads_models:
            languages = ["any"]
        offline, lacks = _availability(metric, preset, sides)
        needs, megabytes, licences = _model_details(preset)
        yield PresetListing(
            metric.name,
            preset.name,
            sides,
            languages,
            offline,
            needs=needs,
            megabytes=megabytes,
            licences=licences,
            bundled=_is_bundled(preset),
            lacks=lacks,
        )


def _presets(metric: MetricEntry) -> list[Preset]:
    if metric.name != "fluency":
        return [load_preset(metric.name, name) for name in preset_names(metric.name)]
    # Fluency has no presets of its own: it uses the language models of XMoverScore's presets.
    presets = []
    for name in preset_names("xmoverscore"):
        preset = load_preset("xmoverscore", name)
        language_models = preset.settings.get("language_models", {})
        settings = {"language_models": language_models, "languages": [*language_models]}
        presets.append(dataclasses.replace(preset, settings=settings))
    return presets


def _availability(
    metric: MetricEntry, preset: Preset | None, sides: Sequence[str]
) -> tuple[str, dict[str, str]]:
    """Returns `PresetListing.offline` and `PresetListing.lacks`."""
    problems: dict[str, Problem] = {}
    for side in sides:
        problem = find_problem(metric, preset, side)
        if problem is not None:
            problems[side] = problem
    usable_sides = [side for side in sides if side not in problems]
    reasons = "; ".join(dict.fromkeys(problem.summary for problem in problems.values()))
    if not problems:
        offline = "yes"
    elif usable_sides:
        offline = f"{' and '.join(usable_sides)} only: {reasons}"
    else:
        offline = f"no: {reasons}"
    return offline, {side: problem.remedy for side, problem in problems.items()}


def find_problem(metric: MetricEntry, preset: Preset | None, side: str) -> Problem | None:
    """Finds out why a metric cannot score on this machine without a network. Returns None if it can.

    Loads no model, so a damaged file is not noticed.

    Args:
        metric: a metric.
        preset: its preset; None if it has none.
        side: the side to compare translations with.
    """
    if preset is None or not metric.scorer_class().loads_models():
        return _problem_in_making(metric, preset)
    models = [*named_models(_tables_of_side(side, preset.settings))]
    if not models:
        return Problem(
            "names no model; train one",
            f"preset {preset.name} names no model: train one (mtmetrics train), or pass one",
        )
    for key, name in models:
        needed = name
        try:
            folder = _local_folder_of(preset, key, name)
            encoder = None if folder is None else encoder_of_regressor(folder)
            if encoder is not None:
                needed = encoder
                model_folder(encoder, local_files_only=True)
        except ArtifactError as error:
            return Problem(f"lacks {needed}", str(error))
    return None


def _tables_of_side(side: str, tables: Table) -> Table:
    """Returns the tables of a preset without those that only other sides use."""
    tables_of_other_sides = set()
    for other_side, setting in SETTING_OF_SIDE.items():
        if other_side != side:
            # The second one holds a table for each target language.
            tables_of_other_sides |= {setting, f"{setting}s"}
    kept = {name: value for name, value in tables.items() if name not in tables_of_other_sides}
    if "regressors" in kept:
        regressors = kept["regressors"]
        kept["regressors"] = {side: regressors[side]} if side in regressors else {}
    return kept


def _problem_in_making(metric: MetricEntry, preset: Preset | None) -> Problem | None:
    """Makes a scorer. Returns the error as a problem, None if there is none."""
    # Only the user knows the language pair, and without a pair making the scorer would fail.
    if metric.scorer_class().needs_pair:
        return None
    # A plug-in is code of others: it may raise any exception.
    expected = MTMetricsError if metric.plugin_path is None else Exception
    try:
        metric.scorer_class().load(None if preset is None else preset.name)
    except expected as error:
        return Problem(str(error), str(error))
    return None


def _local_folder_of(preset: Preset, key: str, name: str) -> Path | None:
    """Returns the folder of a model that a preset names; None for maps, which are only checked.

    Args:
        preset: the preset.
        key: the key of the preset that names the model, or ``artifact``, which names maps.
        name: name of the model or of the maps.

    Raises:
        ArtifactError: the model is not on this machine, or the maps are not.
    """
    path = preset.path(name)
    if key != "artifact":
        return model_folder(path, local_files_only=True)
    if not is_local(path):
        raise ArtifactError(
            f"the maps {name!r} are not on this machine; they are fetched when they are first used"
        )
    return None


def _is_bundled(preset: Preset) -> bool:
    """Whether a preset names models or maps, and all of them ship with the package."""
    shipped = {name for name, entry in catalog().items() if entry.bundled}
    models = [name for _, name in named_models(preset.settings)]
    # `path` returns another name if the model lies in the folder of the preset.
    return bool(models) and all(name in shipped or preset.path(name) != name for name in models)


def _languages(preset: Preset) -> list[str]:
    """Returns the directions that a preset is made for, or has maps or language models for. If there
    are none, returns its languages, as far as it names any."""
    settings = preset.settings
    if "lang_pair" in settings:
        return ["-".join(language_pair(settings["lang_pair"]))]
    languages = [*map(language_of, settings.get("languages", []))]
    if preset.metric == "uscore" and languages:
        # UScore needs a language model of the target, unless the user leaves it out by the option
        # `without`.
        return [
            f"{source}-{target}"
            for target in map(language_of, settings["language_models"])
            for source in languages
            if source != target
        ] or languages
    maps = settings.get("maps", {})
    kind = maps.get("kind", "none")
    mapped = mapped_pairs(preset.path(maps.get("artifact", ".")), kind) if kind != "none" else []
    directions = dict.fromkeys("-".join(language_pair(pair)) for pair in mapped)
    return [*directions] or languages


def _model_details(preset: Preset) -> tuple[list[str], float | None, list[str]]:
    """Returns the names, the size in MB and the licences of the models and maps of a preset."""
    needs: dict[str, None] = {}
    folders: dict[str, Path] = {}
    for key, name in named_models(preset.settings):
        needs[name] = None
        with contextlib.suppress(ArtifactError):
            folder = _local_folder_of(preset, key, name)
            if folder is not None:
                folders[name] = folder
    for folder in list(folders.values()):
        encoder = encoder_of_regressor(folder)
        if encoder is None:
            continue
        encoder_folder = local_folder(encoder, "config.json")
        if encoder_folder is not None:
            needs[encoder] = None
            folders[encoder] = encoder_folder
    files = [
        file for folder in set(folders.values()) for file in folder.rglob("*") if file.is_file()
    ]
    megabytes = round(sum(file.stat().st_size for file in files) / 1e6, 1) if files else None
    licences = {licence: None for folder in folders.values() if (licence := licence_of(folder))}
    if not licences and preset.metric == "comet":
        # The description of a COMET preset ends in "; LICENCE."
        licences = {str(preset.settings["description"]).rpartition("; ")[2].removesuffix("."): None}
    return [*needs], megabytes, [*licences]


def encoder_of_regressor(folder: Path) -> str | None:
    """Returns the name of the encoder that a regressor records; None for any other model."""
    config = folder / "config.json"
    if not config.is_file():
        return None
    encoder = json.loads(config.read_text(encoding="utf-8")).get("encoder")
    return encoder if isinstance(encoder, str) else None


def named_models(tables: Table) -> Iterator[tuple[str, str]]:
    """Yields the models and maps that the tables of a preset need: the key (one of `MODEL_KEYS`),
    and the name. Maps of the kind ``none`` are not needed: an option may choose them."""
    if tables.get("kind") == "none":
        return
    for key, value in tables.items():
        if isinstance(value, dict):
            yield from named_models(value)
        elif key in MODEL_KEYS:
            yield key, value
