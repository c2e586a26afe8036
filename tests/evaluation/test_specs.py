"""How metrics are named on the command line and in recipes."""

import pytest

from mtmetrics.errors import InputError
from mtmetrics.evaluation.specs import MetricSpec
from mtmetrics.scorers.pool import ModelPool


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("bertr", MetricSpec("bertr")),
        ("bertr:mini", MetricSpec("bertr", "mini")),
        ("sentsim::variant=wmd", MetricSpec("sentsim", None, (("variant", "wmd"),))),
        (
            "bertr:my/preset:layer=3,special_tokens=true",
            MetricSpec("bertr", "my/preset", (("layer", 3), ("special_tokens", True))),
        ),
        (
            "xmoverscore:mini:lm_weight=0.25,weights=++",
            MetricSpec("xmoverscore", "mini", (("lm_weight", 0.25), ("weights", "++"))),
        ),
    ],
)
def test_what_is_read_is_written_again(text: str, spec: MetricSpec) -> None:
    assert MetricSpec.parse(text) == spec
    assert str(spec) == text


def test_options_may_be_written_with_hyphens() -> None:
    assert MetricSpec.parse("xmoverscore::lm-weight=1") == MetricSpec("xmoverscore", None, (("lm_weight", 1),))


@pytest.mark.parametrize(
    "text",
    ["bertr:mini:layer", "bertr:mini:=3", "bertr:mini:layer=1,layer=2", "bertr::preset=mini", "bertr::lang_pair=x"],
)
def test_options_that_cannot_be_used(text: str) -> None:
    with pytest.raises(InputError, match="NAME:PRESET:option=value"):
        MetricSpec.parse(text)


@pytest.mark.parametrize("text", ["", ":mini", " :: "])
def test_a_metric_needs_a_name(text: str) -> None:
    with pytest.raises(InputError, match="has no name"):
        MetricSpec.parse(text)


def test_defaults_fill_what_is_not_said() -> None:
    asked = MetricSpec.parse("bertr::layer=1")
    assert asked.filled("mini", {"layer": 2, "against": "source"}) == MetricSpec(
        "bertr", "mini", (("layer", 1), ("against", "source"))
    )
    assert MetricSpec.parse("bertr:minilm").filled("mini", {}).preset == "minilm"


def test_a_metric_without_presets_gets_none() -> None:
    assert str(MetricSpec("chrf").filled("mini", {})) == "chrf"


def test_a_preset_that_would_be_ignored_is_refused() -> None:
    with pytest.raises(InputError, match="chrf has no presets; write chrf$"):
        MetricSpec.parse("chrf:mini").load(ModelPool(), "de-en")


def test_unknown_metrics_and_options_are_named_when_they_are_loaded() -> None:
    with pytest.raises(InputError, match="metric 'bleurt'"):
        MetricSpec.parse("bleurt:mini").load(ModelPool(), "de-en")
    with pytest.raises(InputError, match="bertr has no option 'ngram'"):
        MetricSpec.parse("bertr:mini:ngram=2").load(ModelPool(), "de-en")
