"""Blocks of rows on a Ray cluster of two nodes on this machine: scores, faults, bad rows, and what
is refused."""

import functools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow
import pytest
from helpers import write, write_jsonl
from pyarrow import parquet

from mtmetrics.cluster.engine import Engine, _divide, map_blocks
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.mining import sides, word_level

SOURCES = [
    "das haus ist klein",
    "der hund schläft nicht",
    "ich sehe die katze",
    "ein baum steht dort",
    "klein",
    "",
]
TRANSLATIONS = [
    "the house is small",
    "the dog sleeps not",
    "i see the cat",
    "a tree stands there",
    "klein",
    "small",
]
ROWS = [
    {
        "source": SOURCES[number % 6],
        "translation": TRANSLATIONS[number % 5],
        "id": number,
        "tags": ["a"] * (number % 3),
    }
    for number in range(20)
]
Run = Callable[..., tuple[int, str, str]]
# Not imported here: Ray reads the environment when it is imported.
needs_ray = pytest.mark.skipif(
    find_spec("ray") is None, reason="Ray is not installed: pip install 'mtmetrics[ray]'"
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a cluster of two nodes with 1 and 2 CPUs, on loopback, with little memory."""
    # By its name for other systems: Ray then stays on loopback. And its processes would have the
    # lowest priority.
    names = {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_worker_niceness": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in names.items():
            patch.setenv(name, value)
        import ray
        from ray.cluster_utils import Cluster

        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
        node = {
            "object_store_memory": 80 * 2**20,
            "include_dashboard": False,
            "node_ip_address": "127.0.0.1",
        }
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, **node})
        cluster.add_node(num_cpus=2, **node)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        yield cluster.address
        ray.shutdown()
        cluster.shutdown()


class Worker:
    """Writes the length of the sources; `fault` is done once, where row 7 is, or each time
    (deadly)."""

    def __init__(self, folder: Path, fault: str) -> None:
        self.folder, self.fault = folder, fault

    def __call__(self, table: pyarrow.Table) -> tuple[pyarrow.Table, dict[str, Any]]:
        if 7 in table["id"].to_pylist():
            if self.fault == "deadly":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.fault == "killed" and not (self.folder / "killed").exists():
                (self.folder / "killed").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            while self.fault == "slow" and not (self.folder / "go on").exists():
                time.sleep(0.1)
        lengths = [len(text) for text in table["source"].to_pylist()]
        return table.append_column("length", pyarrow.array(lengths, pyarrow.int64())), {
            "process": os.getpid()
        }


def lengths(path: Path, cluster: str, fault: str = "", **options: Any) -> list[dict[str, Any]]:
    """Runs `Worker` on a file, in blocks of three rows."""
    worker = functools.partial(Worker, path.parent, fault)
    defaults = {"engine": Engine(cluster), "settings": {}, "texts": ("source",), "block_rows": 3}
    return list(map_blocks(worker, str(path), str(path.parent / "out"), **defaults | options))


def read(out: Path) -> list[dict[str, Any]]:
    """All rows of a folder, in order."""
    return parquet.read_table(out).to_pylist()


@needs_ray
def test_scores_are_those_of_one_process(
    cluster: str, mtmetrics: Run, tiny_preset: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    parquet.write_table(
        pyarrow.Table.from_pylist(ROWS[:13]), folder / "a.parquet", row_group_size=5
    )
    write_jsonl(folder / "b.jsonl", ROWS[13:])
    options = [
        "--preset",
        tiny_preset,
        "--lp",
        "de-en",
        "--ci",
        "--parts",
        "--dtype",
        "float32",
        "--full-precision",
    ]
    _, out, warning = mtmetrics("score", *options, write_jsonl(tmp_path / "all.jsonl", ROWS))
    alone = json.loads(out)
    engine = ["--engine", f"ray={cluster}", "--block-rows", 3]
    code, out, err = mtmetrics("score", *options, folder, *engine, "--out", tmp_path / "out")
    assert code == 0, err
    summary = json.loads(out)
    assert summary.pop("bad") == 0
    assert summary == {
        name: pytest.approx(alone[name]) for name in ("mean_score", "signature", "report", "ci")
    }
    assert "3 blank" in warning
    assert err == re.sub(
        r"; segment [\d, ]+", "", warning
    )  # of the whole, the engine does not know which
    rows = read(tmp_path / "out")
    assert [{name: row[name] for name in ROWS[0]} for row in rows] == ROWS
    places = [("a.parquet", number + 1) for number in range(13)] + [
        ("b.jsonl", number + 1) for number in range(7)
    ]
    assert [(Path(row["file"]).name, row["segment"]) for row in rows] == places
    np.testing.assert_allclose([row["score"] for row in rows], alone["scores"], atol=1e-6)
    for name, values in alone["parts"].items():
        np.testing.assert_allclose([row[name] for row in rows], values, atol=1e-6)


@needs_ray
def test_a_killed_worker_and_bad_rows(cluster: str, tmp_path: Path) -> None:
    bad = [{**ROWS[0], "source": None}, {**ROWS[0], "id": "x"}, {**ROWS[0], "more": 1}]
    text = "".join(json.dumps(row) + "\n" for row in [*ROWS[:10], *bad])
    path = write(
        tmp_path / "rows.jsonl", text.encode() + b"{bad\n\xff\n\n" + json.dumps(ROWS[10]).encode()
    )
    blocks = lengths(path, cluster, "killed", keep_errors=True)
    assert (tmp_path / "killed").exists()
    assert len({block["process"] for block in blocks}) > 1
    rows = read(tmp_path / "out")
    assert [(row["id"], row["segment"], row["length"]) for row in rows] == [
        (number, number + 1 if number < 10 else 16, len(ROWS[number]["source"]))
        for number in range(11)
    ]
    errors = [
        json.loads(line)
        for file in sorted((tmp_path / "out/errors").iterdir())
        for line in file.open()
    ]
    assert [error["segment"] for error in errors] == [11, 12, 13, 14, 15]
    places = [
        "line 11: 'source' must be a string, got null",
        "line 12: 'id' cannot be of type int64 as in the first rows: 'x'",
        "line 13: has a key 'more'",
        "line 14: not valid JSON",
        "line 15: byte 1 is not valid UTF-8",
    ]
    for error, place in zip(errors, places, strict=True):
        assert error["error"].startswith(f"{path}, {place}")


@needs_ray
def test_a_block_that_kills_each_worker_stops_the_run(cluster: str, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", ROWS)
    one_worker = Engine(cluster, cpus_per_worker=2)
    with pytest.raises(
        MTMetricsError, match=rf"^{path}, rows 7 to 9: 3 processes died of this block \(often.*out$"
    ):
        lengths(path, cluster, "deadly", engine=one_worker)
    assert len(lengths(path, cluster, engine=one_worker)) == 7
    assert not list((tmp_path / "out").glob(".*"))


@needs_ray
def test_filter_keeps_what_one_process_keeps(cluster: str, mtmetrics: Run, tmp_path: Path) -> None:
    pairs = [
        {"id": row["id"], "source": row["source"], "target": row["translation"]} for row in ROWS
    ]
    path = write_jsonl(tmp_path / "pairs.jsonl", pairs)
    options = ["--metric", "source_length", "--skip", "language", path, "--top", "0.5"]
    assert mtmetrics("filter", *options, "--out", tmp_path / "kept.jsonl")[0] == 0
    engine = ["--engine", f"ray={cluster}", "--block-rows", 8, "--cpus-per-worker", 2]
    code, _, err = mtmetrics("filter", *options, *engine, "--out", tmp_path / "kept")
    assert code == 0, err
    rows = [{name: row[name] for name in (*pairs[0], "score")} for row in read(tmp_path / "kept")]
    assert rows == [
        json.loads(line) for line in (tmp_path / "kept.jsonl").read_text("utf-8").splitlines()
    ]
    assert len(rows) > 1


@needs_ray
def test_mining_finds_what_one_process_finds(
    cluster: str,
    mtmetrics: Run,
    tiny_encoder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (word_level, sides):
        monkeypatch.setattr(module, "SENTENCES_PER_BLOCK", 3)
    sources = "".join(f"{first} {second}\n" for first in SOURCES[:3] for second in SOURCES[:2])
    targets = "".join(f"{one} {other}\n" for one in TRANSLATIONS[:3] for other in TRANSLATIONS[:2])
    texts = ["--source-text", write(tmp_path / "de.txt", sources)]
    texts += ["--target-text", write(tmp_path / "en.txt", targets)]
    call = ["mine", "--lp", "de-en", "--encoder", tiny_encoder, *texts, "--no-language-filter"]
    call += ["--share", 1]
    _, printed, _ = mtmetrics(*call, "--out", tmp_path / "one.jsonl")
    engine = ["--engine", f"ray={cluster}", "--cpus-per-worker", 2, "--dtype", "float32"]
    code, counts, err = mtmetrics(*call, *engine, "--out", tmp_path / "several.jsonl")
    assert code == 0, err
    assert counts == printed
    assert {path.name for path in tmp_path.iterdir()} == {
        "de.txt",
        "en.txt",
        "one.jsonl",
        "several.jsonl",
    }
    one, several = (
        [json.loads(line) for line in (tmp_path / name).read_text("utf-8").splitlines()]
        for name in ("one.jsonl", "several.jsonl")
    )
    assert len(one) == 6
    # The cluster keeps vectors in half precision.
    assert [row.pop("score") for row in several] == pytest.approx(
        [row.pop("score") for row in one], abs=1e-3
    )
    assert several == one


@needs_ray
def test_a_killed_driver(cluster: str, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "rows.jsonl", ROWS)
    code = f"import test_engine, ray, sys, pathlib; ray.cloudpickle.register_pickle_by_value(test_engine); " \
        f"test_engine.lengths(pathlib.Path({str(path)!r}), {cluster!r}, 'slow')"  # fmt: skip
    there = os.pathsep.join(
        [
            str(Path(__file__).parent),
            str(Path(__file__).parents[1]),
            os.environ.get("PYTHONPATH", ""),
        ]
    )
    driver = subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": there})
    out = tmp_path / "out"
    deadline = time.monotonic() + 300
    while not list(out.glob("part-*")) and time.monotonic() < deadline and driver.poll() is None:
        time.sleep(0.1)
    driver.kill()
    driver.wait()
    finished = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*")}
    assert 0 < len(finished) < 7
    (tmp_path / "go on").touch()
    with pytest.raises(InputError, match="made with block_rows 3, not 4"):
        lengths(path, cluster, block_rows=4)
    assert len(lengths(path, cluster)) == 7
    assert [row["id"] for row in read(out)] == list(range(20))
    again = {name: (out / name).stat().st_mtime_ns for name in finished}
    assert again == finished
    assert not list(out.glob(".*"))


@needs_ray
def test_a_bad_row_stops_the_run_with_one_line(
    cluster: str, mtmetrics: Run, tiny_preset: Path, tmp_path: Path
) -> None:
    table = pyarrow.Table.from_pylist([*ROWS[:5], {**ROWS[5], "translation": None}])
    parquet.write_table(table, tmp_path / "rows.parquet")
    options = [
        "--preset",
        tiny_preset,
        "--lp",
        "de-en",
        "--engine",
        f"ray={cluster}",
        "--out",
        tmp_path / "out",
    ]
    code, out, err = mtmetrics("score", tmp_path / "rows.parquet", *options)
    assert (code, out) == (2, "")
    assert (
        err
        == f"mtmetrics: {tmp_path}/rows.parquet, row 6: 'translation' must be a string, got null\n"
    )


@pytest.mark.parametrize(
    ("cpus", "gpus", "size", "expected"),
    [
        ([4, 4], [0, 0], 1, (7, 2, 0)),  # one worker less than CPUs: a reader needs room
        ([4, 4], [0, 0], 3, (2, 4, 0)),
        ([4, 4], [0, 0], 4, (1, 8, 0)),
        ([8, 1], [2, 4], 2, (2, 10, 1)),
        ([1], [0], 1, None),
        ([2, 2], [0, 0], 3, None),
    ],
)
def test_workers_leave_room_for_the_reader(
    cpus: list[int], gpus: list[int], size: int, expected: tuple[int, int, int] | None
) -> None:
    nodes = [{"CPU": float(cpu), "GPU": float(gpu)} for cpu, gpu in zip(cpus, gpus, strict=True)]
    if expected is None:
        with pytest.raises(
            MTMetricsError, match=f"too small: a worker takes {size} CPU.*lower --cpus-per-worker"
        ):
            _divide(Engine(cpus_per_worker=size), nodes)
    else:
        assert _divide(Engine(cpus_per_worker=size), nodes) == expected
        assert _divide(Engine(cpus_per_worker=size, gpus=False), nodes)[2] == 0


PLUGIN = """
import mtmetrics


class Shortness(mtmetrics.PluginMetric):
    metric = "shortness"

    def segment_scores(self, predictions, sources):
        return [-float(len(text)) for text in predictions]
"""


@needs_ray
@pytest.mark.usefixtures("no_plugins")
def test_workers_know_the_metric_of_a_file(cluster: str, mtmetrics: Run, tmp_path: Path) -> None:
    plugin, rows = (
        write(tmp_path / "shortness.py", PLUGIN),
        write_jsonl(tmp_path / "rows.jsonl", ROWS[:4]),
    )
    choice = ("--plugin", plugin, "--metric", "shortness", "--lp", "de-en", "--degenerate", "keep")
    code, out, err = mtmetrics(
        "score", *choice, rows, "--engine", f"ray={cluster}", "--out", tmp_path / "out"
    )
    assert code == 0, err
    lengths = [len(row["translation"]) for row in ROWS[:4]]
    assert json.loads(out)["mean_score"] == -sum(lengths) / 4
    assert [(row["score"], row["unusual"]) for row in read(tmp_path / "out")] == [
        (-number, "") for number in lengths
    ]


@needs_ray
@pytest.mark.usefixtures("no_plugins")
def test_workers_of_filter_know_the_metric_of_a_file(
    cluster: str, mtmetrics: Run, tmp_path: Path
) -> None:
    plugin = write(tmp_path / "shortness.py", PLUGIN)
    rows = write_jsonl(tmp_path / "rows.jsonl", ROWS[:4])
    choice = ("--plugin", plugin, "--metric", "shortness", "--lp", "de-en", "--skip", "language")
    code, _, err = mtmetrics(
        "filter",
        *choice,
        rows,
        "--top",
        "1",
        "--engine",
        f"ray={cluster}",
        "--out",
        tmp_path / "kept",
    )
    assert code == 0, err
    kept = read(tmp_path / "kept")
    assert kept
    assert all(row["score"] == -len(row["translation"]) for row in kept)


@needs_ray
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ["--engine", "spark", "--out", "out", "rows.jsonl"],
            "--engine spark: must be ray, or ray=ADDRESS",
        ),
        (["--engine", "ray", "rows.jsonl"], "pass --out FOLDER"),
        (["--engine", "ray", "--out", "out", "-s", "a", "-t", "b"], "reads one FILE or folder"),
        (
            ["--engine", "ray", "--out", "out", "--device", "cuda:1", "rows.jsonl"],
            "gives each worker its device",
        ),
        (["--engine", "ray", "--out", "out", "none.jsonl"], "none.jsonl: no such file or folder"),
        (
            ["--engine", "ray", "--out", "full", "rows.jsonl"],
            "not empty, and not of a run that could go on",
        ),
        (["--engine", "ray", "--out", "out", "full"], "full: holds no file that ends in .parquet"),
        (
            ["--engine", "ray", "--out", "out", "taken.jsonl"],
            "the engine adds a column 'file', and there is one",
        ),
    ],
)
def test_refused(
    mtmetrics: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "rows.jsonl", ROWS)
    write_jsonl(tmp_path / "taken.jsonl", [ROWS[0] | {"file": "x"}])
    write(tmp_path / "full/notes.txt", "x")
    code, out, err = mtmetrics("score", *argv)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "ray" else SimpleNamespace()
    )
    with pytest.raises(MTMetricsError, match=r"--engine ray needs ray; pip install .*\[ray\]'"):
        list(map_blocks(dict, str(tmp_path), str(tmp_path), engine=Engine(), settings={}))
