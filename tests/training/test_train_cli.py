"""``mtmetrics train``: what its options become, and how it fails."""

import argparse
from pathlib import Path

import pytest

from mtmetrics.cli import train
from mtmetrics.errors import InputError


def parse(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    train.add_parser(parser.add_subparsers())
    return parser.parse_args(["train", *argv])


def test_lm_options_reach_the_training(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from mtmetrics.training import lm

    calls = []
    monkeypatch.setattr(lm, "train_lm", lambda *args, **kwargs: calls.append((args, kwargs)) or args[0].output)
    argv = "lm --out out --mono en.txt:1-5=news --exclude-origin a b* --weight news=3 --seed 4 --layers 5 --matrix-lr 0.01 --bf16"
    arguments = parse(*argv.split())
    assert arguments.run(arguments) == 0
    (args, kwargs) = calls[0]
    run, *data = args
    assert (run.output, run.seed, run.overwrite, run.restart) == (Path("out"), 4, False, False)
    assert data == [["en.txt:1-5=news"], []]
    assert kwargs["exclude"] == ["a", "b*"]
    assert kwargs["weights"] == {"news": 3}
    assert (kwargs["config"].layers, kwargs["config"].matrix_lr, kwargs["config"].bf16) == (5, 0.01, True)
    assert kwargs["config"].width == type(kwargs["config"])().width
    assert capsys.readouterr().out == "out\n"


def test_encoder_options_reach_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    from mtmetrics.training.encoder import train

    calls = []
    monkeypatch.setattr(train, "train_encoder", lambda *args, **kwargs: calls.append((args, kwargs)) or args[0].output)
    argv = "encoder --out out --parallel a.jsonl b.tsv --teacher t --judged j --cap ms-*=40 --english 0.25 --work w --restart --overwrite"
    arguments = parse(*argv.split())
    assert arguments.run(arguments) == 0
    (args, kwargs) = calls[0]
    run, *data = args
    assert (run.output, run.work, run.restart, run.overwrite) == (Path("out"), Path("w"), True, True)
    assert data == [["a.jsonl", "b.tsv"], "t"]
    assert kwargs["caps"] == {"ms-*": 40}
    assert kwargs["judged"] == ["j"]
    assert kwargs["config"].english == 0.25
    assert kwargs["config"].bf16 is False


def test_distil_options_reach_the_training(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from mtmetrics.training import distil

    calls = []
    monkeypatch.setattr(distil, "train_distil", lambda *args, **kwargs: calls.append((args, kwargs)) or args[0].output)
    argv = "distil --out out --parallel de-en.jsonl --teacher t --student s --judged j k --cap a=3 --exclude-origin b --learning-rate 1e-3"
    arguments = parse(*argv.split())
    assert arguments.run(arguments) == 0
    (args, kwargs) = calls[0]
    assert args[1:] == (["de-en.jsonl"], "t", "s")
    assert (kwargs["judged"], kwargs["caps"], kwargs["exclude"]) == (["j", "k"], {"a": 3}, ["b"])
    assert kwargs["config"].learning_rate == 1e-3
    assert capsys.readouterr().out == "out\n"


def test_options_of_trainings_on_pairs_reach_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mtmetrics.training import contrastive, translation

    calls = []
    for module, name in ((contrastive, "train_contrastive"), (translation, "train_translation")):
        monkeypatch.setattr(
            module, name, lambda *args, **kwargs: calls.append((args[1:], kwargs["config"])) or args[0].output
        )
    for argv in (
        "contrastive --out out --parallel a.tsv b.jsonl --model mini-encoder --temperature 0.1 --seed 2",
        "translation --out out --parallel a.tsv --model m --lp de-en --epochs 5",
    ):
        arguments = parse(*argv.split())
        assert arguments.run(arguments) == 0
    (first, second) = calls
    assert first[0] == (["a.tsv", "b.jsonl"], "mini-encoder")
    assert (first[1].temperature, first[1].pairs_per_step, first[1].learning_rate, first[1].warmup) == (
        0.1,
        256,
        5e-5,
        0.1,
    )
    assert second[0] == (["a.tsv"], "m", "de-en")
    assert (second[1].epochs, second[1].pairs_per_step, second[1].learning_rate) == (5, 4, 5e-5)
    assert capsys.readouterr().out == "out\nout\n"


def test_bad_input_is_one_line_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = parse("encoder", "--out", "out", "--parallel", "none.jsonl", "--teacher", "mini-encoder")
    with pytest.raises(InputError, match=r"none\.jsonl: no such file"):
        arguments.run(arguments)
    arguments = parse("lm", "--out", "out", "--mono", "none.txt", "--weight", "news")
    with pytest.raises(InputError, match="--weight needs ORIGIN=NUMBER"):
        arguments.run(arguments)
    assert list(tmp_path.iterdir()) == []
