"""``mtmetrics score`` in process: inputs, formats, errors and exit codes."""

import functools
import gzip
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from helpers import refused, write, write_jsonl
from pyarrow import parquet

from mtmetrics.checks import InputReport
from mtmetrics.cli.output import FORMATS
from mtmetrics.cli.score_output import LowestSegments
from mtmetrics.io.cells import Dialect
from mtmetrics.models.batches import BatchRunner
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.results import BATCH_SEGMENTS, MetricResult, PartScores
from mtmetrics.scorers.side import Side
from mtmetrics.scorers.xmoverscore import XMoverScore
from mtmetrics.statistics.significance import bootstrap_interval

SOURCES = ["Das Haus ist klein.", "ich sehe die Katze"]
PREDICTIONS = ["the house is small.", "i see the cat"]
PARALLEL = ("-s", "src.de", "-t", "mt.en")
Score = Callable[..., tuple[int, str, str]]


@pytest.fixture
def plain(
    tmp_path: Path,
    tiny_encoder: Path,
    tiny_lm: Path,
    mtmetrics: Score,
    monkeypatch: pytest.MonkeyPatch,
) -> Score:
    """The command in a folder with a preset and files of two segments."""
    monkeypatch.chdir(tmp_path)
    models = f'[encoder]\nmodel = "{tiny_encoder}"\n[language_models.en]\nmodel = "{tiny_lm}"\n'
    write(Path("preset/preset.toml"), models)
    rows = list(zip(SOURCES, PREDICTIONS, strict=True))
    write_jsonl(
        Path("rows.jsonl"), ({"source": source, "translation": text} for source, text in rows)
    )
    contents = {
        "src.de": SOURCES,
        "mt.en": PREDICTIONS,
        "rows.tsv": map("\t".join, rows),
        "short.en": ["the house"],
    }
    for name, lines in contents.items():
        write(Path(name), "".join(f"{line}\n" for line in lines))
    return functools.partial(mtmetrics, "score", "--preset", "preset", "--lp", "de-en")


@pytest.fixture
def score(plain: Score) -> Score:
    return functools.partial(plain, "--full-precision")


def scorer() -> XMoverScore:
    return XMoverScore.load("preset", lang_pair="de-en")


def rows_of(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_all_ways_in_give_the_scores_of_the_scorer(
    score: Score, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = scorer().score(PREDICTIONS, sources=SOURCES).as_dict(parts=True)
    for argv in (PARALLEL, ["rows.tsv"], ["rows.jsonl"], ["-"]):
        monkeypatch.setattr(
            "sys.stdin", io.TextIOWrapper(io.BytesIO(Path("rows.tsv").read_bytes()))
        )
        code, out, _ = score("--parts", *argv)
        assert (code, json.loads(out)) == (0, expected)


def test_several_systems(score: Score) -> None:
    code, out, err = score(*PARALLEL, "src.de")
    systems = json.loads(out)["systems"]
    assert (code, [system["name"] for system in systems]) == (0, ["mt", "src"])
    assert systems[1]["report"]["identical"] == 2
    assert err.count("warning") == 1
    assert "2 identical to the source" in err
    # Rows stand side by side.
    assert score(*PARALLEL, "src.de", "--out", "scores.jsonl", "--ci")[0] == 0
    rows = rows_of(Path("scores.jsonl").read_text())
    assert [row["kind"] for row in rows] == ["segment"] * 4 + ["system"] * 2
    assert [(row["system"], row["segment"]) for row in rows[:4]] == [
        ("mt", 1),
        ("src", 1),
        ("mt", 2),
        ("src", 2),
    ]
    for row, predictions in zip(rows[4:], (PREDICTIONS, SOURCES), strict=True):
        segments = scorer().score_systems({"": predictions}, sources=SOURCES)[""].segments
        assert row["mean_score"] == pytest.approx(segments.mean())


def test_line_formats(score: Score) -> None:
    code, out, err = score("--format", "tsv", "--parts", "--ci", "rows.tsv")
    lines = out.splitlines()
    assert (code, lines[0].split("\t")) == (0, ["system", "segment", "score", "mover", "lm"])
    value, mover, lm = map(float, lines[1].split("\t")[2:])
    assert value == pytest.approx(mover + 0.1 * lm)
    *rows, summary = rows_of(score("--format", "jsonl", "rows.tsv")[1])
    assert (rows[0]["segment"], rows[0]["score"]) == (1, value)
    assert summary["mean_score"] == pytest.approx((rows[0]["score"] + rows[1]["score"]) / 2)
    # The summary of the rows goes to standard error.
    mean = f"rows.tsv: mean {summary['mean_score']!r}"
    assert err == f"{mean} (no interval of fewer than 3 segments) {summary['signature']}\n"
    write(Path("three.tsv"), Path("rows.tsv").read_text() + "das haus\tthe house is red\n")
    err = score("--format", "tsv", "--ci", "three.tsv")[2]
    assert re.match(r"three.tsv: mean \S+ \[-?\d\S+, -?\d\S+\] xmoverscore", err)


def test_intervals(plain: Score, tmp_path: Path) -> None:
    texts = ["das haus", "der hund schläft", "nein", "ich sehe"]
    for count in (1, 2, 3, 4):
        lines = "".join(f"{text}\n" for text in texts[:count])
        write(tmp_path / "s", lines)
        call = ("-s", "s", "-t", "s", "--metric", "prediction_length", "--ci", "--format")
        ci = json.loads(plain(*call, "json", "--full-precision")[1])["ci"]
        expected = bootstrap_interval([-float(len(text)) for text in texts[:count]])
        table = plain(*call, "table")[1]
        assert rows_of(plain(*call, "jsonl", "--full-precision")[1])[-1]["ci"] == ci
        if count < 3:
            assert (ci, expected) == (None, None)
            assert table.splitlines()[2].split()[2] == "none"
            assert table.endswith("none: no interval of fewer than 3 segments\n")
        else:
            assert ci == expected._asdict()
            assert ci["low"] < ci["high"]
            assert "none" not in table


def test_parquet_in_and_out(score: Score) -> None:
    table = pyarrow.table({"translation": PREDICTIONS, "human": [1.0, 2.0], "source": SOURCES})
    parquet.write_table(table, "rows.parquet")
    assert score("--parts", "--out", "scores.parquet", "rows.parquet")[0] == 0
    expected = scorer().score(PREDICTIONS, sources=SOURCES)
    table = parquet.read_table("scores.parquet")
    assert table.column_names == ["system", "segment", "score", "mover", "lm"]
    assert table["segment"].to_pylist() == [1, 2]
    assert table["score"].to_pylist() == pytest.approx(expected.segments.tolist())
    summary = json.loads(parquet.read_metadata("scores.parquet").metadata[b"mtmetrics"])[0]
    assert (summary["signature"], summary["mean_score"]) == (
        expected.signature,
        pytest.approx(expected.system),
    )


def test_parquet_says_that_there_is_no_mean(
    mtmetrics: Score, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("copies.tsv"), "Der Hund schläft heute nicht.\tDer Hund schläft heute nicht.\n")
    call = ["--metric", "source_length", "--lp", "de-en", "--degenerate", "null"]
    code, _, err = mtmetrics("score", *call, "--out", "scores.parquet", "copies.tsv")
    assert code == 0, err
    metadata = parquet.read_metadata("scores.parquet").metadata[b"mtmetrics"]
    summary = json.loads(metadata, parse_constant=pytest.fail)[0]
    assert summary["mean_score"] is None


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["none.tsv"], 2, "none.tsv: no such file"),
        ([], 2, "nothing to score"),
        (["-s", "x"], 2, "nothing to score"),
        (["rows.tsv", "-s", "x"], 2, "either one FILE or -s and -t"),
        (["-s", "src.de", "-t", "short.en"], 2, "short.en has 1 line(s), src.de has 2"),
        (["EMPTY"], 2, "EMPTY: empty; there is nothing to score"),
        (["UNEVEN"], 2, "UNEVEN, line 2: 1 column(s), but line 1 has 2"),
        (["LATIN"], 2, "LATIN, line 2: byte 1 (0xff) is not valid UTF-8"),
        (["rows.tsv", "--lp", "deen"], 2, "language pair 'deen'"),
        (["rows.tsv", "--preset", "huge"], 2, "unknown preset 'huge'"),
        (["rows.tsv", "--metric", "bleu"], 2, "metric 'bleu'"),
        (["rows.tsv", "--batch-tokens", "0"], 2, "--batch-tokens 0"),
        (["rows.tsv", "--map", "clp"], 1, "no clp map for language pair de-en"),
        (["rows.tsv", "--lm", "no/such", "--local-files-only"], 1, "model 'no/such' was not found"),
        (["rows.tsv", "--out", "NO/scores.json"], 2, "there is no folder NO"),
        (["rows.tsv", "--out", "scores.txt"], 2, "pass --format"),
        (
            ["rows.tsv", "--out", "scores.table"],
            2,
            "--out scores.table: ends in none of .json, .jsonl",
        ),
        (
            ["rows.tsv", "--out", ".", "--format", "json"],
            2,
            "--out .: is a folder; a file is needed",
        ),
        (["-s", "-", "-t", "-"], 2, "-: standard input can be read only once"),
        (["rows.tsv", "--metric", "random:seed=1"], 2, "random has no presets; write random"),
        (
            ["rows.tsv", "--encoder", "no/such", "--local-files-only"],
            1,
            "mtmetrics: the model 'no/such' was not found",
        ),
        (["rows.tsv", "--format", "parquet"], 2, "needs --out"),
        (["rows.tsv", "--format", "json", "--segments"], 2, "--segments stands below a table"),
        (["rows.tsv", "--metric", "xmoverscore", "--metric", "xmoverscore"], 2, "given twice"),
        (
            ["rows.tsv", "--metric", "xmoverscore", "--metric", "chrf", "--layer", "1"],
            2,
            "--layer: for which metric?",
        ),
        (
            ["rows.tsv", "--metric", "xmoverscore", "--metric", "chrf"],
            2,
            "the first of two columns cannot be both",
        ),
    ],
)
def test_bad_usage_is_one_line(score: Score, argv: list[str], code: int, message: str) -> None:
    for name, content in (
        ("EMPTY", b""),
        ("UNEVEN", b"a\tb\nonly one column\n"),
        ("LATIN", b"a\tb\n\xff\tb\n"),
    ):
        Path(name).write_bytes(content)
    refused(score(*argv), message, code)


@pytest.mark.parametrize("form", [None, *FORMATS[1:]])
def test_interruption_leaves_no_file(
    score: Score, monkeypatch: pytest.MonkeyPatch, form: str | None
) -> None:
    scored = Scorer.score_batches

    def interrupt(self: Scorer, batches: Iterable[Batch]) -> Iterator[list[MetricResult]]:
        yield next(scored(self, batches))
        raise KeyboardInterrupt

    monkeypatch.setattr(Scorer, "score_batches", interrupt)
    Path("results").mkdir()
    out = [] if form is None else ["--out", f"results/scores.{form}"]
    refused(score(*out, "rows.tsv"), "mtmetrics: interrupted\n", 130)
    assert list(Path("results").iterdir()) == []


def test_a_long_file_is_not_kept(score: Score, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines through reader, chunks and writer: at most two chunks of text are alive at any time."""

    class Line(str):
        alive, most = 0, 0

        def __new__(cls, text: str) -> "Line":
            cls.alive += 1
            cls.most = max(cls.most, cls.alive)
            return super().__new__(cls, text)

        def __del__(self) -> None:
            Line.alive -= 1

    def compute(self: Scorer, batch: Batch) -> list[PartScores]:
        nothing = np.zeros(len(batch), dtype=bool)
        values = np.array([float(text) for text in batch.predictions[0]])
        return [PartScores(values, {"mover": values, "lm": values}, nothing, nothing)]

    lines = 20 * BATCH_SEGMENTS
    monkeypatch.setattr(
        "mtmetrics.io.tables.open_cells",
        lambda *_: (
            Dialect.TABS,
            ((number, [Line("x"), Line(number)]) for number in range(lines)),
        ),
    )
    monkeypatch.setattr("mtmetrics.scorers.xmoverscore.XMoverScore.compute", compute)
    assert score("rows.tsv", "--out", "scores.parquet")[0] == 0
    assert parquet.read_metadata("scores.parquet").num_rows == lines
    summary = json.loads(parquet.read_metadata("scores.parquet").metadata[b"mtmetrics"])[0]
    assert summary["mean_score"] == (lines - 1) / 2
    assert Line.most <= 4 * BATCH_SEGMENTS + 4


def test_several_metrics(score: Score) -> None:
    named = ["xmoverscore", "xmoverscore::lm=none"]
    metrics = [part for name in named for part in ("--metric", name)]
    code, out, _ = score(*metrics, *PARALLEL, "src.de")
    found = json.loads(out)["metrics"]
    assert (code, [metric["metric"] for metric in found]) == (0, named)
    alone = json.loads(score("--lm", "none", *PARALLEL, "src.de")[1])
    assert found[1]["systems"] == alone["systems"]
    # Rows have a column for each metric.
    lines = score(*metrics, "--format", "csv", "rows.tsv")[1].splitlines()
    assert lines[0] == f"system,segment,{','.join(named)}"
    assert [float(line.split(",")[3]) for line in lines[1:]] == alone["systems"][0]["scores"]
    rows = rows_of(score(*metrics, "--format", "jsonl", "rows.tsv")[1])
    assert [row["metric"] for row in rows[2:]] == named


def test_metrics_that_need_all_first_and_metrics_of_references_in_one_call(
    plain: Score, tiny_encoder: Path
) -> None:
    words = f'[src-mt]\nwords = "{tiny_encoder}"\nsentences = "{tiny_encoder}"\n'
    write(Path("scaled/preset.toml"), words)
    write(
        Path("both.tsv"), "mt\tref\tsrc\nthe house\tthe house\tdas Haus\na cat\ta dog\tein Hund\n"
    )
    names = ("xmoverscore:preset", "chrf", "sentsim:scaled:setting=src-mt,normalize=batch")
    alone = [json.loads(plain("--metric", name, "both.tsv")[1]) for name in names]
    code, out, _ = plain(*(part for name in names for part in ("--metric", name)), "both.tsv")
    together = json.loads(out)["metrics"]
    assert (code, [metric.pop("metric") for metric in together]) == (0, [*names])
    assert together == alone
    assert together[1]["scores"][0] == 1.0 > together[1]["scores"][1]


def test_metrics_of_one_encoder_share_its_passes(
    mtmetrics: Score, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, texts = BatchRunner.run, []

    def counted(self: BatchRunner, rows: list, compute: Callable) -> int:
        texts.append(len(rows))
        return run(self, rows, compute)

    monkeypatch.setattr(BatchRunner, "run", counted)
    count = 80  # three columns of which are more than one chunk
    sources = [f"Das Haus hat {number} Zimmer." for number in range(count)]
    table = "".join(
        f"{source}\tThe house has {number} rooms.\n" for number, source in enumerate(sources)
    )
    given = (
        "score",
        str(write(tmp_path / "rows.tsv", table)),
        "--lp",
        "de-en",
        "--against",
        "source",
    )
    metrics = (
        "xmoverscore:mini:lm=none",
        "bertr:mini",
        "distilscore:mini",
        "sentsim:mini",
        "esim:mini",
    )
    code, out, _ = mtmetrics(*given, *(word for metric in metrics for word in ("--metric", metric)))
    assert code == 0
    assert sum(texts) == 2 * count
    together = {document["metric"]: document["scores"] for document in json.loads(out)["metrics"]}
    alone = json.loads(mtmetrics(*given, "--metric", "esim:mini")[1])["scores"]
    assert together["esim:mini"] == pytest.approx(alone, abs=1e-5)


def test_numbers_have_six_digits_unless_asked(plain: Score) -> None:
    write(Path("three.tsv"), Path("rows.tsv").read_text() + "das haus\tthe house is red\n")
    short, full = (
        json.loads(plain("three.tsv", "--ci", *more)[1]) for more in ([], ["--full-precision"])
    )
    assert short["scores"] == [float(f"{score:.6g}") for score in full["scores"]] != full["scores"]
    assert short["ci"]["low"] == float(f"{full['ci']['low']:.6g}")
    assert short["report"] == full["report"]


def test_a_person_gets_a_table(plain: Score, monkeypatch: pytest.MonkeyPatch) -> None:
    write(Path("b.en"), f"{SOURCES[0]}\n\n")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    code, out, err = plain(*PARALLEL, "b.en", "--ci", "--segments")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0].split() == [
        "system",
        "mean",
        "95",
        "%",
        "interval",
        "segments",
        "blank",
        "untranslated",
    ]
    assert lines[3].split()[-3:] == ["2", "1", "1"]
    assert lines[5].startswith("xmoverscore|lp:de-en|")
    assert max(map(len, [*lines[:5], *lines[6:]])) <= 80
    # The blank segment has the floor score, below all others.
    lowest = lines[lines.index("Lowest scores of b by xmoverscore:") :]
    assert lowest[4].split()[0] == "2"
    assert SOURCES[0] in lowest[5]
    # A file takes the results, the screen what sums them up.
    assert plain("--out", "x.jsonl", "rows.tsv")[1].splitlines()[0].split()[1] == "mean"
    assert plain("--out", "x.jsonl", "--quiet", "rows.tsv")[1] == ""


def test_lowest_segments_of_translations_that_are_passed_twice(plain: Score) -> None:
    code, out, _ = plain(*PARALLEL, "mt.en", "--segments", "--format", "table")
    assert (code, out.count("Lowest scores of mt.en by xmoverscore:")) == (0, 1)
    lowest = out.partition("Lowest scores")[2].splitlines()
    assert sorted(line.split()[0] for line in lowest[4:]) == ["1", "2"]


def test_lowest_segments_leave_out_segments_without_a_score() -> None:
    lowest_segments = LowestSegments({"metric": Side.SOURCE})
    for scores in ([np.nan, 0.75, np.nan], [0.25, np.nan, 0.5]):
        result = MetricResult(np.array(scores), {}, np.zeros(3, bool), InputReport(3), "")
        chunk = Batch({"mt": ["a", "b", "c"]}, sources=["x", "y", "z"])
        lowest_segments.add(chunk, {("metric", "mt"): result})
    rows = lowest_segments.tables("table", full_precision=True).splitlines()[4:]
    assert [row.split()[:2] for row in rows] == [["4", "0.25"], ["6", "0.5"], ["2", "0.75"]]


def test_devices_change_no_score(plain: Score) -> None:
    one, two = (plain("--device", device, "rows.tsv") for device in ("cpu", "cpu,cpu"))
    assert one[0] == two[0] == 0


@pytest.mark.parametrize("device", ["cuda:99", "99", "cpu,abacus", "cpu,"])
def test_a_device_that_is_not_there_is_bad_usage(plain: Score, device: str) -> None:
    refused(plain("--device", device, "rows.tsv"), "cannot be used here")


def test_a_name_in_gz_is_compressed(score: Score) -> None:
    assert score("--out", "scores.jsonl.gz", "rows.tsv")[0] == 0
    assert score("--out", "scores.jsonl", "rows.tsv")[0] == 0
    assert (
        gzip.decompress(Path("scores.jsonl.gz").read_bytes()) == Path("scores.jsonl").read_bytes()
    )
    refused(score("--out", "scores.parquet.gz", "rows.tsv"), "no .gz")


def test_names_of_files_are_not_taken_for_settings(score: Score) -> None:
    refused(score("-s", "seed=1/ref.en", "-t", "mt.en"), "mtmetrics: seed=1/ref.en: no such file")
    refused(
        score("-s", "data/layer=4/ref.en", "-t", "mt.en"),
        "mtmetrics: data/layer=4/ref.en: no such file",
    )


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("xmoverscore:mini:layer=1_0", "'layer=1_0' cannot be used; a whole number is needed"),
        ("xmoverscore:mini:lm_weight=much", "'lm_weight=much' cannot be used; a number is needed"),
        ("sentsim:mini:normalize_vectors=perhaps", "true or false is needed"),
        ("xmoverscore:mini:lm=1_0", "model '1_0' was not found"),
        ("bertr:mini:encoder=2024,against=source", "model '2024' was not found"),
    ],
)
def test_values_in_a_metric_have_the_type_of_the_option(
    mtmetrics: Score, metric: str, message: str, score: Score, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    code, _, error = mtmetrics("score", "--lp", "de-en", "--metric", metric, "rows.tsv")
    assert code in (1, 2)
    assert message in error
    assert error.count("\n") == 1


def test_output_that_is_no_translation_is_kept_floored_or_left_out(
    plain: Score, tmp_path: Path
) -> None:
    sources, good = ["Das Haus ist klein.", "Nein."], ["The house is small.", "No."]
    bad = ["дом очень маленький", "No."]
    files = {"s": sources, "good": good, "bad": bad}
    for name, texts in files.items():
        write(tmp_path / name, "".join(f"{text}\n" for text in texts))
    call = (
        "--metric",
        "chrf",
        "--lp",
        "de-en",
        "-r",
        tmp_path / "good",
        "-t",
        tmp_path / "good",
        tmp_path / "bad",
    )
    found = {}
    for how in ("keep", "floor", "null"):
        code, out, _ = plain(*call, "--format", "jsonl", "--degenerate", how)
        assert code == 0
        found[how] = rows_of(out)
    kept = found["keep"]
    assert [row["unusual"] for row in kept if row["kind"] == "segment"] == ["", "script", "", ""]
    assert kept[1]["score"] == found["floor"][1]["score"] == 0.0
    assert found["null"][1]["score"] is None
    assert [found[how][5]["mean_score"] for how in found] == [0.5, 0.5, 1.0]
    assert ["degenerate" in found[how][5]["signature"] for how in found] == [False, True, True]
    assert "unusual" not in rows_of(plain(*call, "--format", "jsonl")[1])[0]
    tsv = plain(*call, "--format", "tsv", "--degenerate", "null")[1].splitlines()
    assert tsv[2].split("\t")[2:] == ["", "script"]
    whole = json.loads(plain(*call, "--format", "json", "--degenerate", "null")[1])["systems"][1]
    assert (whole["scores"], whole["unusual"]) == ([None, 1.0], ["script", ""])


def test_all_may_be_left_out(plain: Score, tmp_path: Path) -> None:
    write(tmp_path / "r", "The house is small.\n")
    write(tmp_path / "t", "дом очень маленький\n")
    call = (
        "--metric",
        "chrf",
        "--lp",
        "de-en",
        "-r",
        tmp_path / "r",
        "-t",
        tmp_path / "t",
        "--degenerate",
        "null",
    )
    code, out, _ = plain(*call, "--format", "json", "--ci")
    assert (code, json.loads(out)["mean_score"]) == (0, None)
    assert plain(*call, "--format", "table")[0] == 0
    write(tmp_path / "scores", "1\n")
    stored = (*call[2:-1], "floor", "--metric", f"scores:{tmp_path / 'scores'}")
    refused(plain(*stored), "--degenerate 'floor': scores has no floor score here")


def test_names_and_numbers_keep_their_scores(mtmetrics: Score, tmp_path: Path) -> None:
    rows = [
        ("2019", "2019"),
        ("Angela Merkel", "Angela Merkel"),
        ("Tor! Tor! Tor! Tor!", "Goal! Goal! Goal! Goal!"),
    ]
    rows.append(("Das Haus ist klein!", "DAS HAUS IST KLEIN!"))
    path = write(tmp_path / "rows.tsv", "".join(f"{source}\t{text}\n" for source, text in rows))
    command = (
        "score",
        "--metric",
        "source_length",
        "--lp",
        "de-en",
        "--degenerate",
        "floor",
        "--format",
        "jsonl",
    )
    code, out, _ = mtmetrics(*command, path)
    lines = rows_of(out)
    assert (code, [line["score"] for line in lines[:4]]) == (0, [-4.0, -13.0, -19.0, -1000.0])


def test_two_files_of_references_stand_in_the_signature(mtmetrics: Score, tmp_path: Path) -> None:
    files = {name: write(tmp_path / name, "a house\n") for name in ("mt", "one", "two")}
    command = ("score", "--metric", "chrf", "--lp", "de-en", "-t", files["mt"], "-r", files["one"])
    signatures = [
        json.loads(mtmetrics(*command, *more)[1])["signature"] for more in ([], [files["two"]])
    ]
    assert ("|nrefs:1|case:" in signatures[0], "|nrefs:2|combine:max|case:" in signatures[1]) == (
        True,
        True,
    )
