import contextlib
import json
import shutil

import pytest

from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.uscore.stages import Stages


class Production:
    """Two texts, their lengths, and the sum of the lengths times a factor; it notes what it
    computes."""

    def __init__(self, folder):
        self.folder, self.ran = folder, []

    def stages(self):
        return contextlib.closing(Stages(self.folder / "work", self.folder / "log.jsonl"))

    def run(self, first="a.txt", second="b.txt", factor=1, broken=None):
        def number(name, value, **depends):
            def produce(folder):
                self.ran.append(name)
                (folder / "half").write_text("half")
                if name == broken:
                    raise InputError("broken")
                (folder / "half").rename(folder / "number").write_text(str(value()))
                return {name: value()}

            return stages.run(name, produce, **depends)

        def length(name, file):
            return number(name, lambda: len(file.read_text()), files=[file])

        with self.stages() as stages:
            lengths = [length("first", self.folder / first), length("second", self.folder / second)]
            sums = number(
                "total",
                lambda: factor * sum(map(read, lengths)),
                settings={"factor": factor},
                after=lengths,
            )
            return read(sums)


def read(stage):
    return int((stage.folder / "number").read_text())


@pytest.fixture
def production(tmp_path):
    (tmp_path / "a.txt").write_text("one two")
    (tmp_path / "b.txt").write_text("three")
    return Production(tmp_path)


def test_finished_stages_are_not_repeated(production):
    assert production.run() == production.run() == 12
    assert production.ran == ["first", "second", "total"]


@pytest.mark.parametrize("broken", ["first", "second", "total"])
def test_a_broken_run_goes_on_with_the_stage_that_broke_and_leaves_nothing_half_made(
    production, broken
):
    with pytest.raises(InputError):
        production.run(broken=broken)
    assert not list((production.folder / "work").rglob("half"))
    finished = production.ran[:-1]
    production.ran.clear()
    assert production.run() == 12
    assert production.ran == [name for name in ("first", "second", "total") if name not in finished]


@pytest.mark.parametrize(
    ("second", "options", "value", "repeated"),
    [
        ("three", {"factor": 2}, 24, ["total"]),
        ("three four", {}, 17, ["second", "total"]),
        ("seven", {}, 12, ["second"]),  # an equal result keeps what comes after it
    ],
)
def test_a_change_invalidates_what_depends_on_it(production, second, options, value, repeated):
    production.run()
    production.ran.clear()
    (production.folder / "b.txt").write_text(second)
    assert production.run(**options) == value
    assert production.ran == repeated


def test_a_stage_without_its_folder_is_repeated(production):
    production.run()
    shutil.rmtree(production.folder / "work" / "second")
    production.ran.clear()
    assert production.run() == 12
    assert production.ran == ["second"]


def test_every_run_of_a_stage_is_logged_with_counts_and_time(production):
    production.run()
    production.run(factor=2)
    lines = [
        json.loads(line) for line in (production.folder / "log.jsonl").read_text().splitlines()
    ]
    assert [line["stage"] for line in lines] == ["first", "second", "total", "total"]
    assert [line.get("total") for line in lines] == [None, None, 12, 24]
    assert all(line["seconds"] >= 0 for line in lines)


def test_stages_that_nobody_asks_for_stay(production):
    with production.stages() as stages:
        kept, other = (stages.run(name, lambda folder: {}) for name in ("kept", "other"))
    with production.stages() as stages:
        stages.run("kept", lambda folder: {})
        assert list(stages.counts) == ["kept"]
        assert stages.run("other", lambda folder: pytest.fail("repeated")) == other
    assert kept.folder.is_dir()


def test_what_a_stage_keeps_outlives_it_until_it_is_finished_or_changed(production):
    def produce(folder):
        seen.append([path.name for path in stages.unfinished.glob("*")])
        stages.unfinished.mkdir(exist_ok=True)
        (stages.unfinished / f"step-{len(seen)}").touch()
        if len(seen) < 4:
            raise KeyboardInterrupt
        return {}

    seen = []
    for settings in ({"rate": 1}, {"rate": 1}, {"rate": 2}, {"rate": 2}):
        with production.stages() as stages, contextlib.suppress(KeyboardInterrupt):
            stages.run("model", produce, settings=settings)
    assert seen == [[], ["step-1"], [], ["step-3"]]
    assert not list((production.folder / "work").glob("*.unfinished"))


def test_what_cannot_be_used_is_an_error(production):
    with (
        production.stages(),
        pytest.raises(MTMetricsError, match="another process is at work there"),
    ):
        production.stages()
    with pytest.raises(InputError, match=r"none\.txt: cannot be read"):
        production.run(first="none.txt")
    (production.folder / "log.jsonl").mkdir()
    with pytest.raises(MTMetricsError, match=r"cannot write .*log\.jsonl: Is a directory"):
        production.run()
    (production.folder / "work" / "state.json").write_text("{")
    with pytest.raises(MTMetricsError, match=r"state\.json: cannot be read .* remove it"):
        production.run()


def test_what_a_killed_run_left_is_removed(production):
    work = production.folder / "work"
    for name in (".total.abc.tmp", ".total.abc.tmp.old"):
        (work / name).mkdir(parents=True)
    (work / ".state.json.7-8.tmp").write_text("{")
    production.run()
    assert not list(work.glob(".*.tmp*"))
