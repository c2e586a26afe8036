"""``mtmetrics score`` in process: inputs, formats, errors and exit codes."""

import functools
import io
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from helpers import write
from pyarrow import parquet

from mtmetrics.cli import options
from mtmetrics.cli.main import main
from mtmetrics.cli.results import FORMATS
from mtmetrics.evaluation.significance import bootstrap_interval
from mtmetrics.models.runner import tell
from mtmetrics.scorers.base import CHUNK_LINES, ChunkScores, MetricResult, Scorer
from mtmetrics.scorers.xmoverscore import XMoverScore

SOURCES = ["Das Haus ist klein.", "ich sehe die Katze"]
PREDICTIONS = ["the house is small.", "i see the cat"]
Score = Callable[..., tuple[int, str, str]]


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
    contents = {
        "src.de": "\n".join(SOURCES),
        "mt.en": "\n".join(PREDICTIONS),
        "rows.tsv": "\n".join(map("\t".join, zip(SOURCES, PREDICTIONS, strict=True))),
    }
    return tuple(str(write(tmp_path / name, text + "\n")) for name, text in contents.items())


@pytest.fixture
def score(mtmetrics: Callable[..., tuple[int, str, str]], preset: Path) -> Score:
    return lambda *argv: mtmetrics("score", "--full-precision", "--preset", preset, "--lp", "de-en", *argv)


def test_all_ways_in_give_the_scores_of_the_scorer(
    preset: Path, score: Score, files: tuple[str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = XMoverScore.from_preset(str(preset), lang_pair="de-en").score(SOURCES, PREDICTIONS).as_dict(parts=True)
    source, prediction, table = files
    pairs = zip(SOURCES, PREDICTIONS, strict=True)
    rows = write(tmp_path / "rows.jsonl", "".join(json.dumps({"source": s, "translation": p}) + "\n" for s, p in pairs))
    for argv in (["-s", source, "-t", prediction], [table], [rows], ["-"]):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(table).read_bytes())))
        code, out, _ = score("--parts", *argv)
        assert code == 0
        assert json.loads(out) == expected


def test_several_systems(score: Score, files: tuple[str, str, str]) -> None:
    source, prediction, _ = files
    code, out, err = score("-s", source, "-t", prediction, source)
    systems = json.loads(out)["systems"]
    assert code == 0
    assert [system["name"] for system in systems] == ["mt", "src"]
    assert systems[1]["report"]["identical"] == 2
    assert err.count("warning") == 1
    assert "2 identical to the source" in err


def test_line_formats(score: Score, files: tuple[str, str, str]) -> None:
    code, out, err = score("--format", "tsv", "--parts", "--ci", files[2])
    lines = out.splitlines()
    assert code == 0
    assert lines[0].split("\t") == ["system", "segment", "score", "mover", "lm"]
    value, mover, lm = map(float, lines[1].split("\t")[2:])
    assert value == pytest.approx(mover + 0.1 * lm)
    rows = [json.loads(line) for line in score("--format", "jsonl", files[2])[1].splitlines()]
    assert [row["segment"] for row in rows[:2]] == [1, 2]
    assert rows[0]["score"] == value
    assert rows[2]["mean_score"] == pytest.approx((rows[0]["score"] + rows[1]["score"]) / 2)
    # The summary of the rows goes to standard error.
    assert err.startswith(f"{files[2]}: mean {rows[2]['mean_score']!r} [")
    assert err.endswith(f"] {rows[2]['signature']}\n")


def refused(result: tuple[int, str, str], code: int, message: str) -> None:
    """One line on standard error, and no other output."""
    assert (result[0], result[1]) == (code, "")
    assert message in result[2]
    assert result[2].startswith("mtmetrics: ")
    assert result[2].count("\n") == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty; there is nothing to score"),
        (b"a\tb\nonly one column\n", "line 2: 1 column(s), but line 1 has 2"),
        (b"a\tb\n\xff\tb\n", "line 2: byte 1 (0xff) is not valid UTF-8"),
    ],
)
def test_bad_tables(score: Score, tmp_path: Path, data: bytes, message: str) -> None:
    path = write(tmp_path / "bad.tsv", data)
    result = score(path)
    refused(result, 2, message)
    assert str(path) in result[2]


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["none.tsv"], 2, "none.tsv: no such file"),
        ([], 2, "nothing to score"),
        (["-s", "x"], 2, "nothing to score"),
        (["-s", "x", "-t", "y", "z.tsv", "file"], 2, "no such file"),
        (["TABLE", "-s", "x"], 2, "either one FILE or -s and -t"),
        (["-s", "SOURCES", "-t", "SHORT"], 2, "short.en has 1 line(s), "),
        (["TABLE", "--lp", "deen"], 2, "language pair 'deen'"),
        (["TABLE", "--preset", "huge"], 2, "unknown preset 'huge'"),
        (["TABLE", "--metric", "bleu"], 2, "metric 'bleu'"),
        (["TABLE", "--layer", "77"], 2, "layer 77"),
        (["TABLE", "--variant", "x"], 2, "variant 'x'"),
        (["TABLE", "--batch-tokens", "0"], 2, "--batch-tokens 0"),
        (["TABLE", "--map", "clp"], 1, "no clp map for language pair de-en"),
        (["TABLE", "--lm", "no/such", "--local-files-only"], 1, "model 'no/such' was not found"),
        (["TABLE", "--out", "NO/scores.json"], 2, "there is no folder"),
        (["TABLE", "--out", "scores.txt"], 2, "pass --format"),
        (["TABLE", "--format", "parquet"], 2, "needs --out"),
    ],
)
def test_bad_usage_is_one_line(
    score: Score, files: tuple[str, str, str], tmp_path: Path, argv: list[str], code: int, message: str
) -> None:
    places = {"TABLE": files[2], "SOURCES": files[0], "SHORT": write(tmp_path / "short.en", "the house\n")}
    refused(score(*(places.get(word, word) for word in argv)), code, message)


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


def test_interruption(score: Score, files: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted_after_a_chunk(monkeypatch)
    refused(score(files[2]), 130, "mtmetrics: interrupted\n")


@pytest.mark.parametrize("form", FORMATS[1:])
def test_interruption_leaves_no_file(
    score: Score, files: tuple[str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    interrupted_after_a_chunk(monkeypatch)
    assert score("--out", folder / f"scores.{form}", files[2])[0] == 130
    assert list(folder.iterdir()) == []


def test_parquet_in_and_out(preset: Path, score: Score, tmp_path: Path) -> None:
    rows, out = tmp_path / "rows.parquet", tmp_path / "scores.parquet"
    parquet.write_table(pyarrow.table({"translation": PREDICTIONS, "human": [1.0, 2.0], "source": SOURCES}), rows)
    assert score("--parts", "--out", out, rows)[0] == 0
    expected = XMoverScore.from_preset(str(preset), lang_pair="de-en").score(SOURCES, PREDICTIONS)
    table = parquet.read_table(out)
    assert table.column_names == ["system", "segment", "score", "mover", "lm"]
    assert table["segment"].to_pylist() == [1, 2]
    assert table["score"].to_pylist() == pytest.approx(expected.segments.tolist())
    summary = json.loads(parquet.read_metadata(out).metadata[b"mtmetrics"])[0]
    assert summary["signature"] == expected.signature
    assert summary["mean_score"] == pytest.approx(expected.system)


def test_rows_of_several_systems_stand_side_by_side(
    preset: Path, score: Score, files: tuple[str, str, str], tmp_path: Path
) -> None:
    out = tmp_path / "scores.jsonl"
    assert score("-s", files[0], "-t", files[1], files[0], "--out", out, "--ci")[0] == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["system"], row["segment"]) for row in rows[:4]] == [("mt", 1), ("src", 1), ("mt", 2), ("src", 2)]
    scorer = XMoverScore.from_preset(str(preset), lang_pair="de-en")
    for row, predictions in zip(rows[4:], (PREDICTIONS, SOURCES), strict=True):
        segments = scorer.score_systems(SOURCES, {"": predictions})[""].segments
        assert row["ci"] == bootstrap_interval(segments)._asdict()
        assert row["ci"]["low"] <= row["mean_score"] <= row["ci"]["high"]


def test_a_long_file_is_not_kept(score: Score, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr("mtmetrics.textio.iter_tsv", lambda *_: ([Line("x"), Line(number)] for number in range(lines)))
    monkeypatch.setattr("mtmetrics.scorers.xmoverscore.XMoverScore._score_chunk", chunk)
    out = tmp_path / "scores.parquet"
    assert score("rows.tsv", "--out", out)[0] == 0
    assert parquet.read_metadata(out).num_rows == lines
    assert json.loads(parquet.read_metadata(out).metadata[b"mtmetrics"])[0]["mean_score"] == (lines - 1) / 2
    assert Line.most <= 4 * CHUNK_LINES + 4


def test_several_metrics(preset: Path, score: Score, files: tuple[str, str, str], tmp_path: Path) -> None:
    named = ("xmoverscore", "xmoverscore::lm=none")
    metrics = [part for name in named for part in ("--metric", name)]
    code, out, _ = score(*metrics, "-s", files[0], "-t", files[1], files[0])
    found = json.loads(out)["metrics"]
    assert code == 0
    assert [metric["metric"] for metric in found] == [*named]
    alone = json.loads(score("--lm", "none", "-s", files[0], "-t", files[1], files[0])[1])
    assert found[1]["systems"] == alone["systems"]
    # Rows have a column for each metric.
    lines = score(*metrics, "--format", "csv", files[2])[1].splitlines()
    assert lines[0] == f"system,segment,{','.join(named)}"
    assert [float(line.split(",")[3]) for line in lines[1:]] == alone["systems"][0]["scores"]
    rows = [json.loads(line) for line in score(*metrics, "--format", "jsonl", files[2])[1].splitlines()]
    assert [row["metric"] for row in rows[2:]] == [*named]
    refused(score("--metric", "xmoverscore", "--metric", "xmoverscore", files[2]), 2, "given twice")
    refused(score(*metrics, "--layer", "1", files[2]), 2, "--layer: for which metric?")


def test_metrics_of_sources_and_of_references_in_one_call(
    mtmetrics: Callable, preset: Path, files: tuple[str, str, str], tmp_path: Path
) -> None:
    metrics = ("--metric", f"xmoverscore:{preset}", "--metric", "chrf")
    both = write(tmp_path / "both.tsv", "mt\tref\tsrc\nthe house\tthe house\tdas Haus\na cat\ta dog\tein Hund\n")
    code, out, _ = mtmetrics("score", *metrics, "--lp", "de-en", both)
    assert code == 0
    xmoverscore, chrf = json.loads(out)["metrics"]
    assert chrf["scores"][0] == 1.0 > chrf["scores"][1]
    assert xmoverscore["signature"].startswith("xmoverscore|lp:de-en|")
    refused(mtmetrics("score", *metrics, "--lp", "de-en", files[2]), 2, "the first of two columns cannot be both")


def test_numbers_have_six_digits_unless_asked(mtmetrics: Callable, preset: Path, files: tuple[str, str, str]) -> None:
    call = ("score", "--preset", preset, "--lp", "de-en", files[2], "--ci")
    short, full = (json.loads(mtmetrics(*call, *more)[1]) for more in ([], ["--full-precision"]))
    assert short["scores"] == [float(f"{score:.6g}") for score in full["scores"]] != full["scores"]
    assert short["ci"]["low"] == float(f"{full['ci']['low']:.6g}")
    assert short["report"] == full["report"]


def test_a_person_gets_a_table(
    mtmetrics: Callable, preset: Path, files: tuple[str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    score = functools.partial(mtmetrics, "score", "--preset", preset, "--lp", "de-en")
    untranslated = write(tmp_path / "b.en", f"{SOURCES[0]}\n\n")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    code, out, err = score("-s", files[0], "-t", files[1], untranslated, "--ci", "--segments")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0].split() == ["system", "mean", "95", "%", "interval", "segments", "blank", "untranslated"]
    assert lines[3].split()[-3:] == ["2", "1", "1"]
    assert lines[5].startswith("xmoverscore|lp:de-en|")
    assert max(map(len, [*lines[:5], *lines[6:]])) <= 80
    # The blank segment has the floor score, below all others.
    lowest = lines[lines.index("Lowest scores of b by xmoverscore:") :]
    assert lowest[4].split()[0] == "2"
    assert SOURCES[0] in lowest[5]
    # A file takes the results, the screen what sums them up.
    assert score("--out", tmp_path / "x.jsonl", files[2])[1].splitlines()[0].split()[1] == "mean"
    assert score("--out", tmp_path / "x.jsonl", "--quiet", files[2])[1] == ""
    refused(score("--format", "json", "--segments", files[2]), 2, "--segments stands below a table")


def test_progress_is_finer_than_a_chunk_and_stays_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []

    class Bar:
        total, n = 100, 0

        def update(self, count: int) -> None:
            self.n += count
            shown.append(self.n)

        def __enter__(self) -> "Bar":
            return self

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(options, "progress", lambda **_: Bar())
    with options.scoring(100):
        for _ in range(2):
            for _ in range(5):
                tell("texts", 20)
            tell("segments", 45)
    assert shown == sorted(shown)
    assert len(set(shown)) > 8
    assert shown[-1] == 100
