"""``mtmetrics train labels``."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    """Three sources of two pairs with the outputs of three systems, two of which agree once."""
    words = ["the", "house", "is", "small", "and", "the", "dog", "sleeps"]
    rows = []
    for number in range(6):
        reference = " ".join(words[: 3 + number % 4])
        systems = {
            "a": reference,
            "b": " ".join(words[1 : 3 + number % 4]),
            "c": reference if number == 0 else "a cat",
        }
        rows.append(
            {
                "lp": ("de-en", "fi-en")[number % 2],
                "source": f"haus {number}",
                "reference": reference,
            }
        )
        rows[-1]["outputs"] = systems
    path = tmp_path / "outputs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(path: Path) -> list[dict]:
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt") as stream:
        return [json.loads(line) for line in stream]


def test_labels_are_standardised_scores_against_references(
    mtmetrics: Run, outputs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "labels.jsonl.gz"
    code, printed, _ = mtmetrics(
        "train", "labels", "--metric", "chrf", "--data", outputs, "--out", out
    )
    assert code == 0
    rows = read(out)
    assert len(rows) == 6 * 3 - 1
    assert {tuple(row) for row in rows} == {("lp", "source", "translation", "system", "human")}
    for pair in ("de-en", "fi-en"):
        human = np.array([row["human"] for row in rows if row["lp"] == pair])
        assert (human.mean(), human.std()) == pytest.approx((0, 1), abs=1e-5)
    best = max(rows, key=lambda row: row["human"])
    assert best["system"] == "a"
    made = json.loads((tmp_path / "labels.jsonl.gz.json").read_text())
    assert [text.split("|")[0] for text in made["teachers"]["chrf"]] == ["chrf", "chrf"]
    assert json.loads(printed)["translations"] == 17


def test_at_most_so_many_of_a_source_and_failures_with_low_labels(
    mtmetrics: Run, outputs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "labels.jsonl"
    options = ("--most", 2, "--failures", 40, "--keep", "both", "--seed", 3)
    assert (
        mtmetrics("train", "labels", "--metric", "chrf", "--data", outputs, "--out", out, *options)[
            0
        ]
        == 0
    )
    rows = read(out)
    real, failed = rows[:12], rows[12:]
    assert {row["system"] for row in real} <= {"a", "b", "c"}
    assert {row["system"] for row in failed} >= {"copy", "gibberish", "loop", "punctuation"}
    assert max(row["human"] for row in failed) == -2.0
    assert all(row["translation"] == row["source"] for row in failed if row["system"] == "copy")
    assert all(row["reference"] for row in rows)
    again = tmp_path / "again.jsonl"
    mtmetrics("train", "labels", "--metric", "chrf", "--data", outputs, "--out", again, *options)
    assert again.read_text() == out.read_text()


def test_worsened_copies_stand_beside_the_better_outputs(
    mtmetrics: Run, outputs: Path, tmp_path: Path
) -> None:
    out = tmp_path / "labels.jsonl"
    options = ("--metric", "chrf", "--worsened", 6, "--seed", 2)
    code, printed, _ = mtmetrics("train", "labels", "--data", outputs, "--out", out, *options)
    assert code == 0
    rows = read(out)
    copies = [row for row in rows if row["worse"] is not None]
    assert json.loads(printed)["worsened"] == len(copies) > 2
    assert all(row["human"] > 0 and row["worse"] != row["translation"] for row in copies)
    labels = {
        (row["source"], row["translation"]): row["human"] for row in rows if row["worse"] is None
    }
    assert all(labels[row["source"], row["translation"]] == row["human"] for row in copies)


def test_entities_are_undone_and_rows_without_reference_left_out(
    mtmetrics: Run, tmp_path: Path
) -> None:
    texts = {"google": "&quot;the house&#39;s&quot;", "other": "a &amp; b"}
    rows = [{"lp": "de-en", "source": "das haus", "reference": "the house", "outputs": texts}]
    rows.append({"lp": "de-en", "source": "der hund", "reference": None, "outputs": texts})
    data = tmp_path / "outputs.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "labels.jsonl"
    options = ("--metric", "chrf", "--escaped", "google", "--out", out)
    assert mtmetrics("train", "labels", "--data", data, *options)[0] == 0
    assert {row["system"]: row["translation"] for row in read(out)} == {
        "google": '"the house\'s"',
        "other": "a &amp; b",
    }


def test_judgements_are_standardised_without_a_metric(mtmetrics: Run, tmp_path: Path) -> None:
    rows = [
        {"lp": "de-en", "source": f"haus {n}", "reference": "house", "translation": "h", "human": n}
        for n in (10, 30)
    ]
    data = tmp_path / "judged.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert mtmetrics("train", "labels", "--data", data, "--out", tmp_path / "out.jsonl")[0] == 0
    assert [row["human"] for row in read(tmp_path / "out.jsonl")] == [-1.0, 1.0]


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([{"source": "s", "translation": "t"}], [], "no field 'lp' or 'LP'"),
        (
            [{"lp": "de-en", "source": " ", "reference": "r", "translation": "t"}],
            [],
            "holds no translation",
        ),
        (
            [{"lp": "de-en", "source": "s", "reference": "r", "translation": "t"}],
            [],
            "where no --metric is named, every row needs its judgement",
        ),
        (
            [{"lp": "de-en", "source": "s", "reference": "r", "translation": "t", "human": 1}],
            [],
            "de-en: judgements: all are equal",
        ),
        (
            [{"lp": "de-en", "source": "s", "reference": "r", "translation": "t", "human": 1}],
            ["--most", "0"],
            "--most 0",
        ),
        (
            [{"lp": "de-en", "source": "s", "reference": "r", "translation": "t"}],
            ["--metric", "xmoverscore:mini"],
            "xmoverscore",
        ),
    ],
)
def test_what_cannot_be_labelled_is_one_line(
    rows: list[dict], options: list[str], message: str, mtmetrics: Run, tmp_path: Path
) -> None:
    data, out = tmp_path / "data.jsonl", tmp_path / "out.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, _, error = mtmetrics("train", "labels", "--data", data, "--out", out, *options)
    assert code == 2
    assert message in error
    assert error.count("\n") == 1
    assert not out.exists()
