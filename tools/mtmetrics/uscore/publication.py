"""A production on the Hub: each of its models in a repository of its own, and the preset that names
them."""

import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mtmetrics.artifacts.adapters import ENCODER_BESIDE, SETTINGS, bind, is_adapter, read_adapter
from mtmetrics.artifacts.cards import check_model_card, licence_fields
from mtmetrics.artifacts.presets import preset_toml
from mtmetrics.artifacts.publish import Plan, Publication, published_files, push, refuse_code
from mtmetrics.io.atomic import write_atomic
from mtmetrics.matching.remapping import Remapping
from mtmetrics.matching.remapping_files import map_file_name

_CARD, _PRESET = "README.md", "preset.toml"
_PARTS = {
    "encoder": "encoder of words",
    "maps": "map of the source side",
    "sentences": "sentence encoder",
    "translation": "translation model, for pseudo-references",
    "language_model": "language model, for fluency",
}


def publish_production(folder: Path, namespace: str) -> Iterator[Plan]:
    """Pushes the models in the folder of a preset as ``NAMESPACE/NAME-sentences`` and the like, each
    tagged, and at last the preset ``NAMESPACE/NAME``, which names them at these tags. Yields each
    push.

    Raises:
        ArtifactError: the card is not complete, a file may run code, or the Hub refuses.
    """
    data = check_model_card(folder)
    preset_repository = f"{namespace}/{folder.name}"
    files = published_files(folder)
    refuse_code(folder, files)
    parts = {}
    for part in _PARTS:
        if (folder / part).is_dir():
            parts[part] = f"{preset_repository}-{part.replace('_', '-')}"
    tags: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="mtmetrics-uscore-") as scratch:
        for part, repository in parts.items():
            card = Path(scratch, f"{part}.md")
            part_data = data | licence_fields(folder / part)
            write_atomic(card, _part_card(part_data, part, repository, preset_repository))
            part_files: dict[str, Path] = {}
            for path, file in files.items():
                if path.startswith(f"{part}/"):
                    part_files[path.removeprefix(f"{part}/")] = file
            if is_adapter(folder / part):
                part_files |= _bound(folder / part, Path(scratch, part), parts, tags)
            plan = push(Publication(repository, "model", part_files | {_CARD: card}))
            tags[part] = plan.tag
            yield plan
        preset, card = Path(scratch, _PRESET), Path(scratch, _CARD)
        settings = tomllib.loads((folder / _PRESET).read_text(encoding="utf-8"))
        if "maps" in parts:
            settings["maps"]["fingerprint"] = _map_fingerprint(folder, settings)
        write_atomic(preset, _preset(settings, parts, tags))
        table = "| part | repository |\n|---|---|\n"
        for part, repository in parts.items():
            address = f"https://huggingface.co/{repository}/tree/{tags[part]}"
            table += f"| {_PARTS[part]} | [{repository}]({address}) |\n"
        text = (folder / _CARD).read_text(encoding="utf-8")
        text = text.replace("--preset DIR", f"--preset {preset_repository}")
        text = text.replace("`DIR` is this folder.\n", f"The models lie beside it:\n\n{table}")
        write_atomic(card, text)
        other_files = {
            path: file for path, file in files.items() if path.split("/")[0] not in parts
        }
        preset_files = other_files | {_PRESET: preset, _CARD: card}
        yield push(Publication(preset_repository, "model", preset_files))


def _bound(
    adapters: Path, made: Path, parts: Mapping[str, str], tags: Mapping[str, str]
) -> dict[str, Path]:
    """The settings of adapters that find their encoder where it was pushed; none where they find it
    already."""
    if read_adapter(adapters).base != ENCODER_BESIDE:
        return {}
    made.mkdir()
    shutil.copyfile(adapters / SETTINGS, made / SETTINGS)
    bind(made, parts["encoder"], tags["encoder"])
    return {SETTINGS: made / SETTINGS}


def _map_fingerprint(folder: Path, settings: Mapping[str, Any]) -> str:
    """The fingerprint of the one map of a preset."""
    name = map_file_name(settings["lang_pair"], settings["maps"]["kind"])
    return Remapping.load(folder / settings["maps"]["artifact"] / name).fingerprint


def _preset(settings: dict[str, Any], parts: Mapping[str, str], tags: Mapping[str, str]) -> str:
    """The preset with repositories in place of its folders."""
    head, tables = {}, {}
    for key, value in settings.items():
        if not isinstance(value, dict):
            head[key] = value
        elif key == "language_models":
            tables |= {f"{key}.{language}": table for language, table in value.items()}
        else:
            tables[key] = value
    for key in tables:
        for field in ("model", "artifact"):
            part = tables[key].get(field)
            if part in parts:
                tables[key] = tables[key] | {field: parts[part], "revision": tags[part]}
    return preset_toml(head, tables)


def _part_card(data: Mapping[str, Any], part: str, repository: str, preset: str) -> str:
    import yaml

    name = repository.partition("/")[2]
    index = [{**model, "name": name} for model in data["model-index"]]
    head = yaml.safe_dump({**data, "model-index": index}, sort_keys=False, allow_unicode=True)
    return (
        f"---\n{head}---\n\n# {name}\n\nThe {_PARTS[part]} of the preset "
        f"[{preset}](https://huggingface.co/{preset}) of the metric `uscore` of `mtmetrics`, made "
        "by `mtmetrics train uscore`. Settings, text, what was measured and limits stand in the card "
        "of the preset, which loads this repository; the correlation above is that of the "
        "metric.\n"
    )
