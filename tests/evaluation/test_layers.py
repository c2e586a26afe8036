"""The layer study: which layers, and the numbers at each."""

import numpy as np
import pytest

from mtmetrics.errors import InputError
from mtmetrics.evaluation.agreement import Agreement
from mtmetrics.evaluation.correlation import Correlation
from mtmetrics.evaluation.layers import chosen_layers, render_layers
from mtmetrics.inputs import InputReport


def agreement(file: str, value: float) -> Agreement:
    reason = "constant" if np.isnan(value) else None
    correlations = {"score": Correlation(value, reason), "part": Correlation(value / 2, reason)}
    return Agreement(file, "de-en", 5, correlations, {}, "s|v:0", InputReport(5))


STUDIES = {1: [agreement("a", 0.2), agreement("b", 0.4)], 2: [agreement("a", 0.5), agreement("b", float("nan"))]}


def test_layers_of_the_user() -> None:
    assert chosen_layers("all", 3) == [0, 1, 2, 3]
    assert chosen_layers("3,1,1", 3) == [1, 3]
    for text in ("4", "-1", "one", ""):
        with pytest.raises(InputError, match="numbers from 0 to 3"):
            chosen_layers(text, 3)
    with pytest.raises(InputError, match="no choice of layer"):
        chosen_layers("all", None)


def test_tables() -> None:
    lines = render_layers(STUDIES, {}, "tsv", parts=False).splitlines()
    assert lines[0] == "measure\tlayer\ta (de-en)\tb (de-en)\tmean"
    assert lines[1] == "score\t1\t0.200\t0.400\t0.300"
    assert lines[2] == "score\t2\t0.500\tnan\tnan"
    assert len(render_layers(STUDIES, {}, "markdown", parts=True).splitlines()) == 6


def test_json_holds_null_where_nothing_is_defined() -> None:
    text = render_layers(STUDIES, {"metric": "m"}, "json", parts=False)
    assert '"mean": 0.30000000000000004' in text
    assert '"mean": null' in text
