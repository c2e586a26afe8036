"""Reading lines and parallel files, and the errors that name file and line."""

import gzip
from pathlib import Path

import pytest
from helpers import write

from mtmetrics.errors import InputError
from mtmetrics.io.lines import first_difference, iter_lines, iter_parallel, short_name


def test_only_newlines_end_a_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "\ufeffeins\u2028zwei\x0bdrei\r\n\nvier".encode())
    assert list(iter_lines(path)) == ["eins\u2028zwei\x0bdrei", "", "vier"]


def test_gzip(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt.gz", "ä\nb\n")
    assert list(iter_lines(path)) == ["ä", "b"]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("bad.txt", b"ok\n\xff\n", r"bad.txt, line 2: byte 1 \(0xff\) is not valid UTF-8"),
        (
            "cut.txt.gz",
            gzip.compress(b"x" * 9999, mtime=0)[:30],
            "cut.txt.gz, after line 0: cannot be read",
        ),
        ("plain.txt.gz", b"no gzip", "plain.txt.gz, after line 0: cannot be read"),
    ],
)
def test_damaged_files(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(iter_lines(write(tmp_path / name, data)))


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none.txt: no such file"):
        list(iter_lines(tmp_path / "none.txt"))
    with pytest.raises(InputError, match="is a folder"):
        list(iter_lines(tmp_path))


def test_a_stray_nul_does_not_make_a_file_utf16(tmp_path: Path) -> None:
    # The last four bytes begin within the letter é.
    path = write(tmp_path / "a.txt", "naïf\0 caf\u00e9 et th\u00e9 br\u00e9abc")
    with pytest.raises(InputError, match="line 1: holds a NUL byte"):
        list(iter_lines(path))


def test_an_object_below_a_blank_line_may_be_a_segment(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", '\n{"a": 1}')
    assert list(iter_lines(path, "segments")) == ["", '{"a": 1}']


def test_parallel_files_of_unequal_length(tmp_path: Path) -> None:
    left, right = write(tmp_path / "left", b"a\nb\n"), write(tmp_path / "right", b"c\n")
    assert list(iter_parallel([left, left])) == [["a", "a"], ["b", "b"]]
    with pytest.raises(InputError, match=r"right ends after 1 lines, but .*left goes on"):
        list(iter_parallel([left, right]))


@pytest.mark.parametrize(
    ("path", "name"), [("/a/b/c", "b/c"), ("b/c", "b/c"), ("/c", "/c"), ("c", "c"), ("-", "-")]
)
def test_a_short_name_is_a_path(path: str, name: str) -> None:
    assert short_name(path) == name


def test_the_first_difference_of_two_plans_is_named() -> None:
    plan = {"rows": 3, "settings": {"dtype": "float32", "layers": [1, 2]}}
    assert first_difference(plan, plan) is None
    assert first_difference(plan, plan | {"rows": 4}) == "rows 3, not 4"
    assert (
        first_difference(plan, plan | {"settings": {"dtype": "float32"}})
        == "layers [1, 2], not null"
    )
    assert first_difference(plan, plan | {"seed": "x"}) == "seed null, not 'x'"
