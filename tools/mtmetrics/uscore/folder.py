"""Puts the folder of a UScore preset together: models, maps, preset.toml, config.json, and a card with what was
measured."""

import dataclasses
import functools
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mtmetrics.artifacts.files import write_atomic
from mtmetrics.artifacts.models import model_folder
from mtmetrics.errors import MTMetricsError
from mtmetrics.maps.files import map_file_name
from mtmetrics.training.run import versions
from mtmetrics.uscore.card import card, draw_rounds
from mtmetrics.uscore.job import Job
from mtmetrics.uscore.measures import measured
from mtmetrics.uscore.sentences import MODEL
from mtmetrics.uscore.stages import Finished
from mtmetrics.uscore.start import OPTIONAL, known_by

_PRESET = "preset.toml"
# What an earlier production with other settings may have left, and this one does not replace.
_OPTIONAL = ("encoder", "language_model", "sentences", "translation", "precision.png", "agreement-*.png")


def assembled(
    job: Job, maps: Finished, kind: str, sentences: Finished | None, translation: Finished | None
) -> Finished:
    """The stage that holds all of the preset but its card.

    Args:
        job: the production.
        maps: the stage that fitted the maps.
        kind: the map that the metric uses.
        sentences: the stage that trained the sentence encoder, or None.
        translation: the stage that trained the translation model, or None.
    """
    models = {
        name: stage for name, stage in {"sentences": sentences, "translation": translation}.items() if stage is not None
    }
    return job.stages.run(
        "preset",
        functools.partial(_assemble, job=job, maps=maps, kind=kind, models=models),
        settings={
            "kind": kind,
            "start": dataclasses.asdict(job.start),
            "copied": [known_by(model) for model in _own_models(job)],
            "config": dataclasses.asdict(job.config),
            "seed": job.seed,
            "text": job.files,
        },
        after=[*job.texts, maps, *models.values()],
    )


def described(job: Job, preset: Finished, measures: Mapping[str, Finished]) -> Finished:
    """The stage that writes the card, and draws what was measured."""

    def describe(folder: Path) -> dict[str, Any]:
        found = {name: measured(stage) for name, stage in measures.items()}
        plots = draw_rounds(folder, job.lang_pair, found)
        config = json.loads((preset.folder / "config.json").read_text(encoding="utf-8"))
        write_atomic(folder / "README.md", card(config, found, plots))
        return {}

    return job.stages.run("card", describe, after=[preset, *measures.values()])


def install(stages: Sequence[Finished], out: Path) -> None:
    """Copies the files of stages into the folder of the production; preset.toml comes last, so that it never stands for
    half a preset.

    Raises:
        MTMetricsError: the folder cannot be written.
    """
    paths = [path for stage in stages for path in sorted(stage.folder.iterdir())]
    try:
        (out / _PRESET).unlink(missing_ok=True)
        for pattern in _OPTIONAL:
            for old in out.glob(pattern):
                _remove(old)
        for path in sorted(paths, key=lambda path: path.name == _PRESET):
            target = out / path.name
            if path.is_dir():
                _remove(target)
                shutil.copytree(path, target)
            else:
                write_atomic(target, path.read_bytes())
    except OSError as error:
        raise MTMetricsError(f"cannot write {out}: {error.strerror or error}; finished stages are kept") from error


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _assemble(folder: Path, *, job: Job, maps: Finished, kind: str, models: Mapping[str, Finished]) -> dict[str, Any]:
    name = map_file_name(job.lang_pair, kind)
    (folder / "maps").mkdir()
    shutil.copyfile(maps.folder / name, folder / "maps" / name)
    for model, stage in models.items():
        shutil.copytree(stage.folder / MODEL, folder / model)
    tables: dict[str, dict[str, Any]] = {
        "encoder": _own(folder, "encoder", job.start.encoder),
        "maps": {"artifact": "maps", "kind": kind},
        **{model: {"model": model} for model in models},
    }
    if job.start.language_model:
        target = job.lang_pair.split("-")[1]
        tables[f"language_models.{target}"] = _own(folder, "language_model", job.start.language_model)
    without = [name for name in OPTIONAL if name not in models] + (
        [] if job.start.language_model else ["language_model"]
    )
    if without:
        tables["score"] = {"without": without}
    description = f"UScore for {job.lang_pair}, made by `mtmetrics uscore` from preset {job.start.preset}."
    head = {"metric": "uscore", "description": description, "lang_pair": job.lang_pair}
    write_atomic(folder / _PRESET, _toml(head, tables))
    write_atomic(
        folder / "config.json", json.dumps(_record(job, tables), indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    )
    return {}


def _own_models(job: Job) -> list[str]:
    """The models of the preset that lie in folders of the user's."""
    tables = (job.start.encoder, job.start.language_model)
    return [str(table["model"]) for table in tables if table and Path(table["model"]).is_dir()]


def _own(folder: Path, name: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """The table of a model; one that lies in a folder of the user's is copied, so that the preset can be moved."""
    model = str(table["model"])
    if not Path(model).is_dir():
        return dict(table)
    shutil.copytree(model_folder(model), folder / name)
    return {**table, "model": name}


def _record(job: Job, tables: Mapping[str, Any]) -> dict[str, Any]:
    """What config.json says: what the preset was made of, and how."""
    start = job.start
    return {
        "kind": "preset",
        "metric": "uscore",
        "lang_pair": job.lang_pair,
        "preset": tables,
        "start": {
            "preset": start.preset,
            "encoder": known_by(start.encoder["model"], start.encoder.get("revision")),
            "sentences": known_by(start.sentences),
            "translation": start.translation,
        },
        "text": job.files,
        "seed": job.seed,
        "config": dataclasses.asdict(job.config),
        "counts": job.stages.counts(),
        "versions": versions(),
    }


def _toml(head: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> str:
    """A TOML document of strings, numbers, truth values and lists of strings, which JSON writes alike."""
    blocks = ["".join(f"{name} = {_value(value)}\n" for name, value in head.items())]
    blocks += [
        f"[{title}]\n" + "".join(f"{name} = {_value(value)}\n" for name, value in table.items())
        for title, table in tables.items()
    ]
    return "\n".join(blocks)


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
