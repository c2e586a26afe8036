"""Help, examples, completion, and messages in the words of the shell."""

import argparse
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from mtmetrics.cli.main import EXAMPLES, build_parser, leaves, main


@pytest.fixture(scope="module")
def parser() -> argparse.ArgumentParser:
    return build_parser()


def test_every_example_is_a_call_that_is_understood(parser: argparse.ArgumentParser) -> None:
    for line in EXAMPLES.strip().splitlines():
        name, *argv = shlex.split(line)
        assert name == "mtmetrics"
        assert callable(parser.parse_args(argv).run)


def test_every_command_has_three_examples(parser: argparse.ArgumentParser) -> None:
    [commands] = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    shown = [line.split()[1] for line in EXAMPLES.strip().splitlines()]
    assert {name: shown.count(name) for name in commands.choices if shown.count(name) < 3} == {"doctor": 1}


def helped(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        main([*argv, "--help"])
    assert stopped.value.code == 0
    return capsys.readouterr().out


def test_options_of_a_metric_stand_in_its_help_alone(capsys: pytest.CaptureFixture[str]) -> None:
    general = helped(capsys, "score")
    assert [group in general for group in ("\ninput:", "\nmetric:", "\nmodels:", "\noutput:", "\nexamples:")] == [
        True
    ] * 5
    assert "--metric NAME --help" in general
    assert "--drop-rate" not in general
    own = helped(capsys, "score", "--metric", "xmoverscore:mini")
    assert "--drop-rate" in own
    assert "--without" not in own


def test_all_commands_can_be_quiet(parser: argparse.ArgumentParser) -> None:
    assert all("--quiet" in command._option_string_actions for command in leaves(parser))


def test_errors_name_options_of_the_shell(mtmetrics: Callable, tiny_preset: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.tsv"
    rows.write_text("das Haus\tthe house\n")
    for argv, message in (
        (["--preset", tiny_preset, rows], "language pair None: pass --lp, such as 'de-en'"),
        (["--preset", tiny_preset, "--lp", "de-en", "--layer", "77", rows], "--layer 77"),
        (["--metric", "bertr:mini", "--metric", "bertr:mini", rows], "--metric bertr:mini: given twice"),
        (["-r", rows, "-t", rows], "xmoverscore compares predictions with sources; pass -s SOURCES"),
    ):
        code, out, err = mtmetrics("score", *argv)
        assert (code, out) == (2, "")
        assert message in err


def test_list_says_what_works_here(mtmetrics: Callable) -> None:
    code, out, _ = mtmetrics("list", "xmoverscore", "esim", "uscore", "--format", "tsv")
    rows = {tuple(line.split("\t")[:2]): line.split("\t")[2:] for line in out.splitlines()}
    assert code == 0
    compared, languages, offline = rows["xmoverscore", "mini"]
    assert (compared, offline) == ("source", "yes")
    assert languages.endswith("zh \N{RIGHTWARDS ARROW} en")
    assert rows["uscore", "uscore-mini-ro-en"][1] == "ro \N{RIGHTWARDS ARROW} en"
    assert rows["esim", "esim-mini-qe"][::2] == ["source", "yes"]
    assert rows["esim", "paper"][2].startswith("no: names no model")
    assert mtmetrics("list", "bleurt")[0] == 2
