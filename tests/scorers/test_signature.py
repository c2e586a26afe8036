"""The line that pins a score."""

import numpy as np

from mtmetrics._version import __version__
from mtmetrics.matching.remapping import Remapping
from mtmetrics.scorers.signature import (
    map_name,
    model_name,
    signature,
    with_fields,
    with_references,
)


def test_fields_without_a_value_are_left_out() -> None:
    fields = {"lp": None, "layer": 0, "map": "none"}
    assert signature("bertr", fields) == f"bertr|layer:0|map:none|v:{__version__}"


def test_more_fields_stand_before_the_version() -> None:
    assert with_fields("chrf|nc:6|v:2.0.0", "degenerate:floor", "x:y") == (
        "chrf|nc:6|degenerate:floor|x:y|v:2.0.0"
    )


def test_the_number_of_references_is_said_once() -> None:
    line = "bertr|layer:8|v:2.0.0"
    assert with_references(line, {1}) == line
    two = with_references(line, {2})
    assert two == "bertr|layer:8|refs:2|combine:max|v:2.0.0"
    assert with_references(two, {1, 2}) == "bertr|layer:8|refs:var|combine:max|v:2.0.0"


def test_names_of_models_and_maps() -> None:
    class Model:
        label = "mini"
        fingerprint = "0123abcd"

    remapping = Remapping("umd", (np.ones(3, dtype=np.float32),))
    assert model_name(Model()) == "mini#0123abcd"
    assert model_name(None) is None
    assert map_name(remapping) == f"umd#{remapping.fingerprint}"
    assert map_name(None) == "none"
