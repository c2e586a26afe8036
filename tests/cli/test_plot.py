"""``mtmetrics evaluate --plot`` in process: what is handed to the plots, what is printed, what is refused."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from helpers import refused, write, write_jsonl

import mtmetrics.reports.plots as plots
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.statistics.correlation import pearson

SOURCES = ["Das Haus ist klein.", "Der Hund schläft.", "Ich sehe die Katze.", "Ein Baum.", "Nein."]
PREDICTIONS = [
    "the house is small.",
    "the dog sleeps.",
    "i see a cat.",
    "a tree stands",
    "the house is large.",
]
HUMAN = [1.0, 0.7, 0.1, 0.9, None]


@pytest.fixture
def plot(tmp_path: Path, tiny_preset: Path, mtmetrics, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    columns = ("lp", "source", "translation", "human", "sentbleu")
    for pair in ("de-en", "fi-en"):
        rows = zip([pair] * 5, SOURCES, PREDICTIONS, HUMAN, range(5), strict=True)
        write_jsonl(Path(f"{pair}.jsonl"), (dict(zip(columns, row, strict=True)) for row in rows))
    given = ("--plot", "plot.png", "--device", "cpu", "--preset", tiny_preset)
    return lambda kind, *argv: mtmetrics("evaluate", "--draw", kind, *given, *argv)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list:
    """Arguments of what is drawn by scatter and bars."""
    calls = []
    for name in ("draw_scatter", "draw_bars"):
        real = getattr(plots, name)
        monkeypatch.setattr(
            plots, name, lambda *a, real=real, **k: calls.append((*a, k)) or real(*a, **k)
        )
    return calls


@pytest.fixture
def parts(tiny_preset: Path) -> dict[str, np.ndarray]:
    """Score and parts of the four judged segments of de-en."""
    result = load_scorer("xmoverscore", preset=str(tiny_preset), lang_pair="de-en").score(
        PREDICTIONS, sources=SOURCES
    )
    return {name: values[:4] for name, values in {"score": result.segments, **result.parts}.items()}


def test_scatter_shows_the_judged_segments(
    plot, parts: dict[str, np.ndarray], drawn: list, tiny_preset: Path
) -> None:
    title = f"xmoverscore:{tiny_preset}"
    argv = [
        "--data",
        "de-en.jsonl",
        "fi-en.jsonl",
        "--metric",
        "xmoverscore",
        "--column",
        "sentbleu",
    ]
    code, out, err = plot("scatter", *argv)
    assert (code, err) == (0, "")
    assert out
    [(panels, _)] = drawn
    assert list(panels) == ["de-en", "fi-en"]
    assert list(panels["de-en"]) == [title, "sentbleu (column)"]
    scores, human = panels["de-en"][title]
    assert scores == pytest.approx(parts["score"].tolist())
    assert human.tolist() == HUMAN[:4]
    assert panels["fi-en"]["sentbleu (column)"][0] == [0, 1, 2, 3]
    assert Path("plot.png").read_bytes().startswith(b"\x89PNG")


def test_bars_are_correlations_with_intervals_and_their_mean(
    plot, parts: dict[str, np.ndarray], drawn: list, tiny_preset: Path
) -> None:
    assert plot("bars", "--data", "de-en.jsonl", "fi-en.jsonl")[0] == 0
    [(bars, groups, labels)] = drawn
    assert groups == ["de-en", "fi-en", "mean"]
    first, second, mean = bars[f"xmoverscore:{tiny_preset}"]
    assert first.value == pytest.approx(pearson(parts["score"], HUMAN[:4]).value)
    assert first.low <= first.high
    assert mean.value == pytest.approx((first.value + second.value) / 2)
    assert np.isnan(mean.low)
    assert labels["y_label"] == "pearson with human judgements"
    drawn.clear()
    assert (
        plot("bars", "--data", "de-en.jsonl", "--column", "sentbleu", "--coefficient", "kendall-b")[
            0
        ]
        == 0
    )
    [(bars, groups, labels)] = drawn
    assert (list(bars), groups) == (["sentbleu (column)"], ["de-en"])
    assert labels["y_label"] == "kendall-b with human judgements"


def test_weights_are_printed_with_the_best_and_a_warning(
    plot, parts: dict[str, np.ndarray], tiny_preset: Path
) -> None:
    code, out, err = plot("weights", "--data", "de-en.jsonl", "--steps", "4")
    assert code == 0
    shown = json.loads(out)
    assert (shown["metric"], shown["parts"], len(shown["grid"])) == (
        f"xmoverscore:{tiny_preset}",
        ["mover", "lm"],
        5,
    )
    middle = shown["grid"][2]
    assert middle["weights"] == {"mover": 0.5, "lm": 0.5}
    expected = pearson(parts["mover"] + parts["lm"], HUMAN[:4]).value
    assert middle["correlations"]["de-en"] == pytest.approx(
        expected, rel=1e-5
    )  # six digits are printed
    first, second = err.splitlines()
    assert first.startswith("mtmetrics: best weights: mover ")
    assert second.startswith("mtmetrics: warning: weights belong to development data")
    assert Path("plot.png").exists()


def test_the_sign_of_a_part_can_be_turned(plot) -> None:
    plain, turned = (
        json.loads(plot("weights", "--data", "de-en.jsonl", "--steps", "1", f"--weigh={parts}")[1])[
            "grid"
        ]
        for parts in ("lm,mover", "lm,-mover")
    )
    assert turned[0]["correlations"] == plain[0]["correlations"]
    assert turned[1]["weights"] == {"lm": 0.0, "-mover": 1.0}
    assert turned[1]["correlations"]["de-en"] == pytest.approx(-plain[1]["correlations"]["de-en"])


def test_the_weights_of_uscore_are_those_of_its_word_level(plot, tiny_encoder, tiny_lm) -> None:
    models = {"encoder": tiny_encoder, "sentences": tiny_encoder, "language_models.en": tiny_lm}
    tables = "".join(f'[{table}]\nmodel = "{model}"\n' for table, model in models.items())
    write(
        Path("made/preset.toml"),
        f'{tables}[maps]\nkind = "none"\n[score]\nwithout = ["translation"]\n',
    )
    code, out, _ = plot(
        "weights", "--data", "de-en.jsonl", "--steps", "2", "--metric", "uscore:made"
    )
    # Its result has the parts wrd and snt too.
    assert (code, json.loads(out)["parts"]) == (0, ["wmd", "lm"])


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["scatter", "--data", "none.jsonl"], "none.jsonl: no such file"),
        (
            ["scatter", "--data", "de-en.jsonl", "--plot", "plot.gif"],
            "must end in .png, .svg, .pdf",
        ),
        (["scatter", "--data", "de-en.jsonl", "--plot", "no/plot.png"], "there is no folder no"),
        (
            ["bars", "--data", "de-en.jsonl", "--lp", "fi-en"],
            "holds no row of the language pair fi-en",
        ),
        (["bars", "--data", "de-en.jsonl", "--column", "bleu"], "no column of numbers 'bleu'"),
        (
            ["weights", "--data", "de-en.jsonl", "--metric", "bertr", "--metric", "chrf"],
            "the parts of one metric",
        ),
        (
            ["weights", "--data", "de-en.jsonl", "--weigh", "lm"],
            "two or three of mover, lm are needed, got lm",
        ),
        (
            ["weights", "--data", "de-en.jsonl", "--weigh", "lm,-lm"],
            "two or three of mover, lm are needed",
        ),
        (["weights", "--data", "de-en.jsonl", "--weigh", "lm,wmd"], "no part 'wmd'"),
        (
            ["weights", "--data", "de-en.jsonl", "--metric", "prediction_length"],
            "has no parts to weigh",
        ),
        (["weights", "--data", "de-en.jsonl", "--steps", "0"], "steps 0"),
    ],
)
def test_bad_usage_is_one_line_and_leaves_no_file(plot, argv: list[str], message: str) -> None:
    refused(plot(*argv), message)
    assert not list(Path().rglob("*.p[nd]*"))


def test_scores_that_are_constant_are_named(plot) -> None:
    Path("de-en.jsonl").write_text(
        re.sub('"sentbleu": [0-9]', '"sentbleu": 1', Path("de-en.jsonl").read_text())
    )
    code, _, err = plot("bars", "--data", "de-en.jsonl", "--column", "sentbleu")
    problem = "de-en.jsonl (de-en): no correlation for sentbleu (column): the scores are constant"
    assert (code, err) == (0, f"mtmetrics: warning: {problem}\n")
