"""Checks of cards: README.md files that begin with YAML metadata for the Hub.

`check_model_card` and `check_space_card` read the metadata and refuse a card that lacks some. The
functions that they call yield one message for each problem.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mtmetrics.artifacts.catalog import REPOSITORY
from mtmetrics.errors import ArtifactError

Metadata = dict[str, Any]
_LANGUAGE = re.compile(r"[a-z]{2,3}|multilingual")


def check_model_card(folder: Path) -> Metadata:
    """Returns the metadata of an artifact's card.

    Raises:
        ArtifactError: something is missing or malformed; the message names all of it.
    """
    return _checked(folder / "README.md", _model_problems)


def check_space_card(folder: Path) -> Metadata:
    """Returns the metadata of a metric's card, which configures its Space; see
    `check_model_card`."""
    return _checked(folder / "README.md", _space_problems)


def licence_of(folder: Path) -> str | None:
    """Returns the licence of a model by its card; None where the card states none.

    For a licence that the Hub does not list, it is the name that the card gives it.
    """
    fields = licence_fields(folder)
    return fields.get("license_name") or fields.get("license")


def licence_fields(folder: Path) -> dict[str, str]:
    """Returns the fields of a model's card that state its licence; empty where there are none."""
    card = folder / "README.md"
    head = card.read_text(encoding="utf-8").partition("\n---")[0] if card.is_file() else ""
    return dict(re.findall(r"^(license|license_name|license_link): *(\S+)", head, re.MULTILINE))


def _checked(path: Path, problems: Callable[[Metadata], Iterator[str]]) -> Metadata:
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
    messages = "; ".join(problems(data))
    if messages:
        raise ArtifactError(f"{path}: the metadata at its head cannot be published: {messages}")
    return data


def _model_problems(data: Metadata) -> Iterator[str]:
    yield from _text(data, "license", "library_name")
    if data.get("license") == "other":
        yield from _text(data, "license_name", "license_link")
    yield from _texts(data, "language", valid=_LANGUAGE.fullmatch)
    yield from _texts(data, "tags")
    yield from _texts(data, "metrics", empty=True)
    yield from _texts(data, "base_model", "datasets", valid=REPOSITORY.fullmatch, empty=True)
    is_measured = "model-index" in data or bool(_listed(data.get("metrics")))
    if is_measured:
        yield from _index_problems(data.get("model-index"))


def _space_problems(data: Metadata) -> Iterator[str]:
    yield from _text(data, "title", "emoji", "colorFrom", "colorTo")
    yield from _text(data, "sdk", "sdk_version", "python_version", "app_file", "license")
    yield from _texts(data, "tags")
    if data.get("sdk") not in (None, "gradio"):
        yield f"sdk is {data['sdk']!r}, not 'gradio'"
    absent = {"evaluate", "metric"} - set(_listed(data.get("tags")))
    if absent:
        yield f"tags lack {' and '.join(sorted(absent))}"


def _index_problems(index: object) -> Iterator[str]:
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
        for metric in map(_table, metrics):
            if "type" not in metric or "value" not in metric:
                yield f"{place} has a metric without type and value"
            elif not _is_correlation(metric["value"]):
                value = metric["value"]
                yield f"{place} has the value {value!r}; a correlation in [-1, 1] is needed"


def _is_correlation(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -1 <= value <= 1


def _text(data: Metadata, *keys: str) -> Iterator[str]:
    """Yields the problems of keys that must hold a text."""
    for key in keys:
        value = data.get(key)
        if value is None:
            yield f"{key} is missing"
        elif not isinstance(value, str) or not value.strip():
            yield f"{key} is {value!r}, not a text (numbers need quotes)"


def _texts(
    data: Metadata, *keys: str, valid: Callable[[str], object] = bool, empty: bool = False
) -> Iterator[str]:
    """Yields the problems of keys that must hold a text or a list of texts.

    Args:
        data: the metadata.
        keys: of it.
        valid: returns a true value for a text that is allowed.
        empty: whether an empty list is allowed.
    """
    for key in keys:
        if data.get(key) is None:
            yield f"{key} is missing{' ([] where there is none)' if empty else ''}"
            continue
        values = _listed(data[key])
        if not values and not empty:
            yield f"{key} is empty"
        # Not all are texts: YAML reads the language `no` as a truth value.
        wrong = [value for value in values if not isinstance(value, str) or not valid(value)]
        if wrong:
            yield f"{key} holds {', '.join(map(repr, wrong))}"


def _listed(value: object) -> list[Any]:
    """Returns a list as it is, another value as a list of itself, and nothing as an empty list."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _table(value: object) -> Metadata:
    """Returns a table as it is, and another value as an empty table."""
    return value if isinstance(value, dict) else {}
