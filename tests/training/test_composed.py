"""Training of an ESIM that transformer layers compose: it learns, goes on after a stop, and begins
as the encoder."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import both, write_jsonl
from toys import equal_weights, kept_words, record_of
from transformers import AutoModel, AutoTokenizer

from mtmetrics.cli.main import main
from mtmetrics.errors import InputError
from mtmetrics.models.regressor import Regressor
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.statistics.correlation import pearson
from mtmetrics.training.composed import (
    Examples,
    JudgedBatches,
    Objective,
    _begin_as,
    plan_units,
    train_composed,
)
from mtmetrics.training.configs import CompositionConfig
from mtmetrics.training.judged_pairs import JudgedFiles, JudgedPair, read_judged_pairs
from mtmetrics.training.run import Run

STEPS = {"evaluate_every": 1000, "checkpoint_every": 100, "held_back_per_mille": 200}
TINY = CompositionConfig(
    against="either",
    layer=2,
    begun_from="3+3",
    hidden=16,
    dropout=0.0,
    batch=8,
    epochs=20,
    layer_lr=2e-3,
    other_lr=4e-3,
    **STEPS,
)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eighty translations that keep some words of their source, which is their reference too."""
    rows = (
        {
            "lp": "de-en",
            "source": text,
            "reference": text,
            "translation": translation,
            "human": kept,
        }
        for text, translation, kept in kept_words(80)
    )
    return write_jsonl(tmp_path_factory.mktemp("judged") / "kept.jsonl", rows)


@pytest.fixture(scope="module")
def trained(judged: Path, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_composed(
        Run(tmp_path_factory.mktemp("whole") / "esim"),
        JudgedFiles([judged]),
        str(tiny_encoder),
        config=TINY,
    )


def test_one_network_learns_to_judge_against_either(
    trained: Path, judged: Path, tiny_encoder: Path
) -> None:
    pairs = read_judged_pairs([judged], "either")
    for side in ("source", "reference"):
        chosen = [pair for pair in pairs if pair.against == side]
        scorer = load_scorer(
            "esim",
            regressor=str(trained),
            encoder=str(tiny_encoder),
            against=side,
            lang_pair="de-en",
        )
        result = scorer.score(
            [pair.translation for pair in chosen], **{f"{side}s": [pair.other for pair in chosen]}
        )
        assert pearson(result.segments, np.array([pair.human for pair in chosen])).value > 0.8
        assert f"against:{side}" in result.signature
    record = record_of(trained)
    assert -1 <= record["result"]["pearson"] <= 1
    assert sum(record["rows"]["train"].values()) + sum(record["rows"]["validation"].values()) == 160
    assert Regressor.read(trained).floor == 0.0


@pytest.mark.parametrize(("against", "epochs", "count"), [("any", 20, 240), ("both", 40, 80)])
def test_source_and_reference_are_read_together(
    against: str, epochs: int, count: int, judged: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    config = dataclasses.replace(TINY, against=against, epochs=epochs)
    made = train_composed(
        Run(tmp_path / "esim"), JudgedFiles([judged]), str(tiny_encoder), config=config
    )
    rows = record_of(made)["rows"]
    assert sum(rows["train"].values()) + sum(rows["validation"].values()) == count
    pairs = [pair for pair in read_judged_pairs([judged], "any") if pair.against == "both"]
    options = {
        "regressor": str(made),
        "encoder": str(tiny_encoder),
        "against": "both",
        "lang_pair": "de-en",
    }
    scorer = load_scorer("esim", **options)
    texts = [(pair.other, pair.reference) for pair in pairs]
    translations = [pair.translation for pair in pairs]
    result = scorer.score(translations, **both(texts))
    assert pearson(result.segments, np.array([pair.human for pair in pairs])).value > 0.8
    assert "|against:both|" in result.signature
    # One by one, and in another order, as together.
    one = [
        scorer.score([translations[number]], **both(texts[number : number + 1])).segments[0]
        for number in (5, 3)
    ]
    assert result.segments[[5, 3]] == pytest.approx(one, abs=1e-5)
    assert scorer.score(["a dog"], **both([("", "the dog")])).segments.tolist() == [0.0]
    with pytest.raises(InputError, match="alignments: are of two texts"):
        scorer.align(["a dog"], **both(texts[:1]))
    with pytest.raises(
        InputError, match="holds no network that compares with the source and the reference"
    ):
        load_scorer("esim", "mini", against="both", lang_pair="de-en")


def test_layers_begin_as_those_of_the_encoder(tiny_encoder: Path) -> None:
    model = AutoModel.from_pretrained(tiny_encoder, local_files_only=True).eval()
    layer = torch.nn.TransformerEncoderLayer(
        16, 2, 32, 0.0, "gelu", layer_norm_eps=1e-12, batch_first=True
    ).eval()
    _begin_as(layer, model.encoder.layer[1])
    states = torch.randn(2, 5, 16)
    real = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    hidden = torch.zeros(2, 1, 1, 5).masked_fill(
        ~real[:, None, None], torch.finfo(torch.float32).min
    )
    theirs = model.encoder.layer[1](states, hidden)
    theirs = theirs[0] if isinstance(theirs, tuple) else theirs
    assert layer(states, src_key_padding_mask=~real)[real].detach() == pytest.approx(
        theirs[real].detach(), abs=1e-5
    )


@pytest.fixture(scope="module")
def other_encoder(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder of the same width with other weights."""
    folder = tmp_path_factory.mktemp("encoders") / "original"
    model = AutoModel.from_pretrained(tiny_encoder, local_files_only=True, dtype=torch.float32)
    torch.manual_seed(9)
    for values in model.parameters():
        torch.nn.init.normal_(values, std=0.1)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_encoder, local_files_only=True).save_pretrained(folder)
    return folder


class Store:
    """Numbers of texts, and their lengths."""

    def __init__(self, pairs: list[JudgedPair]) -> None:
        texts = dict.fromkeys((pair.other, None) for pair in pairs) | {("t", None): None}
        self.row = {text: number for number, text in enumerate(texts)}
        self.lengths = np.arange(3, 3 + len(texts))


class PiecesStore(Store):
    """Vectors of zeros besides."""

    def pieces(self, texts: np.ndarray) -> torch.Tensor:
        return torch.zeros(int(self.lengths[texts].sum()), 1, 4)


def test_rows_are_read_as_often_as_asked() -> None:
    pairs = [JudgedPair(f"o {n}", "t", 0.0, f"data/{'ab'[n % 2]}.jsonl") for n in range(40)]
    config = dataclasses.replace(TINY, epochs=4, batch=8)
    examples = Examples.of(pairs, config)
    steps = plan_units(Store(pairs), examples, {"a.": 0.25, "b.": 2}, config, seed=1)
    counts = np.bincount(np.concatenate(steps), minlength=40)
    assert (
        counts[::2].tolist() == [1] * 20
    )  # a quarter of them in each of four epochs, another one every time
    assert counts[1::2].tolist() == [8] * 20
    with pytest.raises(InputError, match="--repeat c: no file"):
        plan_units(Store(pairs), examples, {"c": 2}, config, seed=1)


def test_translations_of_one_source_and_worsened_copies_meet() -> None:
    config = dataclasses.replace(TINY, epochs=1, batch=4, difference_weight=1.0)
    pairs = [JudgedPair(f"o {n // 3}", "t", float(n), "f") for n in range(30)]
    pairs.append(JudgedPair("o 3", "t", 1.0, "copies", worse="t"))
    examples = Examples.of(pairs, config)
    store = Store(pairs)
    plan = plan_units(store, examples, {}, config, seed=1)
    assert sorted(np.concatenate(plan).tolist()) == list(range(32))
    step_of = {row: step for step, rows in enumerate(plan) for row in rows.tolist()}
    assert all(step_of[3 * n] == step_of[3 * n + 1] == step_of[3 * n + 2] for n in range(10))
    assert step_of[30] == step_of[31]
    assert examples.better.tolist() == [-1] * 31 + [30]
    assert np.isnan(examples.human[31])


def test_losses_by_hand() -> None:
    class Fixed(torch.nn.Module):
        def forward(self, other: torch.Tensor, *_: object) -> torch.Tensor:
            return other

    config = dataclasses.replace(TINY, difference_weight=2.0, worse_weight=0.5, margin=0.5)
    batch = {
        "other": torch.tensor([0.0, 1.0, 0.9]),
        "human": torch.tensor([0.5, 0.5, torch.nan]),
        "unit": torch.tensor([0, 0, 0]),
        "better": torch.tensor([-1, -1, 1]),
    }
    unused = dict.fromkeys(("prediction", "other_lengths", "prediction_lengths", "against"))
    loss = Objective(Fixed(), config)(**batch, **unused)["loss"].item()
    scores, differences, copies = 0.5 * 0.5**2, 0.5 * 1.0**2, 0.5 - 0.1
    assert loss == pytest.approx(scores + 2.0 * differences + 0.5 * copies)


def test_a_worsened_copy_comes_to_score_less(tiny_encoder: Path, tmp_path: Path) -> None:
    rows = [
        {"lp": "de-en", "source": text, "translation": text, "worse": f"{text} 1 2 3", "human": 0.0}
        for text, _, _ in kept_words(60)
    ]
    judged = write_jsonl(tmp_path / "copies.jsonl", rows)
    valid = write_jsonl(
        tmp_path / "valid.jsonl", [row | {"source": f"is {row['source']}"} for row in rows[:4]]
    )
    config = dataclasses.replace(TINY, against="source", epochs=15, worse_weight=1.0)
    made = train_composed(
        Run(tmp_path / "esim"), JudgedFiles([judged], [valid]), str(tiny_encoder), config=config
    )
    scorer = load_scorer("esim", regressor=str(made), encoder=str(tiny_encoder), lang_pair="de-en")
    sources = [row["source"] for row in rows]
    good, worse = (
        scorer.score([row[name] for row in rows], sources=sources).segments
        for name in ("translation", "worse")
    )
    assert (good > worse + 0.2).mean() > 0.9


def test_a_composition_begins_as_layers_of_another_encoder(
    judged: Path, tiny_encoder: Path, other_encoder: Path, tmp_path: Path
) -> None:
    still = dataclasses.replace(
        TINY, epochs=1, layer_lr=0.0, other_lr=0.0, weight_decay=0.0, begun_from="1+2"
    )
    made = train_composed(
        Run(tmp_path / "esim"),
        JudgedFiles([judged]),
        str(tiny_encoder),
        original=other_encoder,
        config=still,
    )
    layers = Regressor.read(made).members[0].pairs.layers
    original = AutoModel.from_pretrained(other_encoder, local_files_only=True, dtype=torch.float32)
    for layer, begun_from in zip(layers, original.encoder.layer, strict=False):
        assert layer.linear1.weight.detach() == pytest.approx(
            begun_from.intermediate.dense.weight.detach(), abs=1e-3
        )
    assert record_of(made)["original"].startswith(f"{other_encoder.name}#")


def test_judgements_are_bounded() -> None:
    pairs = [JudgedPair(f"o {n}", "t", value, "f") for n, value in enumerate((-9.0, 0.5, 7.0))]
    batch = JudgedBatches([np.arange(3)], PiecesStore(pairs), Examples.of(pairs, TINY))[0]
    assert batch["human"].tolist() == [-4.0, 0.5, 3.0]


@pytest.mark.parametrize("scale", [100.0, -25.0])
def test_judgements_on_another_scale_are_refused(
    scale: float, judged: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in judged.read_text(encoding="utf-8").splitlines()]
    other = write_jsonl(
        tmp_path / "other.jsonl", [row | {"human": scale * (1 + row["human"])} for row in rows]
    )
    files = JudgedFiles([judged, other])
    with pytest.raises(InputError, match="other.*standardise"):
        train_composed(Run(tmp_path / "refused"), files, str(tiny_encoder), config=TINY)
    config = dataclasses.replace(TINY, epochs=1, standardise=True)
    assert train_composed(Run(tmp_path / "made"), files, str(tiny_encoder), config=config).is_dir()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--features", "f1"], "--features: is for the other --composition"),
        (["--seeds", "1", "2"], "a transformer composition has one network"),
        (["--curve-means", "2"], "a transformer composition has one network"),
        (["--begun-from", "4"], "a BERT encoder, 16 wide, with the layers 4 is needed"),
        (["--begun-from", "3+x"], "with the layers 3+x is needed"),
        (["--begin", "nothing-there"], "nothing-there"),
        (["--against", "neither"], "against 'neither'"),
        (["--repeat", "kept=x"], "--repeat needs NAME=NUMBER"),
    ],
)
def test_bad_calls_are_one_line(
    options: list[str],
    message: str,
    judged: Path,
    tiny_encoder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
) -> None:
    call = (
        f"train regressor --composition transformer --encoder {tiny_encoder} --judged {judged} "
        "--layer 2"
    )
    call += f" --begun-from 3 --out {tmp_path / 'out'}"
    assert main([*call.split(), *options]) in (1, 2)
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_network_is_gone_on_with_and_others_are_refused(
    trained: Path, judged: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    still = dataclasses.replace(TINY, epochs=1, layer_lr=0.0, other_lr=0.0, weight_decay=0.0)
    again = train_composed(
        Run(tmp_path / "same"),
        JudgedFiles([judged]),
        str(tiny_encoder),
        begin=trained,
        config=still,
    )
    assert equal_weights(trained, again)
    assert record_of(again)["begin"].startswith("esim#")
    other = dataclasses.replace(TINY, hidden=8)
    with pytest.raises(InputError, match="a network of another form"):
        train_composed(
            Run(tmp_path / "other"),
            JudgedFiles([judged]),
            str(tiny_encoder),
            begin=trained,
            config=other,
        )
