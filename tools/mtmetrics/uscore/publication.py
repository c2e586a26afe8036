"""A production on the Hub: each of its models in a repository of its own, and the preset that names
them."""

import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

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
    """Pushes what lies in the folder of a preset as ``NAMESPACE/NAME-sentences`` and the like, each
    tagged, and at last the preset ``NAMESPACE/NAME``, which names models at these tags; yields what
    was done.

    Raises:
        ArtifactError: the card is not complete, a file may run code, or the Hub refuses.
    """
    data = check_model_card(folder)
    whole = f"{namespace}/{folder.name}"
    files = published_files(folder)
    refuse_code(folder, files)
    parts = {
        part: f"{whole}-{part.replace('_', '-')}" for part in _PARTS if (folder / part).is_dir()
    }
    tags: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="mtmetrics-uscore-") as scratch:
        for part, repository in parts.items():
            card = Path(scratch, f"{part}.md")
            own_licence = licence_fields(folder / part)
            write_atomic(card, _part_card(data | own_licence, part, repository, whole))
            own = {
                path.removeprefix(f"{part}/"): file
                for path, file in files.items()
                if path.startswith(f"{part}/")
            }
            done = push(Publication(repository, "model", own | {_CARD: card}))
            tags[part] = done.tag
            yield done
        preset, card = Path(scratch, _PRESET), Path(scratch, _CARD)
        settings = tomllib.loads((folder / _PRESET).read_text(encoding="utf-8"))
        if "maps" in parts:
            settings["maps"]["fingerprint"] = _map_fingerprint(folder, settings)
        write_atomic(preset, _preset(settings, parts, tags))
        rows = "".join(
            (
                f"| {_PARTS[part]} | "
                f"[{repository}](https://huggingface.co/{repository}/tree/{tags[part]}) |\n"
            )
            for part, repository in parts.items()
        )
        text = (
            (folder / _CARD)
            .read_text(encoding="utf-8")
            .replace("--preset DIR", f"--preset {whole}")
        )
        listed = f"The models lie beside it:\n\n| part | repository |\n|---|---|\n{rows}"
        text = text.replace("`DIR` is this folder.\n", listed)
        write_atomic(card, text)
        own = {path: file for path, file in files.items() if path.split("/")[0] not in parts}
        yield push(Publication(whole, "model", own | {_PRESET: preset, _CARD: card}))


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


def _part_card(data: Mapping[str, Any], part: str, repository: str, whole: str) -> str:
    import yaml

    name = repository.partition("/")[2]
    index = [{**model, "name": name} for model in data["model-index"]]
    head = yaml.safe_dump({**data, "model-index": index}, sort_keys=False, allow_unicode=True)
    return (
        f"---\n{head}---\n\n# {name}\n\nThe {_PARTS[part]} of the preset "
        f"[{whole}](https://huggingface.co/{whole}) of the metric `uscore` of `mtmetrics`, made "
        "by `mtmetrics train uscore`. Settings, text, what was measured and limits stand in the card "
        "of the preset, which loads this repository; the correlation above is that of the "
        "metric.\n"
    )
