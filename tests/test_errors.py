"""One way to say that a package is missing, for every extra that there is."""

import configparser
import importlib.util
from pathlib import Path

import pytest

from mtmetrics import errors
from mtmetrics.errors import MissingExtraError, require_extra


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
