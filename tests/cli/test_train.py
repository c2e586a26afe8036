"""``mtmetrics train``: what its options become, and how it fails."""

import argparse
import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

from mtmetrics.cli import train
from mtmetrics.errors import InputError
from mtmetrics.judgements.readers import Condition
from mtmetrics.training import configs
from mtmetrics.training.corpus import ParallelText
from mtmetrics.training.judged_pairs import JudgedFiles
from mtmetrics.training.run import Run

# Name of the command -> the function that trains.
TRAININGS = {
    "encoder": "encoder.train_encoder",
    "lm": "lm.train_lm",
    "distil": "sentence.train_distil",
    "contrastive": "sentence.train_contrastive",
    "translation": "translation.train_translation",
    "regressor": "recurrent.train_regressor",
}


def parse(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    train.configure(parser)
    return parser.parse_args(argv)


@pytest.mark.parametrize(
    ("argv", "run", "given", "config"),
    [
        (
            "lm --mono en.txt:1-5=news --exclude-origin a b* --weight news=3 --seed 4 --layers "
            "5 --matrix-lr 0.01 --bf16",
            {
                "output": Path("out"),
                "seed": 4,
                "work": Path("out.work"),
                "overwrite": False,
                "restart": False,
            },
            {
                "mono": ["en.txt:1-5=news"],
                "exclude": ["a", "b*"],
                "weights": {"news": 3},
                "side": "target",
            },
            configs.LMConfig(layers=5, matrix_lr=0.01, bf16=True),
        ),
        (
            "encoder --parallel a.jsonl b.tsv --begin t --judged j --cap ms-*=40 --english 0.25 "
            "--work w --restart --overwrite",
            {"seed": 1, "work": Path("w"), "overwrite": True, "restart": True},
            {
                "text": ParallelText(["a.jsonl", "b.tsv"], [], {"ms-*": 40}),
                "judged": ["j"],
                "begin": "t",
            },
            configs.EncoderConfig(english=0.25),
        ),
        (
            "distil --parallel a --teacher t --student s",
            {},
            {"student": "s"},
            configs.DistilConfig(),
        ),
        ("contrastive --parallel a --model m", {}, {"model": "m"}, configs.ContrastiveConfig()),
        (
            "translation --parallel a --model m --lp de-en --cap a=4 --exclude-origin b",
            {},
            {"lang_pair": "de-en", "text": ParallelText(["a"], ["b"], {"a": 4})},
            configs.TranslationConfig(),
        ),
        (
            (
                "regressor --judged j --where n>=2 --encoder e --seeds 7 8 --curve 50,100 "
                "--architecture bilstm"
            ),
            {"seed": 7},
            {
                "files": JudgedFiles(["j"], [], Condition("n", "2", 2.0, True)),
                "encoder": "e",
                "vectors": None,
                "seeds": [7, 8],
                "curve": [50, 100],
            },
            configs.RegressorConfig(architecture="bilstm"),
        ),
        (
            (
                "regressor --judged j --encoder e --composition transformer --repeat a=.5 "
                "--layer-lr 1e-4 --no-bf16"
            ),
            {"seed": 1},
            {"files": JudgedFiles(["j"], []), "repeats": {"a": 0.5}, "begin": None},
            configs.CompositionConfig(layer_lr=1e-4),
        ),
    ],
)
def test_options_reach_the_training(
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

    function = TRAININGS[argv.split()[0]]
    if "--composition transformer" in argv:
        function = "composed.train_composed"
    module, name = f"mtmetrics.training.{function}".rsplit(".", 1)
    # The options become the training's arguments.
    accepted = inspect.signature(getattr(importlib.import_module(module), name)).parameters
    monkeypatch.setattr(f"{module}.{name}", training)
    arguments = parse(*argv.split(), "--out", "out")
    arguments.run(arguments)
    [(found, kwargs)] = calls
    assert vars(found) | run == vars(found)
    assert kwargs == kwargs | given | {"config": config}
    assert set(accepted) == {"run", *kwargs}
    assert capsys.readouterr().out == "out\n"


def test_bad_calls_are_one_line_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse("regressor", "--out", "o", "--judged", "j", "--encoder", "e", "--curve", "5-6")
    assert "'5-6': numbers joined by commas are needed, such as 500,1000" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)
    arguments = parse(
        "encoder", "--out", "out", "--parallel", "none.jsonl", "--begin", "mini-encoder"
    )
    with pytest.raises(InputError, match=r"none\.jsonl: no such file"):
        arguments.run(arguments)
    arguments = parse("lm", "--out", "out", "--mono", "none.txt", "--weight", "news")
    with pytest.raises(InputError, match="--weight needs NAME=NUMBER"):
        arguments.run(arguments)
    assert list(tmp_path.iterdir()) == []
