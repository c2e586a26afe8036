"""A folder with a file per block: what is finished, what is swept, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from mtmetrics.cluster.block_folder import BlockFolder
from mtmetrics.errors import InputError, MTMetricsError

PLAN = {"files": [["a.jsonl", 10]], "block_rows": 2}


def summary(first: int, **more: Any) -> dict[str, Any]:
    return {"file": 0, "first": first, "rows": 2, "bad": 0, "last": False} | more


@pytest.fixture
def folder(tmp_path: Path) -> BlockFolder:
    folder = BlockFolder(str(tmp_path / "out"))
    folder.claim(PLAN)
    return folder


def finish(folder: BlockFolder, first: int, **more: Any) -> None:
    block = summary(first, **more)
    folder.begin(block)
    folder.finish(block, pyarrow.table({"number": [first, first + 1]}), [])


def test_blocks_come_back_in_the_order_of_the_input(folder: BlockFolder) -> None:
    for first in (10, 2, 0):
        finish(folder, first, signature="x")
    assert folder.summaries() == [summary(first, signature="x") for first in (0, 2, 10)]
    assert folder.column("number").tolist() == [0, 1, 2, 3, 10, 11]
    assert [name for name, _ in folder.tables()] == folder.parts()


def test_processes_that_began_a_block_are_counted_until_it_is_finished(
    folder: BlockFolder, tmp_path: Path
) -> None:
    assert [folder.begin(summary(0)) for _ in range(3)] == [0, 1, 2]
    assert folder.parts() == []
    folder.sweep()
    assert folder.begin(summary(0)) == 0
    finish(folder, 0)
    assert not list((tmp_path / "out").glob(".*"))


def test_bad_rows_lie_beside_the_blocks(folder: BlockFolder, tmp_path: Path) -> None:
    folder.begin(summary(0))
    bad = [{"segment": 1, "error": "half a character \ud800"}]
    folder.finish(summary(0, bad=1), pyarrow.table({"number": [1]}), bad)
    [file] = (tmp_path / "out" / "errors").iterdir()
    assert json.loads(file.read_text())["segment"] == 1
    assert file.name.startswith("_")  # no data to those who read the folder
    assert folder.column("number").tolist() == [1]


def test_a_folder_of_another_plan_is_refused(folder: BlockFolder, tmp_path: Path) -> None:
    folder.claim(PLAN | {"block_rows": 3})  # nothing is finished yet
    folder.claim(PLAN)
    finish(folder, 0)
    folder.claim(PLAN)
    with pytest.raises(InputError, match="made with block_rows 2, not 3; repeat the first call"):
        folder.claim(PLAN | {"block_rows": 3})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    with pytest.raises(InputError, match="not empty, and not of a run that could go on"):
        BlockFolder(str(tmp_path / "other")).claim(PLAN)
    with pytest.raises(MTMetricsError, match="cannot be used"):
        BlockFolder(str(tmp_path / "other" / "notes.txt")).claim(PLAN)
