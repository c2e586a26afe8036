"""One way to say that a package is missing, for every extra that there is."""

import configparser
import importlib.util
import pickle
from pathlib import Path

import pytest

from mtmetrics import errors
from mtmetrics.errors import InputError, MissingExtraError, require_extra


def test_every_extra_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = configparser.ConfigParser()
    parser.read(Path(__file__).parents[1] / "setup.cfg", encoding="utf-8")
    assert {*errors._MODULES} == {*parser["options.extras_require"]} - {"all", "test"}
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name in ("faiss", "jieba") else name
    )
    with pytest.raises(
        MissingExtraError, match=r"^it needs faiss and jieba; pip install .*\[mining\]'$"
    ):
        require_extra("mining", "it")
    require_extra("train", "it")


def test_options_of_a_message_get_other_names() -> None:
    def label(keyword: str, value: str) -> str | None:
        return None if keyword == "unknown" else f"<{keyword}|{value}>"

    error = InputError(
        "lm='layer': layer of unknown=; pass layer= or lm='none'",
        option="lm",
        mentions=["layer=", "lm='none'", "unknown=", "absent="],
    )
    assert str(error) == "lm='layer': layer of unknown=; pass layer= or lm='none'"
    assert error.worded(label) == "<lm|>='layer': layer of unknown=; pass <layer|> or <lm|none>"
    outer = error.within("metric lm", option="metric")
    assert isinstance(outer, InputError)
    assert str(outer) == f"metric lm: {error}"
    assert outer.worded(label) == f"<metric|> lm: {error.worded(label)}"
    assert pickle.loads(pickle.dumps(outer)).worded(label) == outer.worded(label)
