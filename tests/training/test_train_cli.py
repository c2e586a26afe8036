"""``mtmetrics train``: what its options become, and how it fails."""

import argparse
import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

from mtmetrics.cli import train
from mtmetrics.errors import InputError
from mtmetrics.training.run import Run
from mtmetrics.training.settings import (
    ContrastiveConfig,
    DistilConfig,
    EncoderConfig,
    LMConfig,
    RegressorConfig,
    TranslationConfig,
)

_LM, _DE_EN = {"parallel": [], "side": "target"}, {"parallel": ["de-en.jsonl"]}


def parse(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    train.add_parser(parser.add_subparsers())
    return parser.parse_args(["train", *argv])


@pytest.mark.parametrize(
    ("function", "argv", "run", "given", "config"),
    [
        (
            "lm.train_lm",
            "lm --out out --mono en.txt:1-5=news --exclude-origin a b* --weight news=3 --seed 4 --layers 5 "
            "--matrix-lr 0.01 --bf16",
            {"output": Path("out"), "seed": 4, "work": Path("out.work"), "overwrite": False, "restart": False},
            _LM | {"mono": ["en.txt:1-5=news"], "exclude": ["a", "b*"], "weights": {"news": 3}},
            LMConfig(layers=5, matrix_lr=0.01, bf16=True),
        ),
        (
            "encoder.train.train_encoder",
            "encoder --out out --parallel a.jsonl b.tsv --teacher t --judged j --cap ms-*=40 --english 0.25 --work w "
            "--restart --overwrite",
            {"seed": 1, "work": Path("w"), "overwrite": True, "restart": True},
            {"parallel": ["a.jsonl", "b.tsv"], "caps": {"ms-*": 40}, "judged": ["j"], "exclude": [], "teacher": "t"},
            EncoderConfig(english=0.25),
        ),
        (
            "distil.train_distil",
            "distil --out out --parallel de-en.jsonl --teacher t --student s --judged j k --cap a=3 --exclude-origin b "
            "--learning-rate 1e-3",
            {"seed": 1},
            _DE_EN | {"teacher": "t", "student": "s", "judged": ["j", "k"], "caps": {"a": 3}, "exclude": ["b"]},
            DistilConfig(learning_rate=1e-3),
        ),
        (
            "sentence.train_contrastive",
            "contrastive --out out --parallel a.tsv b.jsonl --model mini-encoder --temperature 0.1 --seed 2",
            {"seed": 2},
            {"parallel": ["a.tsv", "b.jsonl"], "model": "mini-encoder"},
            ContrastiveConfig(temperature=0.1, pairs_per_step=256, learning_rate=5e-5, warmup=0.1),
        ),
        (
            "translation.train_translation",
            "translation --out out --parallel a.tsv --model m --lp de-en --epochs 5",
            {"seed": 1},
            {"parallel": ["a.tsv"], "model": "m", "lang_pair": "de-en"},
            TranslationConfig(epochs=5, pairs_per_step=4, learning_rate=5e-5),
        ),
        (
            "regressor.train_regressor",
            "regressor --out out --judged j --encoder e --seeds 7 8 --curve 50,100 --architecture bilstm",
            {"seed": 7},
            {"judged": ["j"], "encoder": "e", "valid": [], "vectors": None, "seeds": [7, 8], "curve": [50, 100]},
            RegressorConfig(architecture="bilstm"),
        ),
    ],
)
def test_options_reach_the_training(
    function: str,
    argv: str,
    run: dict[str, Any],
    given: dict[str, Any],
    config: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    calls = []

    def training(run: Run, **kwargs: Any) -> Path:
        calls.append((run, kwargs))
        return run.output

    module, name = f"mtmetrics.training.{function}".rsplit(".", 1)
    # The names of the options are those of the training's arguments.
    accepted = inspect.signature(getattr(importlib.import_module(module), name)).parameters
    monkeypatch.setattr(f"{module}.{name}", training)
    arguments = parse(*argv.split())
    arguments.run(arguments)
    [(found, kwargs)] = calls
    assert {name: getattr(found, name) for name in run} == run
    assert kwargs == given | {"config": config}
    assert set(accepted) == {"run", *kwargs}
    assert capsys.readouterr().out == "out\n"


def test_numbers_of_a_curve_are_joined_by_commas(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse("regressor", "--out", "o", "--judged", "j", "--encoder", "e", "--curve", "5-6")
    assert "'5-6': numbers joined by commas are needed, such as 500,1000" in capsys.readouterr().err


def test_bad_input_is_one_line_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = parse("encoder", "--out", "out", "--parallel", "none.jsonl", "--teacher", "mini-encoder")
    with pytest.raises(InputError, match=r"none\.jsonl: no such file"):
        arguments.run(arguments)
    arguments = parse("lm", "--out", "out", "--mono", "none.txt", "--weight", "news")
    with pytest.raises(InputError, match="--weight needs ORIGIN=NUMBER"):
        arguments.run(arguments)
    assert list(tmp_path.iterdir()) == []
