"""The metadata of cards: what is missing is named, all at once."""

from pathlib import Path

import pytest
import yaml

from mtmetrics.artifacts.cards import check_model_card, check_space_card
from mtmetrics.artifacts.catalog import catalog
from mtmetrics.errors import ArtifactError
from mtmetrics.layout import COMPARE, bundled_artifacts, metric_names, metric_scripts

RESULT = {
    "task": {"type": "t"},
    "dataset": {"type": "d", "name": "D"},
    "metrics": [{"type": "pearsonr", "value": 0.5}],
}
WHOLE = {
    "license": "mit",
    "language": ["en", "de"],
    "library_name": "mtmetrics",
    "tags": ["mtmetrics"],
    "base_model": [],
    "datasets": ["facebook/flores"],
    "metrics": ["pearsonr"],
    "model-index": [{"name": "m", "results": [RESULT]}],
}


def results(*rows: object) -> dict:
    return {"model-index": [{"name": "m", "results": list(rows)}]}


def card(folder: Path, data: object) -> Path:
    (folder / "README.md").write_text(
        f"---\n{yaml.safe_dump(data)}---\n\n# Title\n\n---\nno: [metadata\n---\n"
    )
    return folder


def test_all_cards_of_this_package_are_complete() -> None:
    for name, entry in catalog().items():
        if entry.bundled:
            data = check_model_card(bundled_artifacts() / name)
            assert [model["name"] for model in data.get("model-index", [])] == [name] * bool(
                data["metrics"]
            )
    for name in (*metric_names(), COMPARE):
        check_space_card(metric_scripts() / name)


def test_a_complete_card(tmp_path: Path) -> None:
    assert check_model_card(card(tmp_path, WHOLE)) == WHOLE
    terms = {"license": "other", "license_name": "mixed", "license_link": "LICENSE.md"}
    other = {**terms, "language": "multilingual", "base_model": "a/b", "datasets": []}
    check_model_card(card(tmp_path, WHOLE | other))


def test_a_card_of_what_was_not_measured_claims_nothing(tmp_path: Path) -> None:
    silent = {name: value for name, value in WHOLE.items() if name != "model-index"} | {
        "metrics": []
    }
    assert check_model_card(card(tmp_path, silent)) == silent
    example = check_model_card(bundled_artifacts() / "xmoverscore-maps-example")
    assert (example["metrics"], "model-index" in example) == ([], False)


@pytest.mark.parametrize("key", WHOLE)
def test_every_key_is_needed(tmp_path: Path, key: str) -> None:
    with pytest.raises(ArtifactError, match=f"README.md: the metadata .*: {key} is missing"):
        check_model_card(
            card(tmp_path, {name: value for name, value in WHOLE.items() if name != key})
        )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"license": "other"}, "license_name is missing; license_link is missing"),
        ({"datasets": ["tatoeba"]}, "datasets holds 'tatoeba'"),
        ({"license": 1.0}, "license is 1.0, not a text"),
        ({"language": [False]}, "language holds False"),
        ({"tags": []}, "tags is empty"),
        ({"base_model": "plain"}, "base_model holds 'plain'"),
        (results(), "model-index is missing or names no results"),
        (results("text"), "result 1 is no table"),
        (results(RESULT, RESULT | {"metrics": []}), "result 2 has no metrics"),
        (results(RESULT | {"dataset": {"type": "d"}}), "result 1 has no name of its dataset"),
        (results(RESULT | {"task": "t"}), "result 1 has no task with a type"),
        (
            results(RESULT | {"metrics": [{"value": 0.5}]}),
            "result 1 has a metric without type and value",
        ),
        (
            results(RESULT | {"metrics": [{"type": "r", "value": 50.0}]}),
            r"the value 50.0; a correlation in \[-1, 1\]",
        ),
    ],
)
def test_what_is_malformed(tmp_path: Path, change: dict, message: str) -> None:
    with pytest.raises(ArtifactError, match=message):
        check_model_card(card(tmp_path, WHOLE | change))


def test_all_problems_at_once(tmp_path: Path) -> None:
    message = (
        "title is missing; .*python_version is missing; .*sdk is 'static', not 'gradio'; tags "
        "lack evaluate and "
    )
    with pytest.raises(ArtifactError, match=message + "metric"):
        check_space_card(card(tmp_path, {"sdk": "static", "tags": ["x"]}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# no metadata\n", "does not begin with metadata"),
        ("---\na: [\n---\n", "no valid YAML"),
        ("---\n- a\n---\n", "no table of keys"),
    ],
)
def test_no_metadata(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "README.md").write_text(text)
    with pytest.raises(ArtifactError, match=message):
        check_model_card(tmp_path)
    (tmp_path / "README.md").unlink()
    with pytest.raises(ArtifactError, match="the card cannot be read"):
        check_model_card(tmp_path)
