"""A production on the Hub: each of its models in a repository of its own, and the preset that names them."""

import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mtmetrics.artifacts.cards import check_model_card
from mtmetrics.artifacts.presets import preset_toml
from mtmetrics.artifacts.publish import Plan, Publication, published_files, push, refuse_code
from mtmetrics.io.atomic import write_atomic

_CARD, _PRESET = "README.md", "preset.toml"
_PARTS = {
    "encoder": "encoder of words",
    "maps": "map of the source side",
    "sentences": "sentence encoder",
    "translation": "translation model, for pseudo-references",
    "language_model": "language model, for fluency",
}


def publish_production(folder: Path, namespace: str) -> Iterator[Plan]:
    """Pushes what lies in the folder of a preset as ``NAMESPACE/NAME-sentences`` and the like, each tagged, and at last
    the preset ``NAMESPACE/NAME``, which names models at these tags; yields what was done.

    Raises:
        ArtifactError: the card is not complete, a file may run code, or the Hub refuses.
    """
    data = check_model_card(folder)
    whole = f"{namespace}/{folder.name}"
    files = published_files(folder)
    refuse_code(folder, files)
    parts = {part: f"{whole}-{part.replace('_', '-')}" for part in _PARTS if (folder / part).is_dir()}
    tags: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="mtmetrics-uscore-") as scratch:
        for part, repository in parts.items():
            card = Path(scratch, f"{part}.md")
            write_atomic(card, _part_card(data, part, repository, whole))
            own = {path.removeprefix(f"{part}/"): file for path, file in files.items() if path.startswith(f"{part}/")}
            done = push(Publication(repository, "model", own | {_CARD: card}))
            tags[part] = done.tag
            yield done
        preset, card = Path(scratch, _PRESET), Path(scratch, _CARD)
        write_atomic(preset, _preset(tomllib.loads((folder / _PRESET).read_text(encoding="utf-8")), parts, tags))
        rows = "".join(
            f"| {_PARTS[part]} | [{repository}](https://huggingface.co/{repository}/tree/{tags[part]}) |\n"
            for part, repository in parts.items()
        )
        text = (folder / _CARD).read_text(encoding="utf-8").replace("--preset DIR", f"--preset {whole}")
        listed = f"The models lie beside it:\n\n| part | repository |\n|---|---|\n{rows}"
        text = text.replace("`DIR` is this folder.\n", listed)
        write_atomic(card, text)
        own = {path: file for path, file in files.items() if path.split("/")[0] not in parts}
        yield push(Publication(whole, "model", own | {_PRESET: preset, _CARD: card}))


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
                pinned = {"revision": tags[part]} if field == "model" else {}
                tables[key] = tables[key] | {field: parts[part]} | pinned
    return preset_toml(head, tables)


def _part_card(data: Mapping[str, Any], part: str, repository: str, whole: str) -> str:
    import yaml

    name = repository.partition("/")[2]
    index = [{**model, "name": name} for model in data["model-index"]]
    head = yaml.safe_dump({**data, "model-index": index}, sort_keys=False, allow_unicode=True)
    return (
        f"---\n{head}---\n\n# {name}\n\nThe {_PARTS[part]} of the preset [{whole}](https://huggingface.co/{whole}) of "
        "the metric `uscore` of `mtmetrics`, made by `mtmetrics uscore`. Settings, text, what was measured and limits "
        "stand in the card of the preset, which loads this repository; the correlation above is that of the metric.\n"
    )
