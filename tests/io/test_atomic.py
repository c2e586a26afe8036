"""Files and folders are whole or absent."""

import os
from pathlib import Path

import pytest

from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.io.atomic import atomic_folder, atomic_path, atomic_text, output_folder, write_atomic
from mtmetrics.io.lines import iter_lines


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_atomic(path, "old")

    def fail() -> None:
        with atomic_path(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(MTMetricsError, match="cannot write .*none/a: No such file or directory"):
        write_atomic(tmp_path / "none" / "a", "x")
    (tmp_path / "file").write_text("x")
    with (
        pytest.raises(MTMetricsError, match="cannot write"),
        atomic_folder(tmp_path / "file" / "b"),
    ):
        pass


def test_folders(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "folder"
    with atomic_folder(target) as temporary:
        (temporary / "a").write_text("1")
        assert not target.exists()
    assert (target / "a").read_text() == "1"
    with pytest.raises(InputError, match="exists already"), atomic_folder(target):
        pass

    def fail() -> None:
        with atomic_folder(target, overwrite=True) as temporary:
            (temporary / "a").write_text("2")
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert (target / "a").read_text() == "1"
    with atomic_folder(target, overwrite=True) as temporary:
        (temporary / "b").write_text("3")
    assert os.listdir(target) == ["b"]
    assert os.listdir(target.parent) == ["folder"]


def test_the_target_of_a_link_to_a_folder_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    (target / "old").mkdir(parents=True)
    link.symlink_to(target)
    with atomic_folder(link, overwrite=True) as temporary:
        (temporary / "new").write_text("1")
    assert link.is_symlink()
    assert os.listdir(target) == ["new"]
    assert sorted(os.listdir(tmp_path)) == ["link", "target"]


def test_a_folder_replaces_no_file_and_no_folder_made_meanwhile(tmp_path: Path) -> None:
    file, target = tmp_path / "file", tmp_path / "target"
    file.write_text("x")
    for overwrite in (False, True):
        with pytest.raises(InputError, match="file is a file"), atomic_folder(file, overwrite):
            pass
    with pytest.raises(InputError, match="target exists already"), atomic_folder(target):
        (target / "of another process").mkdir(parents=True)
    assert os.listdir(target) == ["of another process"]
    assert sorted(os.listdir(tmp_path)) == ["file", "target"]


def test_the_old_folder_comes_back_if_the_new_one_cannot_be_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    (target / "old").mkdir(parents=True)
    replace = os.replace

    def replace_but_not_by_temporary(source: Path, destination: Path) -> None:
        if source.suffix == ".tmp":
            raise OSError(28, "No space left on device")
        replace(source, destination)

    monkeypatch.setattr(os, "replace", replace_but_not_by_temporary)
    with (
        pytest.raises(MTMetricsError, match="target: No space left"),
        atomic_folder(target, overwrite=True) as temporary,
    ):
        (temporary / "new").write_text("1")
    assert os.listdir(target) == ["old"]
    assert os.listdir(tmp_path) == ["target"]


def test_folders_that_stay_empty_vanish(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    with output_folder(deep):
        assert deep.is_dir()
    assert not list(tmp_path.iterdir())
    with output_folder(tmp_path / "a" / "b"):
        (tmp_path / "a" / "file").write_text("x")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["file"]
    with output_folder(tmp_path / "a"):
        (tmp_path / "a" / "file").unlink()
    assert (tmp_path / "a").is_dir()  # it was there before


def test_an_error_of_the_work_keeps_its_own_file(tmp_path: Path) -> None:
    def work() -> None:
        with atomic_text(tmp_path / "out"):
            raise OSError(30, "Read-only file system", "/dev/shm/x")

    with pytest.raises(OSError, match="/dev/shm/x") as raised:
        work()
    assert not isinstance(raised.value, MTMetricsError)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("name", ["rows.jsonl.gz", "ROWS.JSONL.GZ"])
def test_a_compressed_file_is_read_back(tmp_path: Path, name: str) -> None:
    with atomic_text(tmp_path / name) as stream:
        stream.write("a\n")
    assert list(iter_lines(tmp_path / name)) == ["a"]
