"""A production on the Hub: each of its models in a repository of its own, and the preset that names
them."""

import json
import re
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mtmetrics.artifacts.adapters import ENCODER_BESIDE, SETTINGS, bind, is_adapter, read_adapter
from mtmetrics.artifacts.cards import check_model_card, licence_fields, licence_of
from mtmetrics.artifacts.catalog import REPOSITORY_NAME_PATTERN, catalog, find_problems
from mtmetrics.artifacts.hub import download
from mtmetrics.artifacts.models import model_fingerprint, model_folder
from mtmetrics.artifacts.places import HubSource, hub_snapshot, hub_source
from mtmetrics.artifacts.presets import preset_toml
from mtmetrics.artifacts.publish import Plan, Publication, published_files, push, refuse_code
from mtmetrics.errors import ArtifactError
from mtmetrics.io.atomic import write_atomic
from mtmetrics.matching.remapping import Remapping
from mtmetrics.matching.remapping_files import map_file_name

_CARD, _PRESET, _CONFIG = "README.md", "preset.toml", "config.json"
# Table of the preset -> what its model is for.
_ROLES = {
    "encoder": "encoder of words",
    "maps": "map of the source side",
    "sentences": "sentence encoder",
    "translation": "translation model, for pseudo-references",
    "language_models": "language model, for fluency",
}
_TRAINED = ("sentences", "translation")
_LICENCE = ("license", "license_name", "license_link")
# The Hub's name of a licence that nobody stated.
_UNKNOWN = {"license": "unknown"}


class _Part(NamedTuple):
    """A model or map in the folder of a production.

    Attributes:
        folder: its name in the folder of the production.
        role: of `_ROLES`.
        repository: the repository that it is pushed to.
        fingerprint: the hash that signatures show.
        licence: the fields of a card that state its licence.
        origin: the model that it was made from, perhaps with its fingerprint after a #; None for a
            copy of somebody's model.
    """

    folder: str
    role: str
    repository: str
    fingerprint: str
    licence: dict[str, str]
    origin: str | None


class _Listed(NamedTuple):
    """A row of the table of models in a published card."""

    role: str
    repository: str
    revision: str
    fingerprint: str
    licence: str


def publish_production(folder: Path, namespace: str) -> Iterator[Plan]:
    """Pushes the models in the folder of a preset as ``NAMESPACE/NAME-sentences`` and the like, each
    tagged, and at last the preset ``NAMESPACE/NAME``, which names them at these tags. Yields each
    push.

    The card of the preset lists all models with revision, hash and licence, also those that lie
    elsewhere. A model of the Hub is pinned to the commit that was used.

    Raises:
        ArtifactError: the card is not complete, a file may run code, a model cannot be had by
            others, or the Hub refuses.
    """
    data = check_model_card(folder)
    preset_repository = f"{namespace}/{folder.name}"
    files = published_files(folder)
    refuse_code(folder, files)
    head, tables = _read_preset(folder)
    parts = _parts(folder, head["lang_pair"], tables, preset_repository, data)
    listed: dict[str, _Listed] = {}
    # Before anything is pushed: these may be refused.
    for key, table in tables.items():
        if "model" in table and key not in parts:
            listed[key] = _listed_elsewhere(key, table)
            if table["model"] not in catalog():
                tables[key] = table | {"revision": listed[key].revision}
    with tempfile.TemporaryDirectory(prefix="mtmetrics-uscore-") as scratch:
        for key, part in parts.items():
            card = Path(scratch, f"{part.folder}.md")
            write_atomic(card, _part_card(folder, part, data, preset_repository))
            part_files: dict[str, Path] = {}
            for path, file in files.items():
                if path.startswith(f"{part.folder}/"):
                    part_files[path.removeprefix(f"{part.folder}/")] = file
            if is_adapter(folder / part.folder):
                part_files |= _bound(
                    folder / part.folder, Path(scratch, part.folder), tables["encoder"]
                )
            plan = push(Publication(part.repository, "model", part_files | {_CARD: card}))
            licence = part.licence.get("license_name") or part.licence["license"]
            listed[key] = _Listed(part.role, part.repository, plan.tag, part.fingerprint, licence)
            tables[key] = _published_table(tables[key], part, plan.tag)
            yield plan
        preset, card = Path(scratch, _PRESET), Path(scratch, _CARD)
        write_atomic(preset, preset_toml(head, tables))
        rows = [listed[key] for key in tables if key in listed]
        write_atomic(card, _preset_card(folder, preset_repository, rows))
        folders = {part.folder for part in parts.values()}
        other_files = {
            path: file for path, file in files.items() if path.split("/")[0] not in folders
        }
        preset_files = other_files | {_PRESET: preset, _CARD: card}
        yield push(Publication(preset_repository, "model", preset_files))


def _bound(adapters: Path, scratch: Path, encoder: Mapping[str, Any]) -> dict[str, Path]:
    """Writes the settings of adapters that find their encoder where it was pushed; returns nothing
    where they find it already.

    Args:
        adapters: the folder of the adapters.
        scratch: the folder to write to.
        encoder: the table of the encoder in the published preset.
    """
    if read_adapter(adapters).base != ENCODER_BESIDE:
        return {}
    scratch.mkdir()
    shutil.copyfile(adapters / SETTINGS, scratch / SETTINGS)
    bind(scratch, encoder["model"], encoder["revision"])
    return {SETTINGS: scratch / SETTINGS}


def _read_preset(folder: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The keys of a preset that stand in no table, and its tables; those of language models as
    ``language_models.LANGUAGE``."""
    settings = tomllib.loads((folder / _PRESET).read_text(encoding="utf-8"))
    head: dict[str, Any] = {}
    tables: dict[str, dict[str, Any]] = {}
    for key, value in settings.items():
        if not isinstance(value, dict):
            head[key] = value
        elif key == "language_models":
            tables |= {f"{key}.{language}": table for language, table in value.items()}
        else:
            tables[key] = value
    return head, tables


def _parts(
    folder: Path,
    lang_pair: str,
    tables: Mapping[str, Mapping[str, Any]],
    preset_repository: str,
    data: Mapping[str, Any],
) -> dict[str, _Part]:
    """The models and maps in the folder of a production, by their tables in the preset."""
    start = _read_config(folder)["start"]
    own_licence = {field: data[field] for field in _LICENCE if field in data}
    parts: dict[str, _Part] = {}
    for key, table in tables.items():
        name = table.get("model") or table.get("artifact")
        if name is None or not (folder / name).is_dir():
            continue
        origin = None
        if key == "maps":
            file = folder / name / map_file_name(lang_pair, table["kind"])
            fingerprint = Remapping.load(file).fingerprint
            is_copied = "encoder" in parts
            origin = parts["encoder"].repository if is_copied else tables["encoder"]["model"]
        else:
            fingerprint = model_fingerprint(folder / name)
            if key in _TRAINED:
                origin = start.get(key)
        parts[key] = _Part(
            folder=name,
            role=_role(key),
            repository=f"{preset_repository}-{name.replace('_', '-')}",
            fingerprint=fingerprint,
            # Who makes a production cannot license the models of others.
            licence=own_licence if origin else licence_fields(folder / name) or _UNKNOWN,
            origin=origin,
        )
    return parts


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / _CONFIG
    if not path.is_file():
        raise ArtifactError(f"{folder}: no {_CONFIG}, so it is no production of UScore")
    return json.loads(path.read_text(encoding="utf-8"))


def _role(key: str) -> str:
    return _ROLES[key.partition(".")[0]]


def _listed_elsewhere(key: str, table: Mapping[str, Any]) -> _Listed:
    """The row of a model that is not part of the production; an `ArtifactError` where others could
    not load it."""
    name, revision = str(table["model"]), table.get("revision")
    folder = model_folder(name, revision=revision)
    fingerprint = model_fingerprint(folder)
    if snapshot := hub_snapshot(folder):
        repository, commit = snapshot
        # The card is none of the files that a model is loaded from.
        card_folder = download(HubSource(repository, commit, {}), [_CARD])
        is_pinned = name in catalog() and revision is None
        revision = hub_source(name).revision if is_pinned else commit
    else:
        repository, revision = _catalog_source(key, name, folder)
        card_folder = folder
    licence = licence_of(card_folder) or _UNKNOWN["license"]
    return _Listed(_role(key), repository, str(revision), fingerprint, licence)


def _catalog_source(key: str, name: str, folder: Path) -> tuple[str, str | None]:
    """Repository and revision of a model that lies on this machine, if it is the catalog's."""
    source = hub_source(name)
    if name not in catalog() or not REPOSITORY_NAME_PATTERN.fullmatch(source.repository):
        why = f"{name} is in {folder} alone, so nobody else could load it"
        mend = "begin the production with its folder, which is then copied"
        raise ArtifactError(f"[{key}]: {why}; {mend}")
    problems = list(find_problems(name, folder))
    if problems:
        mend = f"name {folder} in the preset that the production begins with, so that it is copied"
        raise ArtifactError(f"[{key}]: {name} is not the catalog's ({problems[0]}); {mend}")
    return source.repository, source.revision


def _published_table(table: Mapping[str, Any], part: _Part, tag: str) -> dict[str, Any]:
    """A table of the preset with a repository in place of a folder."""
    if "artifact" in table:
        fingerprint = {"fingerprint": part.fingerprint}
        return {**table, "artifact": part.repository, "revision": tag, **fingerprint}
    return {**table, "model": part.repository, "revision": tag}


def _preset_card(folder: Path, repository: str, rows: Sequence[_Listed]) -> str:
    """The card of a production with the repository in place of its folder, and its models."""
    text = (folder / _CARD).read_text(encoding="utf-8")
    text = text.replace("--preset DIR", f"--preset {repository}")
    text = text.replace(
        "`DIR` is this folder.\n", "Its models are listed at the end of this card.\n"
    )
    table = "| part | repository | revision | hash | licence |\n|---|---|---|---|---|\n"
    for row in rows:
        address = f"https://huggingface.co/{row.repository}/tree/{row.revision}"
        cells = [row.role, f"[{row.repository}]({address})", f"`{row.revision}`"]
        cells += [f"`{row.fingerprint}`", row.licence]
        table += f"| {' | '.join(cells)} |\n"
    about = (
        "The hash is the one that the signature of a score shows. A licence is the one that the "
        "model's card states; `unknown` where it states none."
    )
    return f"{text.rstrip()}\n\n## Models\n\n{table}\n{about}\n"


def _part_card(folder: Path, part: _Part, data: Mapping[str, Any], preset: str) -> str:
    """The card of a part: nothing was measured of it alone, so it states no numbers."""
    import yaml

    name = part.repository.partition("/")[2]
    kept = {
        key: value
        for key, value in data.items()
        if key not in (*_LICENCE, "model-index", "metrics")
    }
    base = (part.origin or "").partition("#")[0]
    source = hub_source(base).repository
    kept["base_model"] = [source] if REPOSITORY_NAME_PATTERN.fullmatch(source) else []
    head = yaml.safe_dump(
        {**kept, **part.licence, "metrics": []}, sort_keys=False, allow_unicode=True
    )
    link = f"[{preset}](https://huggingface.co/{preset})"
    text = (
        f"---\n{head}---\n\n# {name}\n\nThe {part.role} of the preset {link} of the metric `uscore` "
        f"of `mtmetrics`. Its hash is `{part.fingerprint}`. Settings, text, what was measured and "
        "limits stand in the card of the preset, which loads this repository.\n"
    )
    if part.origin:
        return text + "\nIt was made by `mtmetrics`, as that card says.\n"
    text += "\nIt is an unchanged copy of a model that the production began with.\n"
    card = folder / part.folder / _CARD
    if card.is_file():
        body = re.sub(r"\A---\n.*?^---\n", "", card.read_text(encoding="utf-8"), flags=re.S | re.M)
        text += f"The card that it came with:\n\n{body.strip()}\n"
    return text
