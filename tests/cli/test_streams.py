"""Where commands write: files that are links, devices, pipes or inputs, and standard output in any
state."""

import io
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import refused, write

from mtmetrics.cli.main import main
from mtmetrics.scorers.baselines import PredictionLength

Command = Callable[..., tuple[int, str, str]]
LENGTH = ["--metric", "prediction_length"]
SOURCES, TRANSLATIONS = "Das Haus.\nDer Hund schläft.\n", "The house.\nThe dog sleeps… ż\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "s", SOURCES)
    write(tmp_path / "t", TRANSLATIONS)
    (tmp_path / "link").symlink_to("s")
    (tmp_path / "same").mkdir()
    os.link(tmp_path / "t", tmp_path / "same" / "hard")
    return tmp_path


SCORE = ["score", "-s", "s", "-t", "t", *LENGTH, "--format", "json"]
FILTER = ["filter", "pairs.tsv", *LENGTH, "--top", "1", "--skip", "language"]


@pytest.mark.parametrize("out", ["s", "./s", "link", "same/../s", "same/hard", "t"])
def test_output_that_is_an_input_is_refused(mtmetrics: Command, files: Path, out: str) -> None:
    for argv in (
        [*SCORE, "--out", out],
        ["rerank", "-s", "s", "-t", "t", "t", "--metric", "chrf", "--out", out],
        ["rerank", "-s", "s", "-t", "t", "t", "--metric", "chrf", "--report", out],
        [
            "train",
            "idf",
            "--encoder",
            "mini-encoder",
            "--text",
            "s",
            "t",
            "--out",
            out,
            "--overwrite",
        ],
        ["score", "-s", "s", "-t", "t", "--metric", "scores:t", "--format", "json", "--out", out],
    ):
        refused(mtmetrics(*argv), f"{out}: is the input ")
    assert ((files / "s").read_text(), (files / "t").read_text()) == (SOURCES, TRANSLATIONS)


def test_one_output_is_not_another(mtmetrics: Command, files: Path) -> None:
    write(files / "pairs.tsv", "Das Haus.\tThe house.\n")
    refused(mtmetrics(*FILTER, "--out", "pairs.tsv"), "--out pairs.tsv: is the input FILE")
    refused(
        mtmetrics(*FILTER, "--out", "new.tsv", "--report", "./new.tsv"),
        "./new.tsv: is --out new.tsv, too",
    )
    assert mtmetrics(*FILTER, "--out", "new.tsv", "--report", "report.json")[0] == 0


def test_links_and_modes_stay(mtmetrics: Command, files: Path) -> None:
    (files / "folder").mkdir()
    target = write(files / "folder" / "scores.json", b"old")
    target.chmod(0o640)
    for name, place in (
        ("first", "folder/scores.json"),
        ("second", "first"),
        ("dangling", "folder/new.json"),
    ):
        (files / name).symlink_to(place)
    for name in ("first", "second", "dangling"):
        assert mtmetrics(*SCORE, "--out", name)[0] == 0
        assert (files / name).is_symlink()
        assert json.loads((files / name).read_text())["mean_score"] == -13.5
        (files / name).write_text("")
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert sorted(os.listdir(files / "folder")) == ["new.json", "scores.json"]
    (files / "nowhere").symlink_to("none/new.json")
    refused(mtmetrics(*SCORE, "--out", "nowhere"), "there is no folder")


def test_devices_and_pipes_are_written_directly(mtmetrics: Command, files: Path) -> None:
    write(files / "pairs.tsv", "Das Haus.\tThe house.\n")
    before = os.stat("/dev/null")
    assert mtmetrics(*SCORE, "--out", "/dev/null")[0] == 0
    assert mtmetrics(*FILTER, "--report", "/dev/null")[0] == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert os.stat("/dev/null").st_ino == before.st_ino
    os.mkfifo(files / "pipe")
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.append((files / "pipe").read_text()))
    reader.start()
    assert mtmetrics(*SCORE, "--out", "pipe")[0] == 0
    reader.join()
    assert json.loads(received[0])["mean_score"] == -13.5
    assert stat.S_ISFIFO((files / "pipe").stat().st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_one_line_with_the_name_of_the_file(mtmetrics: Command, files: Path) -> None:
    refused(
        mtmetrics(*SCORE, "--out", "/dev/full"),
        "cannot write /dev/full: No space left on device",
        code=1,
    )


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_a_signal_leaves_nothing_behind(
    mtmetrics: Command,
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    code: int,
) -> None:
    before, handler = sorted(os.listdir(files)), signal.getsignal(number)
    during: list[list[str]] = []

    def interrupted(*_: object, **__: object) -> None:
        during.append(sorted(os.listdir(files)))
        os.kill(os.getpid(), number)

    monkeypatch.setattr(PredictionLength, "compute", interrupted)
    got, out, err = mtmetrics(*SCORE, "--out", "scores.json")
    assert (got, out, err.count("\n")) == (code, "", 1)
    assert len(during[0]) == len(before) + 1
    assert sorted(os.listdir(files)) == before
    assert signal.getsignal(number) is handler


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            OSError(30, "Read-only file system", "/dev/shm/x"),
            "mtmetrics: /dev/shm/x: Read-only file system\n",
        ),
        (OSError(24, "Too many open files"), "mtmetrics: Too many open files\n"),
    ],
)
def test_an_error_of_the_system_names_its_own_file(
    mtmetrics: Command, files: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, message: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(PredictionLength, "compute", fail)
    assert mtmetrics(*SCORE, "--out", "scores.json") == (1, "", message)


class Shell:
    """Standard output as a shell may make it, in place of the one of this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
        self.bytes = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(self.bytes, encoding=encoding))


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp1252"])
@pytest.mark.parametrize("form", ["json", "tsv"])
def test_machine_formats_are_utf8(
    files: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, form: str
) -> None:
    os.rename(files / "t", files / "ż…")
    shell = Shell(monkeypatch, encoding)
    argv = [word if word != "t" else "ż…" for word in SCORE]
    assert main([*argv, "-t", "s", "--format", form]) == 0
    assert sys.stdout.encoding == encoding
    assert "ż…" in shell.bytes.getvalue().decode("utf-8")


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_other_commands_write_utf8_too(
    files: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    write(files / "pairs.tsv", "Das Haus.\tThe house… ż\n")
    for argv in (
        FILTER,
        ["rerank", "-s", "s", "-t", "t", "t", *LENGTH],
        ["explain", "--metric", "bertr:mini", "-r", "s", "-t", "t", "--format", "jsonl"],
        ["explain", "--metric", "bertr:mini", "-r", "s", "-t", "t", "--format", "json"],
        ["compare", "-s", "s", "-t", "t", "ż…", *LENGTH, "--format", "csv"],
    ):
        if not (files / "ż…").exists():
            write(files / "ż…", TRANSLATIONS)
        shell = Shell(monkeypatch, encoding)
        assert main(argv) == 0
        assert "ż" in shell.bytes.getvalue().decode("utf-8"), argv


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_tables_lose_what_the_encoding_lacks(
    files: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    os.rename(files / "t", files / "żt")
    for argv in (
        ["score", "-s", "s", "-t", "żt", *LENGTH, "--format", "table", "--segments"],
        ["compare", "-s", "s", "-t", "s", "żt", *LENGTH, "--format", "table"],
        ["explain", "--metric", "bertr:mini", "-r", "s", "-t", "żt", "--format", "text"],
    ):
        shell = Shell(monkeypatch, encoding)
        assert main(argv) == 0
        assert "?" in shell.bytes.getvalue().decode(encoding), argv


def test_no_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["list"]) == 1
    assert capsys.readouterr().err.startswith("mtmetrics: standard output is closed")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_and_abandoned_output_in_one_shell(files: Path) -> None:
    python = f"{sys.executable} -m mtmetrics"
    script = f"""
    {python} --help > /dev/full; echo $?
    {python} evaluate --recipes > /dev/full; echo $?
    {python} --help | true; echo ${{PIPESTATUS[0]}}
    {python} --version >&-; echo $?
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1"] * 4
    full, closed = (
        "mtmetrics: standard output: No space left on device",
        "mtmetrics: standard output is closed",
    )
    lines = done.stderr.splitlines()
    assert lines[:2] == [full, full]
    assert lines[2].startswith(closed)
    assert len(lines) == 3
