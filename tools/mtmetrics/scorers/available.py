"""What there is to score with: each metric and preset, what it compares with, its languages, whether it works here."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mtmetrics.artifacts.cards import licence_of
from mtmetrics.artifacts.catalog import local_folder
from mtmetrics.artifacts.models import model_folder
from mtmetrics.artifacts.presets import Preset, load_preset, preset_names
from mtmetrics.checks import language_of, language_pair
from mtmetrics.errors import ArtifactError, MTMetricsError
from mtmetrics.matching.remapping_files import is_local, mapped_pairs
from mtmetrics.scorers.metric import Metric


class Listed(NamedTuple):
    """A metric with one of its presets.

    Attributes:
        metric: its name.
        preset: the preset's name, empty where the metric has none.
        compares_with: ``source``, ``reference`` or both.
        languages: directions such as ``de-en``, or languages; ``any``, or none where the preset does not say.
        offline: ``yes``, or ``no:`` and what is missing on this machine.
        needs: the models and maps that the preset names, encoders of regressors included where these are here.
        megabytes: of those that are here, on disk; None where none is.
        licences: of them, as their cards say; of published checkpoints that are not here, as the preset says.
    """

    metric: str
    preset: str
    compares_with: list[str]
    languages: list[str]
    offline: str
    needs: Sequence[str] = ()
    megabytes: float | None = None
    licences: Sequence[str] = ()


def listed(metric: Metric) -> Iterator[Listed]:
    """A metric with each of its presets; loads nothing but what says that an extra is missing."""
    if metric.name in ("scores", "cmd"):  # of a file, or a command, that the user names
        yield Listed(metric.name, str(metric.usual_preset()), [*metric.sides], ["any"], "yes")
        return
    if metric.usual_preset() is None:
        offline = "yes"
        try:
            metric.made_by()()
        except MTMetricsError as error:
            offline = f"no: {error}"
        yield Listed(metric.name, "", [*metric.sides], ["any"], offline)
        return
    fluency = metric.name == "fluency"  # the language models of another metric's presets
    for name in preset_names("xmoverscore" if fluency else metric.name):
        bundle = load_preset("xmoverscore" if fluency else metric.name, name)
        settings = bundle.settings
        if fluency:
            settings = {"language_models": settings["language_models"], "languages": [*settings["language_models"]]}
        yield Listed(
            metric.name, name, metric.sides_of(settings), _languages(bundle, settings), *_here(bundle, settings)
        )


def _languages(bundle: Preset, settings: Mapping[str, Any]) -> list[str]:
    """The directions that have maps or language models or that a preset was made for, else its languages; none where it
    does not say."""
    if "lang_pair" in settings:
        return ["-".join(language_pair(settings["lang_pair"]))]
    maps = settings.get("maps", {})
    kind = maps.get("kind", "none")
    mapped = mapped_pairs(bundle.path(maps.get("artifact", ".")), kind) if kind != "none" else []
    pairs = list(dict.fromkeys("-".join(language_pair(pair)) for pair in mapped))
    known = [*map(language_of, settings.get("languages", []))]
    if bundle.metric == "uscore" and known:  # which needs a language model, unless it is left out by name
        pairs = [
            f"{source}-{target}"
            for target in map(language_of, settings["language_models"])
            for source in known
            if source != target
        ]
    return pairs or known


def _here(bundle: Preset, settings: Mapping[str, Any]) -> tuple[str, list[str], float | None, list[str]]:
    """The last fields of `Listed`."""
    named = dict.fromkeys(artifacts_of(settings))
    needs = dict.fromkeys(name for _, name in named)
    offline = "yes" if named else "no: names no model; train one"
    folders = {}
    for key, name in named:
        try:
            if key != "artifact":
                folders[name] = model_folder(bundle.path(name), local_files_only=True)
            elif not is_local(bundle.path(name)):
                raise ArtifactError(name)
        except ArtifactError:
            offline = f"no: lacks {name}" if offline == "yes" else offline
    for folder in list(folders.values()):
        config = folder / "config.json"
        encoder = json.loads(config.read_text(encoding="utf-8")).get("encoder") if config.is_file() else None
        if isinstance(encoder, str) and (found := local_folder(encoder, "config.json")):
            needs[encoder] = None
            folders[encoder] = found
    files = [file for folder in set(folders.values()) for file in folder.rglob("*") if file.is_file()]
    size = round(sum(file.stat().st_size for file in files) / 1e6, 1) if files else None
    licences = {licence: None for folder in folders.values() if (licence := licence_of(folder))}
    if not licences and bundle.metric == "comet":
        licences = {str(settings["description"]).rpartition("; ")[2].removesuffix("."): None}
    return offline, [*needs], size, [*licences]


def artifacts_of(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The models and maps that the tables of a preset name, with the key that names each."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from artifacts_of(value)
        elif key in ("model", "words", "sentences", "artifact"):
            yield key, value
