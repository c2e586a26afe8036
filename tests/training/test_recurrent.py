"""Training of regressors: it learns, goes on with the same weights, and writes a whole artifact."""

import csv
import dataclasses
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import write_jsonl
from toys import equal_weights, record_of

from mtmetrics.cli.main import main
from mtmetrics.errors import InputError
from mtmetrics.models.token_encoder import TokenEncoder
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.statistics.correlation import pearson
from mtmetrics.training import regressor_loop
from mtmetrics.training.configs import RegressorConfig
from mtmetrics.training.judged_pairs import (
    JudgedFiles,
    JudgedPair,
    agreement,
    pair_texts,
    read_judged_pairs,
    split,
    without,
)
from mtmetrics.training.recurrent import TrainingData, draw, train_regressor
from mtmetrics.training.regressor_loop import LayerStore, train_member
from mtmetrics.training.run import Run

WORDS = ["house", "dog", "cat", "tree", "the", "a", "is", "not", "small", "large", "i", "see", "there"]
TINY = RegressorConfig(hidden=6, batch=4, epochs=3, learning_rate=1e-2, held_back_per_mille=300)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty references of five words, translations that keep some of them, judged by how many they keep; the sources
    say the words the other way round."""
    rng = random.Random(3)
    rows = []
    for _ in range(60):
        reference = rng.sample(WORDS, 5)
        kept = rng.randint(0, 5)
        translation = reference[:kept] + rng.sample(["1", "2", "3", ".", "!", "stands"], 5 - kept)
        rows.append(
            {
                "ref": " ".join(reference),
                "src": " ".join(reversed(reference)),
                "mt": " ".join(translation),
                "score": kept / 5,
            }
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
    config = RegressorConfig(architecture=architecture, against=against, hidden=16, dropout=0.0, **schedule)
    encoder = str(tiny_encoder)
    data = prepared(tmp_path / "out", judged, encoder, config)
    dozen = data.train_rows.take(np.arange(12))
    best, history = train_member(lambda: data.create(dozen), dozen, dozen, config, 1, tmp_path / "state.pt")
    assert history[-1]["loss"] < history[0]["loss"] / 5
    # What was learnt is there when the scorer reads the texts.
    data.save(tmp_path / "saved", [best])
    scorer = load_scorer(architecture, regressor=str(tmp_path / "saved"), encoder=encoder)
    pairs = data.train_pairs[:12]
    others = [pair.other if against == "reference" else (pair.other, pair.reference) for pair in pairs]
    result = scorer.score(others, [pair.translation for pair in pairs])
    assert pearson(result.segments, np.array([pair.human for pair in pairs])).value > 0.95
    assert f"|against:{against}|" in result.signature


def test_artifact_scores_as_it_was_validated(judged: Path, tiny_encoder: Path, tmp_path: Path) -> None:
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
    scores = load_scorer("esim", regressor=str(folder), encoder=str(tiny_encoder)).score(others, translations).segments
    assert pearson(scores, np.array(human)).value == pytest.approx(record["result"]["pearson"], abs=2e-3)


def test_goes_on_where_it_was_stopped(
    judged: Path, tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = dataclasses.replace(TINY, features="f1")
    train_regressor(Run(tmp_path / "whole"), JudgedFiles([judged]), str(tiny_encoder), seeds=[1, 2], config=config)
    forward, calls = regressor_loop._forward, []

    def stopping(*arguments: object) -> object:
        calls.append(1)
        if len(calls) in (5, 30):
            raise KeyboardInterrupt
        return forward(*arguments)

    monkeypatch.setattr(regressor_loop, "_forward", stopping)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            train_regressor(
                Run(tmp_path / "parts"), JudgedFiles([judged]), str(tiny_encoder), seeds=[1, 2], config=config
            )
        assert not (tmp_path / "parts").exists()
    train_regressor(Run(tmp_path / "parts"), JudgedFiles([judged]), str(tiny_encoder), seeds=[1, 2], config=config)
    assert equal_weights(tmp_path / "whole", tmp_path / "parts")
    logs = [(tmp_path / name / "training_log.csv").read_text() for name in ("whole", "parts")]
    assert logs[0] == logs[1]


def test_layers_are_computed_once_and_go_on_after_an_interruption(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = TokenEncoder(tiny_encoder, mix=np.eye(3), cache_bytes=0)
    texts = ["the house", "a dog sleeps", "i", "there is not a tree", "cat"]
    given = [(text, None) for text in texts]
    monkeypatch.setattr("mtmetrics.training.regressor_loop._TEXTS_PER_SAVE", 2)
    encode, calls = encoder.encode, []

    def stopping(part: list[str], languages: list[None]) -> object:
        calls.append(part)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return encode(part)

    monkeypatch.setattr(encoder, "encode", stopping)
    with pytest.raises(KeyboardInterrupt):
        LayerStore(tmp_path, encoder, given)
    [layers] = tmp_path.glob("*.layers")
    with open(layers, "ab") as stream:
        stream.write(b"half a row")
    store = LayerStore(tmp_path, encoder, given)
    LayerStore(tmp_path, encoder, given)
    assert calls == [texts[:2], texts[2:4], texts[2:4], texts[4:]]
    expected = encode(texts)
    assert store.vectors.reshape(-1, 48) == pytest.approx(expected.vectors, abs=2e-3)
    assert store.lengths.tolist() == (expected.lengths - 2).tolist()
    pieces = store.pieces(np.array([3, 0]))
    assert pieces.shape == (5 + 2, 3, 16)
    assert pieces[5:, 2].numpy() == pytest.approx(expected.vectors[expected.rows(0)][1:-1, 32:], abs=2e-3)
    second = expected.vectors[expected.rows(3)][:, 16:32]
    assert store.layer(2, np.array([3])).vectors == pytest.approx(second, abs=2e-3)


def test_training_and_validation_share_no_text_to_compare_with() -> None:
    pairs = [JudgedPair(f"Text {number // 3}.", f"t {number}", 0.0, "f") for number in range(90)]
    train, valid = split(pairs, 300)
    assert sorted(train + valid) == sorted(pairs)
    others = [pair.other for pair in valid]
    assert not {pair.other for pair in train} & set(others)
    assert all(others.count(text) == 3 for text in others)
    assert without(pairs, valid) == train
    with pytest.raises(InputError, match="90 judged translations are too few to train on and to hold some back"):
        split(pairs, 0)
    with pytest.raises(InputError, match="all rows compare with a text of --valid"):
        without(valid, pairs)


def test_neither_source_nor_reference_is_on_both_sides() -> None:
    pairs = [
        JudgedPair(f"s {number}", f"t {number}", 0.0, "f", against="both", reference=f"r {number % 45}")
        for number in range(90)
    ]
    train, valid = split(pairs, 300)
    assert train
    assert not {pair.other for pair in train} & {pair.other for pair in valid}
    assert not {pair.reference for pair in train} & {pair.reference for pair in valid}
    assert without(pairs[:50], pairs[85:]) == pairs[:40] + pairs[45:50]


def test_ranking_loss_by_hand() -> None:
    human = torch.tensor([1.0, 0.0, 0.05])
    # Two ordered pairs (0 over 1, 0 over 2); 1 and 2 are judged too much alike.
    assert regressor_loop.ranking_loss(torch.tensor([0.3, 0.0, 0.25]), human).item() == pytest.approx((0.0 + 0.05) / 2)
    assert regressor_loop.ranking_loss(torch.tensor([0.0, 0.2, -1.0]), human).item() == pytest.approx((0.3 + 0.0) / 2)


def test_judgements_are_standardised_file_by_file(tmp_path: Path) -> None:
    scores = {"a": (1, 2, 3), "b": (100, 200, 300), "equal": (5, 5)}
    paths = [
        write_jsonl(tmp_path / f"{name}.jsonl", ({"ref": "r", "mt": "t", "score": value} for value in values))
        for name, values in scores.items()
    ]
    human = np.array([pair.human for pair in read_judged_pairs(paths[:2], "reference", standardise=True)])
    assert human[:3] == pytest.approx(human[3:])
    assert (human[:3].mean(), human[:3].std()) == pytest.approx((0, 1))
    with pytest.raises(InputError, match=r"equal\.jsonl: all judgements are equal"):
        read_judged_pairs(paths, "reference", standardise=True)


def test_blank_rows_are_left_out_and_there_must_be_others(tmp_path: Path) -> None:
    rows = [{"ref": "r", "mt": " ", "score": 1}, {"ref": "", "mt": "t", "score": 1}]
    blank = write_jsonl(tmp_path / "blank.jsonl", rows)
    with pytest.raises(InputError, match=r"blank\.jsonl: holds no judged translation"):
        read_judged_pairs([blank], "reference")
    some = write_jsonl(tmp_path / "some.jsonl", [*rows, {"ref": "r", "mt": "t", "score": 2}])
    assert read_judged_pairs([some], "reference") == [JudgedPair("r", "t", 2.0, f"{tmp_path.name}/some.jsonl")]
    with pytest.raises(InputError, match="pass at least one file with --judged"):
        read_judged_pairs([], "reference")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"mt": "t", "score": 1}, "no field 'reference' or 'ref'"),
        ({"ref": "r", "mt": "t", "score": float("nan")}, "field 'score': a finite number is needed, got nan"),
    ],
)
def test_bad_rows_are_named(row: dict, message: str, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "bad.jsonl", [{"ref": "r", "mt": "t", "score": 1}, row])
    with pytest.raises(InputError, match=f"bad.jsonl, line 2.*{message}"):
        read_judged_pairs([path], "reference")


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
        ({"against": "both", "features": "f1"}, "features 'f1': are of two texts; pass none where against is both"),
    ],
)
def test_bad_settings_are_named(setting: dict, message: str, judged: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    seeds = setting.pop("seeds", [1])
    config = dataclasses.replace(TINY, **setting)
    with pytest.raises(InputError, match=message):
        train_regressor(Run(tmp_path / "out"), JudgedFiles([judged]), str(tiny_encoder), seeds=seeds, config=config)
    assert not (tmp_path / "out.work").exists()


def test_command(judged: Path, tiny_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ({"ref": f"a dog {number}", "mt": "a " * number, "score": number} for number in (1, 2, 3))
    valid = write_jsonl(tmp_path / "valid.jsonl", rows)
    arguments = f"train regressor --judged {judged} --encoder {tiny_encoder} --out {tmp_path / 'out'} --valid {valid}"
    arguments += f" --vectors {tmp_path / 'vectors'} --architecture bilstm --hidden 4 --epochs 1 --seeds 7"
    assert main(arguments.split()) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'out'}\n"
    record = record_of(tmp_path / "out")
    assert (record["seed"], record["valid"], len(record["judged"])) == (7, [f"{tmp_path.name}/valid.jsonl"], 1)
    assert [sum(counts.values()) for counts in record["rows"].values()] == [60, 3]
    assert len(list((tmp_path / "vectors").glob("*.layers"))) == 1
    assert main(arguments.split()) == 2
    assert "exists already" in capsys.readouterr().err


def test_curve(judged: Path, tiny_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = f"train regressor --judged {judged} --encoder {tiny_encoder} --out {tmp_path / 'out'}"
    arguments += " --hidden 4 --epochs 2 --held-back-per-mille 300 --seeds 1 2"
    assert main([*arguments.split(), "--curve", "12,500"]) == 2
    assert "curve [12, 500]: pass numbers from 2 to" in capsys.readouterr().err
    assert main([*arguments.split(), "--restart", "--curve", "30,12"]) == 0
    folder = tmp_path / "out"
    rows = table(folder / "curve.csv")
    assert [(row["instances"], row["seed"]) for row in rows] == [("12", "1"), ("12", "2"), ("30", "1"), ("30", "2")]
    record = record_of(folder)
    assert record["curve"] == [12, 30]
    assert record["result"]["12"] == pytest.approx((float(rows[0]["pearson"]) + float(rows[1]["pearson"])) / 2)
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert {row["instances"] for row in table(folder / "training_log.csv")} == {"12", "30"}


def test_a_network_knows_nothing_of_judgements_that_it_was_not_given(
    judged: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    config = dataclasses.replace(TINY, features="f1+length", epochs=1)
    data = prepared(tmp_path / "out", judged, str(tiny_encoder), config)
    best, _ = data.train(1, np.arange(12), "before")
    data.train_rows.human[12:] *= -3
    again, _ = data.train(1, np.arange(12), "after")
    assert all(torch.equal(values, again[name]) for name, values in best.items())


def test_without_matplotlib_the_plot_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with caplog.at_level("INFO"):
        draw({"a": {1: 0.5}}, tmp_path / "curve.png", title="t", x_label="x")
    assert "[plot]'" in caplog.text
    assert not (tmp_path / "curve.png").exists()


def test_the_agreement_is_that_of_the_groups_where_it_is_defined(recwarn: pytest.WarningsRecorder) -> None:
    pairs = [
        JudgedPair("o", "t", value, group)
        for group, values in {"a": (1, 2, 3), "b": (5, 5)}.items()
        for value in values
    ]
    groups = [pair.group for pair in pairs]
    found = agreement(np.array([3.0, 2.0, 1.0, 0.0, 1.0]), pairs, groups)
    assert found == {"pearson_a": -1.0, "pearson": -1.0}
    assert agreement(np.zeros(5), pairs, groups) == {}
    assert not recwarn.list


def test_null_is_no_judgement(tmp_path: Path) -> None:
    rows = [{"ref": "r", "mt": "t", "score": 2}, {"ref": "r", "mt": "t", "score": None}]
    path = write_jsonl(tmp_path / "some.jsonl", rows)
    assert [pair.human for pair in read_judged_pairs([path], "reference")] == [2.0]


def test_judgements_are_read_as_the_shared_task_published_them(tmp_path):
    for name, line in {
        "source": "ein Haus",
        "mt-system": "a house",
        "reference": "the house",
        "human": "-0.25",
    }.items():
        (tmp_path / f"DAseg.newstest2016.{name}.de-en").write_text(f"{line}\n", encoding="utf-8")
    [pair] = read_judged_pairs([tmp_path / "DAseg.newstest2016.human.de-en"], "reference")
    assert (pair.other, pair.translation, pair.human, pair.languages) == ("the house", "a house", -0.25, ("en", "en"))


def test_either_reads_a_row_for_each_text_that_it_has(tmp_path: Path) -> None:
    rows = [
        {"lp": "de-en", "source": "s", "reference": "r", "translation": "t", "human": 1},
        {"lp": "de-en", "source": "s", "reference": None, "translation": "t", "human": 2},
        {"lp": "de-en", "reference": "r", "translation": "t", "human": 3},
    ]
    pairs = read_judged_pairs([write_jsonl(tmp_path / "rows.jsonl", rows)], "either")
    assert [(pair.against, pair.human) for pair in pairs] == [
        ("source", 1.0),
        ("reference", 1.0),
        ("source", 2.0),
        ("reference", 3.0),
    ]
    assert [pair.languages for pair in pairs[:2]] == [("de", "en"), ("en", "en")]
    both = read_judged_pairs([tmp_path / "rows.jsonl"], "any")
    assert [pair.against for pair in both] == ["source", "reference", "both", "source", "reference"]
    assert (both[2].other, both[2].reference, both[2].human) == ("s", "r", 1.0)
    assert pair_texts(both[2]) == [("s", "de"), ("r", "en"), ("t", "en")]


def test_both_texts_must_be_there(tmp_path: Path) -> None:
    row = {"src": "s", "ref": "r", "mt": "t", "score": 1}
    path = write_jsonl(tmp_path / "rows.jsonl", [row, row | {"src": " "}, row | {"ref": ""}])
    [pair] = read_judged_pairs([path], "both")
    assert (pair.other, pair.reference, pair.against) == ("s", "r", "both")
    for missing, name in (("src", "source"), ("ref", "reference")):
        rows = [{key: value for key, value in row.items() if key != missing}]
        with pytest.raises(InputError, match=f"line 1: .*no field '{name}'"):
            read_judged_pairs([write_jsonl(tmp_path / "rows.jsonl", rows)], "both")
