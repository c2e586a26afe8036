"""Files and folders are whole or absent."""

import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save

from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.io.atomic import (
    atomic_path,
    atomic_text,
    filled_folder,
    git_blob_sha1,
    in_one_order,
    new_folder,
    write_atomic,
)


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
    with pytest.raises(MTMetricsError, match="cannot write"), new_folder(tmp_path / "file" / "b"):
        pass


def test_folders(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "folder"
    with new_folder(target) as temporary:
        (temporary / "a").write_text("1")
        assert not target.exists()
    assert (target / "a").read_text() == "1"
    with pytest.raises(InputError, match="exists already"), new_folder(target):
        pass

    def fail() -> None:
        with new_folder(target, overwrite=True) as temporary:
            (temporary / "a").write_text("2")
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert (target / "a").read_text() == "1"
    with new_folder(target, overwrite=True) as temporary:
        (temporary / "b").write_text("3")
    assert os.listdir(target) == ["b"]
    assert os.listdir(target.parent) == ["folder"]


def test_folders_that_stay_empty_vanish(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    with filled_folder(deep):
        assert deep.is_dir()
    assert not list(tmp_path.iterdir())
    with filled_folder(tmp_path / "a" / "b"):
        (tmp_path / "a" / "file").write_text("x")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["file"]
    with filled_folder(tmp_path / "a"):
        (tmp_path / "a" / "file").unlink()
    assert (tmp_path / "a").is_dir()  # it was there before


def test_git_blob_hashes() -> None:
    # `printf 'hello\n' | git hash-object --stdin` and the empty file, known from any git
    # repository.
    assert git_blob_sha1(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"
    assert git_blob_sha1(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


def test_safetensors_metadata_in_one_order() -> None:
    tensors = {"b": np.arange(6.0).reshape(2, 3), "a": np.ones(1, dtype=np.float32)}
    names = [letter * 3 for letter in "hgfedcbaäö"]
    orders = (names, names[::-1], sorted(names))
    [data] = {
        in_one_order(save(tensors, metadata={name: name.upper() for name in order}))
        for order in orders
    }
    read = load(data)
    assert all(np.array_equal(read[name], array) for name, array in tensors.items())
    header = data[8 : 8 + int.from_bytes(data[:8], "little")].decode()
    assert [header.index(f'"{name}"') for name in sorted(names)] == sorted(
        header.index(f'"{name}"') for name in names
    )
    assert len(header.encode()) % 8 == 0


def test_an_error_of_the_work_keeps_its_own_file(tmp_path: Path) -> None:
    def work() -> None:
        with atomic_text(tmp_path / "out"):
            raise OSError(30, "Read-only file system", "/dev/shm/x")

    with pytest.raises(OSError, match="/dev/shm/x") as raised:
        work()
    assert not isinstance(raised.value, MTMetricsError)
    assert not os.listdir(tmp_path)
