"""``mtmetrics score`` in process: inputs, formats, errors and exit codes."""

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from mtmetrics.cli.main import main
from mtmetrics.cli.output import FORMATS
from mtmetrics.evaluation.significance import bootstrap_interval
from mtmetrics.scorers.base import CHUNK_LINES, ChunkScores, MetricResult, Scorer
from mtmetrics.scorers.xmoverscore import XMoverScore

SOURCES = ["Das Haus ist klein.", "ich sehe die Katze"]
PREDICTIONS = ["the house is small.", "i see the cat"]


@pytest.fixture
def preset(tmp_path: Path, tiny_encoder: Path, tiny_lm: Path) -> Path:
    folder = tmp_path / "preset"
    folder.mkdir()
    (folder / "preset.toml").write_text(
        f'[encoder]\nmodel = "{tiny_encoder}"\n[language_models.en]\nmodel = "{tiny_lm}"\n', encoding="utf-8"
    )
    return folder


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str, str]:
    rows = zip(SOURCES, PREDICTIONS, strict=True)
    contents = {
        "src.de": "\n".join(SOURCES) + "\n",
        "mt.en": "\n".join(PREDICTIONS) + "\n",
        "rows.tsv": "".join(f"{s}\t{p}\n" for s, p in rows),
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tuple(str(tmp_path / name) for name in contents)


def call(preset: Path, *argv: str) -> int:
    return main(["score", "--preset", str(preset), "--lp", "de-en", *argv])


def test_all_ways_in_give_the_scores_of_the_scorer(
    preset: Path,
    files: tuple[str, str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = XMoverScore.from_preset(str(preset), lang_pair="de-en").score(SOURCES, PREDICTIONS).as_dict(parts=True)
    source, prediction, table = files
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        "".join(json.dumps({"source": s, "translation": p}) + "\n" for s, p in zip(SOURCES, PREDICTIONS, strict=True))
    )
    for argv in (["-s", source, "-t", prediction], [table], [str(rows)], ["-"]):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(table).read_bytes())))
        assert call(preset, "--parts", *argv) == 0
        assert json.loads(capsys.readouterr().out) == expected


def test_several_systems(preset: Path, files: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    source, prediction, _ = files
    assert call(preset, "-s", source, "-t", prediction, source) == 0
    captured = capsys.readouterr()
    systems = json.loads(captured.out)["systems"]
    assert [system["name"] for system in systems] == ["mt", "src"]
    assert systems[1]["report"]["identical"] == 2
    assert captured.err.count("warning") == 1
    assert "2 identical to the source" in captured.err


def test_line_formats(preset: Path, files: tuple[str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert call(preset, "--format", "tsv", "--parts", files[2]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("\t") == ["system", "segment", "score", "mover", "lm"]
    score, mover, lm = map(float, lines[1].split("\t")[2:])
    assert score == pytest.approx(mover + 0.1 * lm)
    assert call(preset, "--format", "jsonl", files[2]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["segment"] for row in rows[:2]] == [1, 2]
    assert rows[0]["score"] == score
    assert rows[2]["mean_score"] == pytest.approx((rows[0]["score"] + rows[1]["score"]) / 2)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty; there is nothing to score"),
        (b"a\tb\nonly one column\n", "line 2: 1 column"),
        (b"a\tb\n\xff\tb\n", "line 2: byte 1 (0xff) is not valid UTF-8"),
    ],
)
def test_bad_tables(
    preset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes, message: str
) -> None:
    path = tmp_path / "bad.tsv"
    path.write_bytes(data)
    assert call(preset, str(path)) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert str(path) in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["none.tsv"], 2, "none.tsv: no such file"),
        ([], 2, "nothing to score"),
        (["-s", "x"], 2, "nothing to score"),
        (["-s", "x", "-t", "y", "z.tsv", "file"], 2, "no such file"),
        (["TABLE", "-s", "x"], 2, "either one FILE or -s and -t"),
        (["TABLE", "--lp", "deen"], 2, "language pair 'deen'"),
        (["TABLE", "--preset", "huge"], 2, "unknown preset 'huge'"),
        (["TABLE", "--metric", "bleu"], 2, "metric 'bleu'"),
        (["TABLE", "--layer", "77"], 2, "layer 77"),
        (["TABLE", "--variant", "x"], 2, "variant 'x'"),
        (["TABLE", "--batch-tokens", "0"], 2, "batch_tokens 0"),
        (["TABLE", "--map", "clp"], 1, "no clp map for language pair de-en"),
        (["TABLE", "--lm", "no/such", "--local-files-only"], 1, "model 'no/such' was not found"),
    ],
)
def test_bad_usage_is_one_line(
    preset: Path,
    files: tuple[str, str, str],
    capsys: pytest.CaptureFixture[str],
    argv: list[str],
    code: int,
    message: str,
) -> None:
    assert call(preset, *(files[2] if word == "TABLE" else word for word in argv)) == code
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.startswith("mtmetrics: ")
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_unequal_files(
    preset: Path, files: tuple[str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "short.en").write_text("the house\n")
    assert call(preset, "-s", files[0], "-t", str(tmp_path / "short.en")) == 2
    assert "short.en ends after 1 lines" in capsys.readouterr().err


def test_unknown_options_exit_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["score", "--no-such-option"], ["no-such-command"], []):
        with pytest.raises(SystemExit) as stop:
            main(argv)
        assert stop.value.code == 2


def interrupted_after_a_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    scored = Scorer.score_chunks

    def interrupt(self: Scorer, chunks: Iterable[list[list[str]]]) -> Iterator[list[MetricResult]]:
        yield next(scored(self, chunks))
        raise KeyboardInterrupt

    monkeypatch.setattr(Scorer, "score_chunks", interrupt)


def test_interruption(
    preset: Path, files: tuple[str, str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted_after_a_chunk(monkeypatch)
    assert call(preset, files[2]) == 130
    captured = capsys.readouterr()
    assert captured.err == "mtmetrics: interrupted\n"
    assert captured.out == ""


@pytest.mark.parametrize("form", FORMATS)
def test_interruption_leaves_no_file(
    preset: Path, files: tuple[str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    interrupted_after_a_chunk(monkeypatch)
    assert call(preset, "--out", str(folder / f"scores.{form}"), files[2]) == 130
    assert list(folder.iterdir()) == []


def test_parquet_in_and_out(preset: Path, tmp_path: Path) -> None:
    rows, out = tmp_path / "rows.parquet", tmp_path / "scores.parquet"
    parquet.write_table(pyarrow.table({"translation": PREDICTIONS, "human": [1.0, 2.0], "source": SOURCES}), rows)
    assert call(preset, "--parts", "--out", str(out), str(rows)) == 0
    expected = XMoverScore.from_preset(str(preset), lang_pair="de-en").score(SOURCES, PREDICTIONS)
    table = parquet.read_table(out)
    assert table.column_names == ["system", "segment", "score", "mover", "lm"]
    assert table["segment"].to_pylist() == [1, 2]
    assert table["score"].to_pylist() == pytest.approx(expected.segments.tolist())
    summary = json.loads(parquet.read_metadata(out).metadata[b"mtmetrics"])[0]
    assert summary["signature"] == expected.signature
    assert summary["mean_score"] == pytest.approx(expected.system)


def test_rows_of_several_systems_stand_side_by_side(preset: Path, files: tuple[str, str, str], tmp_path: Path) -> None:
    out = tmp_path / "scores.jsonl"
    assert call(preset, "-s", files[0], "-t", files[1], files[0], "--out", str(out), "--ci") == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["system"], row["segment"]) for row in rows[:4]] == [("mt", 1), ("src", 1), ("mt", 2), ("src", 2)]
    scorer = XMoverScore.from_preset(str(preset), lang_pair="de-en")
    for row, predictions in zip(rows[4:], (PREDICTIONS, SOURCES), strict=True):
        segments = scorer.score_systems(SOURCES, {"": predictions})[""].segments
        assert row["ci"] == bootstrap_interval(segments)._asdict()
        assert row["ci"]["low"] <= row["mean_score"] <= row["ci"]["high"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--out", "NO/scores.json"], "there is no folder"),
        (["--out", "scores.txt"], "pass --format"),
        (["--format", "parquet"], "needs --out"),
    ],
)
def test_bad_outputs(
    preset: Path, files: tuple[str, str, str], capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    assert call(preset, files[2], *argv) == 2
    assert message in capsys.readouterr().err


def test_a_long_file_is_not_kept(preset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """100,000 lines through reader, chunks and writer: at most two chunks of text are alive at any time."""

    class Line(str):
        alive, most = 0, 0

        def __new__(cls, text: str) -> "Line":
            cls.alive += 1
            cls.most = max(cls.most, cls.alive)
            return super().__new__(cls, text)

        def __del__(self) -> None:
            Line.alive -= 1

    def chunk(self: Scorer, sources: list[str], systems: list[list[str]]) -> list[ChunkScores]:
        nothing = np.zeros(len(sources), dtype=bool)
        values = np.array([float(text) for text in systems[0]])
        return [ChunkScores(values, {"mover": values, "lm": values}, nothing, nothing)]

    lines = 100_000
    monkeypatch.setattr(
        "mtmetrics.cli.rows.iter_tsv", lambda *_: ([Line("x"), Line(number)] for number in range(lines))
    )
    monkeypatch.setattr("mtmetrics.scorers.xmoverscore.XMoverScore._score_chunk", chunk)
    out = tmp_path / "scores.parquet"
    assert call(preset, "rows.tsv", "--out", str(out)) == 0
    assert parquet.read_metadata(out).num_rows == lines
    assert json.loads(parquet.read_metadata(out).metadata[b"mtmetrics"])[0]["mean_score"] == (lines - 1) / 2
    assert Line.most <= 4 * CHUNK_LINES + 4
