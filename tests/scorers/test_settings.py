"""A setting is said once: one more field is an option, a keyword, a key of presets, and part of the
signature."""

import dataclasses
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import mtmetrics
from mtmetrics.cli import options
from mtmetrics.cli.main import main
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.scorers import settings
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.batch import Batch
from mtmetrics.scorers.metric import METRICS, MetricEntry
from mtmetrics.scorers.results import PartScores
from mtmetrics.scorers.settings import option, plain_types

ROWS = "Das Haus ist klein.\tThe house is small.\nHallo\tHello\n"


class Toy(Scorer):
    """The number of characters, raised to a power."""

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Settings(settings.Settings):
        """The options of the toy."""

        power: float = option(1.0, "power that lengths are raised to", preset="power", signed="pow")

    metric = "toy"
    scale = "at least 0"

    def compute(self, batch: Batch) -> list[PartScores]:
        lengths = [np.array([*map(len, texts)], dtype=float) for texts in batch.predictions]
        nothing = np.zeros(len(batch), dtype=bool)
        return [
            PartScores(values**self.settings.power, {}, nothing, nothing.copy())
            for values in lengths
        ]

    def floor_with_parts(self) -> tuple[float, dict[str, float]]:
        return 0.0, {}


def forget() -> None:
    """The record of metrics that the command line keeps."""
    options.settings_with_flags.cache_clear()


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The toy among the metrics, and the folder of a preset for it."""
    module = ModuleType("mtmetrics.scorers.toy")
    module.__dict__["Toy"] = Toy
    monkeypatch.setitem(sys.modules, "mtmetrics.scorers.toy", module)
    monkeypatch.setitem(METRICS, "toy", MetricEntry("toy", "toy.Toy"))
    forget()
    (tmp_path / "preset").mkdir()
    (tmp_path / "preset" / "preset.toml").write_text(
        'metric = "toy"\n[score]\npower = 2.0\n', encoding="utf-8"
    )
    yield str(tmp_path / "preset")
    forget()


def test_one_field_is_a_keyword_a_preset_key_and_part_of_the_signature(toy: str) -> None:
    found = mtmetrics.load("toy", toy)
    assert found.score(["Hello"], sources=["Hallo"]).segments.tolist() == [25.0]
    assert found.signature == f"toy|pow:2.0|v:{mtmetrics.__version__}"
    plain = mtmetrics.load("toy", toy, power=1.0, lang_pair="de-en")
    assert plain.score(["Hello"], sources=["Hallo"]).segments.tolist() == [5.0]
    assert plain.signature == f"toy|lp:de-en|v:{mtmetrics.__version__}"
    with pytest.raises(
        InputError, match="toy has no option 'powers'; it takes: preset, lang_pair, power"
    ):
        mtmetrics.load("toy", toy, powers=2.0)
    with pytest.raises(InputError, match="power 'much': must be a finite number"):
        mtmetrics.load("toy", toy, power="much")


def test_one_field_is_a_key_of_presets_and_no_other_is(toy: str) -> None:
    Path(toy, "preset.toml").write_text('metric = "toy"\n[score]\npowers = 2.0\n', encoding="utf-8")
    with pytest.raises(ArtifactError, match=r"unknown key 'powers' in \[score\]; known are: power"):
        mtmetrics.load("toy", toy)


def test_one_field_is_an_option_with_its_help(
    toy: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    (tmp_path / "rows.tsv").write_text(ROWS, encoding="utf-8")
    common = [str(tmp_path / "rows.tsv"), "--preset", toy, "--format", "json"]
    for more in (["--metric", "toy", "--power", "3"], ["--metric", f"toy:{toy}:power=3"]):
        assert (
            main(["score", *(common if more[1] == "toy" else [common[0], *common[3:]]), *more]) == 0
        )
        out = capsys.readouterr().out
        assert "pow:3.0" in out
        assert "125" in out
    assert main(["score", *common, "--metric", "toy", "--power", "inf"]) == 2
    assert "--power inf: must be a finite number" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["score", "--metric", "toy", "--help"])
    assert "--power POWER" in (shown := capsys.readouterr().out)
    assert "power that lengths are raised to" in shown
    assert "--ngram" not in shown


def test_one_field_is_documented_and_taken_by_the_module_of_evaluate(toy: str) -> None:
    from mtmetrics.integrations.metric_module import MetricModule

    class ToyModule(MetricModule):
        """Lengths."""

        metric_name = "toy"
        paper = "mathur-etal-2019-putting"
        examples = ">>> 1\n1"

    module = ToyModule(preset=toy)
    module.download_and_prepare()
    assert module.compute(sources=["Hallo"], predictions=["Hello"])["scores"] == [25.0]
    assert module.compute(sources=["Hallo"], predictions=["Hello"], power=3.0)["scores"] == [125.0]
    assert "    power (`float`): power that lengths are raised to.\n" in module.inputs_description


def test_options_of_all_metrics_have_help_and_a_type() -> None:
    for metric in METRICS.values():
        for name, field in metric.settings_class().options().items():
            assert field.metadata["help"], f"{metric.name}: {name}"
            assert plain_types(field), f"{metric.name}: {name}"
            # Messages and help end the sentence themselves.
            assert not field.metadata["help"].endswith("."), f"{metric.name}: {name}"


def test_the_class_does_not_take_what_a_preset_opens(tiny_encoder: Path) -> None:
    from mtmetrics.models.token_encoder import TokenEncoder
    from mtmetrics.scorers.bertr import BERTR

    given: dict[str, Any] = {"map": "clp"}
    with pytest.raises(
        InputError, match="unknown option 'map'; there are: special_tokens, workers"
    ):
        BERTR(TokenEncoder(tiny_encoder), **given)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"normalize_vectors": "false"}, "normalize_vectors 'false': must be one of True, False"),
        ({"w1": True}, "w1 True: must be a finite number"),
        ({"workers": True}, "workers True: must be a whole number of at least 1"),
    ],
)
def test_a_truth_value_is_no_number_and_no_text(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        METRICS["sentsim"].settings_class()(**values)
