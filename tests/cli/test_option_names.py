"""Messages in the words of the shell."""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import refused, write


def test_errors_name_options_of_the_shell(
    mtmetrics: Callable, tiny_preset: Path, tmp_path: Path
) -> None:
    rows = write(tmp_path / "rows.tsv", "das Haus\tthe house\n")
    lines = write(tmp_path / "lines", "das Haus\n")
    for argv, message in (
        (["--preset", tiny_preset, rows], "language pair None: pass --lp, such as 'de-en'"),
        (["--preset", tiny_preset, "--lp", "de-en", "--layer", "77", rows], "--layer 77"),
        (["--metric", "bertr:mini:layer", rows], "'layer' cannot be used"),
        (
            ["-r", lines, "-t", lines],
            "xmoverscore compares predictions with sources; pass -s SOURCES",
        ),
    ):
        refused(mtmetrics("score", *argv), message)
    uscore = (
        "train",
        "uscore",
        "--lp",
        "de-en",
        "--source-text",
        rows,
        "--target-text",
        rows,
        "--out",
        tmp_path / "made",
    )
    refused(
        mtmetrics(*uscore, "--workers", "0"), "--workers 0: must be a whole number of at least 1"
    )


def test_files_that_are_found_in_a_folder_keep_their_names(
    mtmetrics: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = write(tmp_path / "runs" / "seed=1" / "layer=4.jsonl", "{}\n")
    write(tmp_path / "flat" / "layer=3.jsonl", "{}\n")
    monkeypatch.chdir(tmp_path / "flat")
    for folder, shown in ((tmp_path / "runs", deep), (".", "layer=3.jsonl")):
        refused(
            mtmetrics("evaluate", "--metric", "chrf", "--data", folder),
            f"mtmetrics: {shown}, line 1: no field",
        )
