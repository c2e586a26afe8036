"""Cards: the YAML metadata at the head of a README.md, and whether it says what the Hub and a
reader need."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mtmetrics.artifacts.catalog import REPOSITORY
from mtmetrics.errors import ArtifactError

_LANGUAGE = re.compile(r"[a-z]{2,3}|multilingual")


def check_model_card(folder: Path) -> dict[str, Any]:
    """The metadata of an artifact's card; an ArtifactError names all that is missing or malformed
    in them."""
    return _checked(folder / "README.md", _model_problems)


def check_space_card(folder: Path) -> dict[str, Any]:
    """Returns the metadata of a metric's card, which configures its Space; errors as
    `check_model_card`."""
    return _checked(folder / "README.md", _space_problems)


def licence_of(folder: Path) -> str | None:
    """Returns the licence that the card of a model states; None where it states none. A licence that
    the Hub does not know is told by its name."""
    fields = licence_fields(folder)
    return fields.get("license_name") or fields.get("license")


def licence_fields(folder: Path) -> dict[str, str]:
    """The fields of a model's card that state its licence; empty where it has no card, or the card
    states none."""
    card = folder / "README.md"
    head = card.read_text(encoding="utf-8").partition("\n---")[0] if card.is_file() else ""
    return dict(re.findall(r"^(license|license_name|license_link): *(\S+)", head, re.MULTILINE))


def _checked(path: Path, problems: Callable[[dict[str, Any]], Iterator[str]]) -> dict[str, Any]:
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{path}: the card cannot be read ({error})") from error
    block = re.match(r"---\r?\n(.*?)^---\s*$", text, flags=re.DOTALL | re.MULTILINE)
    if block is None:
        raise ArtifactError(
            f"{path}: the card does not begin with metadata between two lines of ---"
        )
    try:
        data = yaml.safe_load(block[1])
    except yaml.YAMLError as error:
        raise ArtifactError(f"{path}: its metadata is no valid YAML ({error})") from error
    if not isinstance(data, dict):
        raise ArtifactError(f"{path}: its metadata is no table of keys and values")
    problems_found = list(problems(data))
    if problems_found:
        raise ArtifactError(
            f"{path}: the metadata at its head cannot be published: {'; '.join(problems_found)}"
        )
    return data


def _model_problems(data: dict[str, Any]) -> Iterator[str]:
    yield from _text(data, "license", "library_name")
    if data.get("license") == "other":
        yield from _text(data, "license_name", "license_link")
    yield from _texts(data, "language", valid=_LANGUAGE.fullmatch)
    yield from _texts(data, "tags")
    yield from _texts(data, "metrics", empty=True)
    yield from _texts(data, "base_model", "datasets", valid=REPOSITORY.fullmatch, empty=True)
    if "model-index" in data or _listed(
        data.get("metrics")
    ):  # else nothing was measured, and nothing is claimed
        yield from _index_problems(data.get("model-index"))


def _space_problems(data: dict[str, Any]) -> Iterator[str]:
    looks = ("title", "emoji", "colorFrom", "colorTo")
    yield from _text(data, *looks, "sdk", "sdk_version", "python_version", "app_file", "license")
    yield from _texts(data, "tags")
    if data.get("sdk") not in (None, "gradio"):
        yield f"sdk is {data['sdk']!r}, not 'gradio'"
    absent = {"evaluate", "metric"} - set(_listed(data.get("tags")))
    if absent:
        yield f"tags lack {' and '.join(sorted(absent))}"


def _index_problems(index: Any) -> Iterator[str]:
    models = [model for model in _listed(index) if isinstance(model, dict) and "name" in model]
    results = [result for model in models for result in _listed(model.get("results"))]
    if not results:
        yield "model-index is missing or names no results"
    for number, result in enumerate(results, 1):
        place = f"model-index result {number}"
        if not isinstance(result, dict):
            yield f"{place} is no table"
            continue
        for key in ("task", "dataset"):
            if "type" not in _table(result.get(key)):
                yield f"{place} has no {key} with a type"
        if "name" not in _table(result.get("dataset")):
            yield f"{place} has no name of its dataset"
        metrics = _listed(result.get("metrics"))
        if not metrics:
            yield f"{place} has no metrics"
        for metric in metrics:
            value = _table(metric).get("value")
            if not {"type", "value"} <= _table(metric).keys():
                yield f"{place} has a metric without type and value"
            elif (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not -1 <= value <= 1
            ):
                yield f"{place} has the value {value!r}; a correlation in [-1, 1] is needed"


def _text(data: dict[str, Any], *keys: str) -> Iterator[str]:
    for key in keys:
        value = data.get(key)
        if value is None:
            yield f"{key} is missing"
        elif not isinstance(value, str) or not value.strip():
            yield f"{key} is {value!r}, not a text (numbers need quotes)"


def _texts(
    data: dict[str, Any], *keys: str, valid: Callable[[str], Any] = bool, empty: bool = False
) -> Iterator[str]:
    for key in keys:
        if key not in data or data[key] is None:
            yield f"{key} is missing{' ([] where there is none)' if empty else ''}"
            continue
        values = _listed(data[key])
        if not values and not empty:
            yield f"{key} is empty"
        # YAML reads the language `no` as a truth value.
        wrong = [value for value in values if not isinstance(value, str) or not valid(value)]
        if wrong:
            yield f"{key} holds {', '.join(map(repr, wrong))}"


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
