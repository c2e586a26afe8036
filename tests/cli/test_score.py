"""``mtmetrics score`` in process: inputs, formats, errors and exit codes."""

import io
import json
from pathlib import Path

import pytest

from mtmetrics.cli.main import main
from mtmetrics.scorers.load import load_xmoverscore

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
    preset: Path, files: tuple[str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = load_xmoverscore(str(preset), "de-en").score(SOURCES, PREDICTIONS).as_dict(parts=True)
    source, prediction, table = files
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"source": s, "translation": p}) + "\n" for s, p in zip(SOURCES, PREDICTIONS, strict=True)))
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
def test_bad_tables(preset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes, message: str) -> None:
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
        (["TABLE", "--lm", "no/such", "--local-files-only"], 1, "'no/such' (revision main) was not found"),
    ],
)
def test_bad_usage_is_one_line(
    preset: Path, files: tuple[str, str, str], capsys: pytest.CaptureFixture[str], argv: list[str], code: int, message: str
) -> None:
    assert call(preset, *(files[2] if word == "TABLE" else word for word in argv)) == code
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.startswith("mtmetrics: ")
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_unequal_files(preset: Path, files: tuple[str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "short.en").write_text("the house\n")
    assert call(preset, "-s", files[0], "-t", str(tmp_path / "short.en")) == 2
    assert "short.en ends after 1 lines" in capsys.readouterr().err


def test_unknown_options_exit_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["score", "--no-such-option"], ["no-such-command"], []):
        with pytest.raises(SystemExit) as stop:
            main(argv)
        assert stop.value.code == 2


def test_interruption(
    preset: Path, files: tuple[str, str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mtmetrics.scorers.base.Scorer.score_stream", interrupt)
    assert call(preset, files[2]) == 130
    assert capsys.readouterr().err == "mtmetrics: interrupted\n"
