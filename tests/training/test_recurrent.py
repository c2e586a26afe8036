"""Training of recurrent regressors: it learns, goes on with the same weights, and writes a whole
artifact."""

import csv
import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import both, write_jsonl
from toys import equal_weights, kept_words, record_of

from mtmetrics.cli.main import main
from mtmetrics.errors import InputError
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.statistics.correlation import pearson
from mtmetrics.training.configs import RegressorConfig
from mtmetrics.training.judged_pairs import JudgedFiles, read_judged_pairs, split
from mtmetrics.training.recurrent import TrainingData, _draw_means, draw, train_regressor
from mtmetrics.training.regressor_loop import train_member
from mtmetrics.training.run import Run

TINY = RegressorConfig(hidden=6, batch=4, epochs=3, learning_rate=1e-2, held_back_per_mille=300)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty references, and translations judged by how many of their words they keep; the sources
    say the words the other way round."""
    rows = (
        {"ref": text, "src": " ".join(reversed(text.split())), "mt": translation, "score": kept}
        for text, translation, kept in kept_words(60)
    )
    return write_jsonl(tmp_path_factory.mktemp("judged") / "de-en.jsonl", rows)


def prepared(output: Path, judged: Path, encoder: str, config: RegressorConfig) -> TrainingData:
    return TrainingData(Run(output), config, encoder, JudgedFiles([judged]))


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


@pytest.mark.parametrize("against", ["reference", "both"])
@pytest.mark.parametrize("architecture", ["bilstm", "bilstm_attention", "esim"])
def test_learns_a_dozen_pairs_by_heart(
    architecture: str, against: str, judged: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    schedule = {"learning_rate": 1e-2, "epochs": 30, "patience": 30, "batch": 2}
    config = RegressorConfig(
        architecture=architecture, against=against, hidden=16, dropout=0.0, **schedule
    )
    encoder = str(tiny_encoder)
    data = prepared(tmp_path / "out", judged, encoder, config)
    dozen = data.train_rows.take(np.arange(12))
    torch.manual_seed(1)
    best, history = train_member(data.create(dozen), dozen, dozen, config, 1, tmp_path / "state.pt")
    assert history[-1]["loss"] < history[0]["loss"] / 5
    # What was learnt is there when the scorer reads the texts.
    data.save(tmp_path / "saved", [best])
    scorer = load_scorer(architecture, regressor=str(tmp_path / "saved"), encoder=encoder)
    pairs = data.train_pairs[:12]
    columns = {"references": [pair.other for pair in pairs]}
    if against == "both":
        columns = both([(pair.other, pair.reference) for pair in pairs])
    result = scorer.score([pair.translation for pair in pairs], **columns)
    assert pearson(result.segments, np.array([pair.human for pair in pairs])).value > 0.95
    assert f"|against:{against}|" in result.signature


def test_artifact_scores_as_it_was_validated(
    judged: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    config = dataclasses.replace(TINY, features="f1+length", feature_layers="1+3", ranking=0.5)
    folder = train_regressor(
        Run(tmp_path / "out"), JudgedFiles([judged]), str(tiny_encoder), seeds=[4, 5], config=config
    )
    files = ["config.json", "model.safetensors", "training.json", "training_log.csv"]
    assert sorted(path.name for path in folder.iterdir()) == files
    record = record_of(folder)
    assert record["config"]["architecture"] == "esim"
    assert record["seeds"] == [4, 5]
    assert sum(record["rows"]["train"].values()) + sum(record["rows"]["validation"].values()) == 60
    log = table(folder / "training_log.csv")
    assert [row["seed"] + row["epoch"] for row in log] == ["41", "42", "43", "51", "52", "53"]
    best = [max(float(row["pearson"]) for row in log if row["seed"] == seed) for seed in "45"]
    assert list(record["result"]["seeds"].values()) == pytest.approx(best, abs=1e-5)
    assert record["result"]["spread"]["lowest"] == pytest.approx(min(best), abs=1e-5)

    _, valid = split(read_judged_pairs([judged], "reference"), 300)
    others, translations, human, *_ = (list(column) for column in zip(*valid, strict=True))
    scores = (
        load_scorer("esim", regressor=str(folder), encoder=str(tiny_encoder))
        .score(translations, references=others)
        .segments
    )
    assert pearson(scores, np.array(human)).value == pytest.approx(
        record["result"]["pearson"], abs=2e-3
    )


def test_goes_on_where_it_was_stopped(
    judged: Path, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = dataclasses.replace(TINY, features="f1")
    train_regressor(
        Run(tmp_path / "whole"),
        JudgedFiles([judged]),
        str(tiny_encoder),
        seeds=[1, 2],
        config=config,
    )
    step, steps = torch.optim.Adam.step, []

    def stopping(*arguments: object) -> object:
        steps.append(1)
        if len(steps) in (5, 30):
            raise KeyboardInterrupt
        return step(*arguments)

    monkeypatch.setattr(torch.optim.Adam, "step", stopping)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            train_regressor(
                Run(tmp_path / "parts"),
                JudgedFiles([judged]),
                str(tiny_encoder),
                seeds=[1, 2],
                config=config,
            )
        assert not (tmp_path / "parts").exists()
    train_regressor(
        Run(tmp_path / "parts"),
        JudgedFiles([judged]),
        str(tiny_encoder),
        seeds=[1, 2],
        config=config,
    )
    assert equal_weights(tmp_path / "whole", tmp_path / "parts")
    logs = [(tmp_path / name / "training_log.csv").read_text() for name in ("whole", "parts")]
    assert logs[0] == logs[1]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"seeds": [3, 3]}, "seeds \\[3, 3\\]: pass one or several different numbers"),
        ({"architecture": "tree"}, "architecture"),
        ({"features": "f1+bleu"}, "features 'f1\\+bleu'"),
        ({"features": "f1", "feature_layers": "0+4"}, "feature_layers '0\\+4'"),
        ({"epochs": 0}, "epochs"),
        ({"dropout": 1.0}, "dropout 1.0"),
        ({"against": "either"}, "against 'either'"),
        (
            {"against": "both", "features": "f1"},
            "features 'f1': are of two texts; pass none where against is both",
        ),
    ],
)
def test_bad_settings_are_named(
    setting: dict, message: str, judged: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    seeds = setting.pop("seeds", [1])

    def train() -> None:
        train_regressor(
            Run(tmp_path / "out"),
            JudgedFiles([judged]),
            str(tiny_encoder),
            seeds=seeds,
            config=dataclasses.replace(TINY, **setting),
        )

    with pytest.raises(InputError, match=message):
        train()
    assert not (tmp_path / "out.work").exists()


def test_command(
    judged: Path, tiny_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = (
        {"ref": f"a dog {number}", "mt": "a " * number, "score": number} for number in (1, 2, 3)
    )
    valid = write_jsonl(tmp_path / "valid.jsonl", rows)
    arguments = (
        f"train regressor --judged {judged} --encoder {tiny_encoder} --out {tmp_path / 'out'} "
        f"--valid {valid}"
    )
    arguments += (
        f" --vectors {tmp_path / 'vectors'} --architecture bilstm --hidden 4 --epochs 1 --seeds 7"
    )
    assert main(arguments.split()) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'out'}\n"
    record = record_of(tmp_path / "out")
    assert (record["seed"], record["valid"], len(record["judged"])) == (
        7,
        [f"{tmp_path.name}/valid.jsonl"],
        1,
    )
    assert [sum(counts.values()) for counts in record["rows"].values()] == [60, 3]
    assert len(list((tmp_path / "vectors").glob("*.layers"))) == 1
    assert main(arguments.split()) == 2
    assert "exists already" in capsys.readouterr().err


def test_curve(
    judged: Path, tiny_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (
        f"train regressor --judged {judged} --encoder {tiny_encoder} --out {tmp_path / 'out'}"
    )
    arguments += " --hidden 4 --epochs 2 --held-back-per-mille 300 --seeds 1 2"
    assert main([*arguments.split(), "--curve", "12,500"]) == 2
    assert "curve [12, 500]: pass numbers from 2 to" in capsys.readouterr().err
    assert main([*arguments.split(), "--restart", "--curve", "30,12"]) == 0
    folder = tmp_path / "out"
    rows = table(folder / "curve.csv")
    assert [(row["instances"], row["seed"]) for row in rows] == [
        ("12", "1"),
        ("12", "2"),
        ("30", "1"),
        ("30", "2"),
    ]
    record = record_of(folder)
    assert record["curve"] == [12, 30]
    assert record["result"]["12"] == pytest.approx(
        (float(rows[0]["pearson"]) + float(rows[1]["pearson"])) / 2
    )
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert {row["instances"] for row in table(folder / "training_log.csv")} == {"12", "30"}


def test_a_curve_of_means_of_judgements(
    tiny_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each translation is judged three times; the last one four times."""
    rows = [
        {"ref": text, "mt": translation, "score": kept + noise}
        for text, translation, kept in kept_words(30)
        for noise in (-0.5, 0.0, 0.5)
    ]
    judged = write_jsonl(tmp_path / "judged.jsonl", [*rows, rows[-1]])
    valid = write_jsonl(tmp_path / "valid.jsonl", rows[:9:3])
    arguments = (
        f"train regressor --judged {judged} --valid {valid} --encoder {tiny_encoder} --hidden 4 "
        f"--epochs 1 --seeds 1 2 --out {tmp_path / 'out'} --curve 10"
    )
    assert main([*arguments.split(), "--curve-means", "1,5"]) == 2
    assert "--curve-means [1, 5]: pass numbers from 1 to 4" in capsys.readouterr().err
    assert main([*arguments.split(), "--restart", "--curve-means", "3,1"]) == 0
    points = table(tmp_path / "out" / "curve.csv")
    held_back = {row["ref"] for row in rows[:9:3]}
    translations = len({(row["ref"], row["mt"]) for row in rows if row["ref"] not in held_back})
    assert [(point["instances"], point["judgements"]) for point in points] == [
        ("10", "10"),
        ("10", "10"),
        *[(str(translations), str(translations))] * 2,
        *[(str(translations), str(3 * translations))] * 2,
    ]
    assert record_of(tmp_path / "out")["curve_means"] == [1, 3]
    arguments = f"train regressor --judged {judged} --encoder e --out {tmp_path / 'o'}"
    assert main([*arguments.split(), "--curve-means", "2"]) == 2
    assert "pass --curve too" in capsys.readouterr().err


def test_means_are_of_the_judgements_of_one_translation(
    judged: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    rows = [
        {"ref": "a dog", "mt": "the dog", "score": 1.0},
        {"ref": "a cat", "mt": "the cat", "score": 5.0},
        {"ref": "a dog", "mt": "the dog", "score": 3.0},
    ]
    files = JudgedFiles([write_jsonl(tmp_path / "judged.jsonl", rows)], [judged])
    data = TrainingData(Run(tmp_path / "out"), TINY, str(tiny_encoder), files)
    drawn = _draw_means(data, 2, seed=1)
    assert (drawn.examples.human.tolist(), drawn.judgements) == ([2.0, 5.0], 3)
    translations = data.train_rows.translations[[0, 1]]
    assert drawn.examples.translations.tolist() == translations.tolist()
    single = _draw_means(data, 1, seed=1)
    assert single.examples.human[0] in (1.0, 3.0)
    assert single.judgements == 2


def test_a_network_knows_nothing_of_judgements_that_it_was_not_given(
    judged: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    config = dataclasses.replace(TINY, features="f1+length", epochs=1)
    data = prepared(tmp_path / "out", judged, str(tiny_encoder), config)
    best, _ = data.train(1, data.train_rows.take(np.arange(12)), "before")
    data.train_rows.human[12:] *= -3
    again, _ = data.train(1, data.train_rows.take(np.arange(12)), "after")
    assert all(torch.equal(values, again[name]) for name, values in best.items())


def test_without_matplotlib_the_plot_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with caplog.at_level("INFO"):
        draw({"a": {1: 0.5}}, tmp_path / "curve.png", title="t", x_label="x")
    assert "[plot]'" in caplog.text
    assert not (tmp_path / "curve.png").exists()
