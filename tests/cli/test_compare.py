"""``mtmetrics compare`` in process."""

import csv
import functools
import json
from pathlib import Path

import numpy as np
import pytest
from helpers import note_loads, refused, write, write_jsonl

from mtmetrics.cli.main import build_parser
from mtmetrics.reports.comparison import CORRECTIONS, PAIRED_TESTS, compare_systems
from mtmetrics.reports.example import example
from mtmetrics.reports.styles import STYLES
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.statistics.significance import SEED

SOURCES = [
    "Das Haus ist klein.",
    "Der Hund schläft nicht.",
    "Ich sehe die Katze.",
    "Ein Baum steht dort.",
]
OUTPUTS = {
    "good": [
        "the house is small.",
        "the dog sleeps not.",
        "i see the cat.",
        "a tree stands there.",
    ],
    "bad": ["the cat", "not", "large large large", "1 2 3"],
    "odd": ["the house is large.", "the dog sleeps.", "i see a tree.", "a house stands."],
}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = {
        "src.de": SOURCES,
        "ref.en": OUTPUTS["good"],
        **{f"{name}.en": lines for name, lines in OUTPUTS.items()},
    }
    for name, lines in texts.items():
        write(Path(name), "\n".join(lines) + "\n")
    outputs = [
        dict(zip(OUTPUTS, texts, strict=True)) for texts in zip(*OUTPUTS.values(), strict=True)
    ]
    columns = zip(SOURCES, OUTPUTS["good"], outputs, strict=True)
    write_jsonl(
        Path("rows.jsonl"),
        (dict(zip(("source", "reference", "outputs"), row, strict=True)) for row in columns),
    )
    write(Path("short.en"), "the house\n")


@pytest.fixture
def compare(files: None, tiny_preset: Path, mtmetrics):
    return functools.partial(
        mtmetrics, "compare", "--lp", "de-en", "--preset", tiny_preset, "--device", "cpu"
    )


PARALLEL = ("-s", "src.de", "-t", "good.en", "bad.en", "odd.en")


def test_compares_the_scores_of_the_package(compare, tiny_preset: Path) -> None:
    settings = (
        "--full-precision",
        "--resamples",
        "100",
        "--seed",
        "3",
        "--test",
        "bootstrap",
        "--correction",
        "none",
    )
    code, out, err = compare(*PARALLEL, *settings)
    assert (code, err) == (0, "")
    shown = json.loads(out)
    scorer = load_scorer("xmoverscore", preset=str(tiny_preset), lang_pair="de-en")
    results = scorer.score_systems(OUTPUTS, sources=SOURCES)
    scores = {name: result.segments for name, result in results.items()}
    expected = compare_systems(scores, test="bootstrap", resamples=100, seed=3)
    (metric,) = shown["metrics"]
    assert metric["metric"] == "xmoverscore"
    assert metric["signature"] == scorer.signature
    assert [system["system"] for system in metric["systems"]] == [
        system.name for system in expected.systems
    ]
    means = [system["mean_score"] for system in metric["systems"]]
    assert means == pytest.approx([system.mean for system in expected.systems])
    assert [pair["p"] for pair in metric["pairs"]] == pytest.approx(
        expected.p_values[np.triu_indices(3, 1)]
    )
    assert (shown["segments"], shown["resamples"], shown["seed"], shown["test"]) == (
        4,
        100,
        3,
        "bootstrap",
    )


def test_several_metrics_share_models(compare, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = note_loads(monkeypatch)
    named = ["xmoverscore", "xmoverscore::lm=none"]
    code, out, _ = compare(*PARALLEL, "-r", "ref.en", "--metric", named[0], "--metric", named[1])
    assert (code, [metric["metric"] for metric in json.loads(out)["metrics"]]) == (0, named)
    assert sorted(loaded) == ["EncoderNetwork", "LanguageModel"]


def test_a_metric_of_references_beside_one_of_sources(compare, tiny_encoder: Path) -> None:
    write(Path("greedy/preset.toml"), f'[encoder]\nmodel = "{tiny_encoder}"\n')
    for references in (["ref.en"], ["ref.en", "bad.en"]):
        code, out, _ = compare(
            *PARALLEL, "-r", *references, "--metric", "xmoverscore", "--metric", "bertr:greedy"
        )
        assert code == 0
        means = {
            system["system"]: system["mean_score"]
            for system in json.loads(out)["metrics"][1]["systems"]
        }
        # The references are the output of one system; with several of them the best one counts.
        assert means["good"] == pytest.approx(1.0)
        assert (means["bad"] == pytest.approx(1.0)) == (len(references) == 2)
        assert means["odd"] < 1.0


def test_both_ways_in_give_the_same_table(compare) -> None:
    code, out, _ = compare(*PARALLEL, "--format", "csv")
    assert (code, out) == compare("rows.jsonl", "--format", "csv")[:2]
    assert code == 0
    assert all(name in out for name in OUTPUTS)


def test_choices_and_defaults_are_those_of_the_package() -> None:
    (parser,) = [
        action
        for action in build_parser()._actions
        if action.choices and "compare" in action.choices
    ]
    actions = {action.dest: action for action in parser.choices["compare"]._actions}
    assert tuple(actions["test"].choices) == tuple(PAIRED_TESTS)
    assert tuple(actions["correction"].choices) == tuple(CORRECTIONS)
    assert set(actions["format"].choices) == {"json", *STYLES}
    defaults = {name: actions[name].default for name in ("test", "correction", "seed")}
    assert defaults == {name: compare_systems.__kwdefaults__[name] for name in defaults}
    assert actions["seed"].default == SEED


@pytest.mark.parametrize("setting", [[], ["--normalize", "batch"]])
def test_a_metric_that_scales_by_the_call_is_refused(
    compare, tiny_encoder: Path, setting: list[str]
) -> None:
    Path("scaled").mkdir()
    Path("scaled/preset.toml").write_text(
        f'[src-mt]\nwords = "{tiny_encoder}"\nsentences = "{tiny_encoder}"\n'
        "[bounds.src-mt]\nsss = [-1.0, 1.0]\nbertscore = [0.0, 1.0]\n"
    )
    result = compare(*PARALLEL, "--metric", "sentsim:scaled", *setting)
    refused(result, "--metric sentsim:scaled: scores depend on the other segments")
    assert "use --normalize fixed" in result[2]
    assert compare(*PARALLEL, "--metric", "sentsim:scaled:normalize=fixed")[0] == 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["-s", "src.de", "-t", "good.en"], "only one system (good)"),
        (["-s", "src.de", "-t", "good.en", "short.en"], "short.en has 1 line(s), src.de has 4"),
        (["-s", "src.de", "-t", "good.en", "good.en"], "-t good.en: given twice"),
        (["-s", "src.de"], "nothing to score"),
        (["rows.jsonl", "-s", "src.de"], "either one FILE or"),
        (["none.jsonl"], "none.jsonl: no such file"),
        (["src.de"], "src.de: several systems in one FILE are JSON Lines"),
        (
            [*PARALLEL, "--metric", "xmoverscore::setting=mt-ref"],
            "xmoverscore has no option 'setting'",
        ),
        (
            [*PARALLEL, "-r", "ref.en", "--metric", "sentsim:mini"],
            "sentsim:mini: sentsim compares with the source or the reference: pass",
        ),
        (
            ["-r", "ref.en", "-t", "good.en", "bad.en"],
            "xmoverscore compares predictions with sources",
        ),
        ([*PARALLEL, "--resamples", "10"], "resamples 10: too few"),
        ([*PARALLEL, "--seed", "-1"], "seed -1"),
    ],
)
def test_bad_usage_is_one_line(compare, argv: list[str], message: str) -> None:
    refused(compare(*argv), message)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"outputs": {"good": "x"}},
            "'outputs': an object, system name -> translation of good, bad, odd",
        ),
        ({"outputs": ["x"]}, "'outputs': an object"),
        ({"source": None}, "'source': a string is needed, got null"),
        (
            {"outputs": dict.fromkeys(OUTPUTS, 1)},
            "'outputs', field 'good': a string is needed, got 1",
        ),
    ],
)
def test_a_bad_row_of_outputs_is_named(compare, row: dict, message: str) -> None:
    good = {"source": "s", "reference": "r", "outputs": dict.fromkeys(OUTPUTS, "x")}
    with open("rows.jsonl", "a") as stream:
        stream.write(json.dumps(good | row) + "\n")
    refused(compare("rows.jsonl"), f"rows.jsonl, line 5, field {message}")


def test_scores_that_are_not_finite_end_the_comparison(
    compare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "mtmetrics.scorers.xmoverscore.XMoverScore.floor_with_parts", lambda _: (np.nan, {})
    )
    Path("bad.en").write_text("the cat\n\nlarge\n1\n")
    code, out, err = compare(*PARALLEL)
    assert (code, out) == (2, "")
    assert "bad: 1 scores are not finite, the first is that of segment 2" in err


def test_a_system_in_another_script_can_be_given_the_floor(mtmetrics, tmp_path: Path) -> None:
    write(tmp_path / "r", "The house is small.\nNo.\nI see it.\n")
    write(tmp_path / "a", "A house is tiny.\nNo way.\nIt is seen.\n")
    write(tmp_path / "b", "The house is small. дом очень маленький хорошо\nNo.\nI see it.\n")
    files = (
        "--metric",
        "chrf",
        "--lp",
        "de-en",
        "-r",
        tmp_path / "r",
        "-t",
        tmp_path / "a",
        tmp_path / "b",
    )
    means = {}
    for how in ("keep", "floor"):
        [found] = json.loads(
            mtmetrics("compare", *files, "--format", "json", "--degenerate", how)[1]
        )["metrics"]
        means[how] = {
            Path(system["system"]).name: system["mean_score"] for system in found["systems"]
        }
        assert ("degenerate:floor" in found["signature"]) is (how == "floor")
    assert means["floor"]["b"] < means["keep"]["b"]
    assert means["floor"]["a"] == means["keep"]["a"]


def test_metrics_of_four_kinds_in_one_call(mtmetrics, four_metrics) -> None:
    """A metric scores beside others as it scores alone."""
    known = example()
    nine = {
        name: texts * 9 for name, texts in known.systems.items()
    }  # enough for a place between 0 and 100
    for name, texts in {"s": known.sources * 9, "r": known.references * 9, **nine}.items():
        Path(name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    files = (
        "compare",
        "--lp",
        "de-en",
        "-s",
        "s",
        "-r",
        "r",
        "-t",
        *known.systems,
        "--format",
        "json",
    )
    code, out, err = mtmetrics(
        *files, *(part for metric in four_metrics for part in ("--metric", metric))
    )
    assert code == 0, err
    found = json.loads(out)["metrics"]
    assert [one["signature"].split("|")[0] for one in found] == [
        "xmoverscore",
        "comet",
        "scores",
        "cmd",
    ]
    assert [len(one["systems"]) for one in found] == [3] * 4
    lengths = {
        name: np.mean([len(text) / 100 for text in texts]) for name, texts in known.systems.items()
    }
    assert {one["system"]: one["mean_score"] for one in found[2]["systems"]} == pytest.approx(
        lengths
    )
    alone = load_scorer("comet", "regression").score_systems(
        known.systems, sources=known.sources, references=known.references
    )
    for one in found[1]["systems"]:
        assert one["mean_score"] == pytest.approx(alone[one["system"]].system, abs=1e-5)


def test_two_segments_have_no_interval(compare) -> None:
    for name in ("src.de", "good.en", "bad.en"):
        write(Path(name), "".join(f"{line}\n" for line in Path(name).read_text().splitlines()[:2]))
    call = ("-s", "src.de", "-t", "good.en", "bad.en", "--format")
    systems = json.loads(compare(*call, "json")[1])["metrics"][0]["systems"]
    assert [system["ci"] for system in systems] == [None, None]
    table = compare(*call, "table")[1]
    assert "Means of 2 segments (no interval of fewer than 3 segments)" in table
    head, first, *_ = csv.reader(compare(*call, "csv")[1].splitlines())
    row = dict(zip(head, first, strict=True))
    assert (row["low"], row["high"]) == ("", "")


def test_holm_gets_as_many_resamples_as_it_needs(compare) -> None:
    names = [f"system{number}.en" for number in range(9)]
    for number, name in enumerate(names):
        write(Path(name), "the house\n" * 3 + f"{'the dog ' * number}\n")
    call = ("-s", "src.de", "-t", *names, "--metric", "prediction_length")
    compared = functools.partial(compare.func, "compare", *call)
    assert json.loads(compared("--correction", "holm")[1])["resamples"] == 36 * 2 / 0.05
    assert json.loads(compared()[1])["resamples"] == 1000
    refused(compared("--correction", "holm", "--resamples", "1000"), "at least 1440 are needed")
