"""Metrics as they are named on the command line and in recipes."""

from pathlib import Path

import pytest

from mtmetrics.errors import InputError
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.spec import MetricSpec


@pytest.mark.parametrize(
    ("text", "metric", "preset", "options"),
    [
        ("bertr", "bertr", None, {}),
        ("bertr:mini", "bertr", "mini", {}),
        ("sentsim::variant=wmd", "sentsim", None, {"variant": "wmd"}),
        (
            "bertr:my/preset:layer=3,special_tokens=true",
            "bertr",
            "my/preset",
            {"layer": 3, "special_tokens": True},
        ),
        (
            "xmoverscore:mini:lm_weight=0.25,weights=++",
            "xmoverscore",
            "mini",
            {"lm_weight": 0.25, "weights": "++"},
        ),
    ],
)
def test_what_is_read_is_written_again(
    text: str, metric: str, preset: str | None, options: dict
) -> None:
    spec = MetricSpec.parse(text)
    assert spec == MetricSpec(metric, preset, tuple(options.items()))
    assert str(spec) == text


def test_metrics_that_cannot_be_read() -> None:
    assert MetricSpec.parse("xmoverscore::lm-weight=1") == MetricSpec(
        "xmoverscore", None, (("lm_weight", 1),)
    )
    bad = (
        "mini:layer",
        "mini:=3",
        "mini:encoder=",
        "mini:layer=1,layer=2",
        ":preset=mini",
        ":lang_pair=x",
    )
    for text, message in [(f"bertr:{rest}", "NAME:PRESET:option=value") for rest in bad] + [
        (text, "has no name") for text in ("", ":mini", " :: ")
    ]:
        with pytest.raises(InputError, match=message):
            MetricSpec.parse(text)


def test_defaults_fill_what_is_not_said() -> None:
    filled = MetricSpec.parse("bertr::layer=1").filled("mini", {"layer": 2, "against": "source"})
    assert filled == MetricSpec("bertr", "mini", (("layer", 1), ("against", "source")))
    assert MetricSpec.parse("bertr:paper").filled("mini", {}).preset == "paper"
    assert str(MetricSpec("chrf").filled("mini", {})) == "chrf"  # has no presets


def test_what_cannot_be_loaded_is_named() -> None:
    for text, message in (
        ("chrf:mini", "chrf has no presets; write chrf$"),
        ("bleurt:mini", "metric 'bleurt'"),
        ("bertr:mini:ngram=2", "bertr has no option 'ngram'"),
    ):
        with pytest.raises(InputError, match=message):
            MetricSpec.parse(text).load(ModelPool(), "de-en")


def test_a_preset_without_a_language_pair(tmp_path: Path, tiny_encoder: Path) -> None:
    encoder = f'[encoder]\nmodel = "{tiny_encoder}"\nlayer = 2\n'
    (tmp_path / "preset.toml").write_text(f'metric = "bertr"\n{encoder}', encoding="utf-8")
    spec = MetricSpec("bertr", str(tmp_path), (("against", "reference"),))
    assert spec.load(ModelPool(device="cpu"), None).side == "reference"
    with pytest.raises(InputError, match="language pair None"):
        MetricSpec("bertr", "made/{lp}").load(ModelPool(device="cpu"), None)


def test_a_metric_for_the_columns_that_are_given() -> None:
    spec = MetricSpec("chrf")
    assert spec.load_for(["references"], ModelPool(), None).side == "reference"
    with pytest.raises(InputError, match="chrf compares predictions with references"):
        spec.load_for(["sources"], ModelPool(), None)
    with pytest.raises(InputError, match="they cannot be compared; use normalize=fixed"):
        MetricSpec.parse("sentsim:mini:normalize=batch").load_for(
            ["sources"], ModelPool(device="cpu"), "de-en"
        )
