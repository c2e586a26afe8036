"""Help, examples, and wrong usage."""

import argparse
import os
import shlex
import sys
from pathlib import Path

import pytest

from mtmetrics.cli.main import build_parser, main, runnable_commands
from mtmetrics.cli.parser import EXAMPLES

PLUGIN = """
import mtmetrics


class Lengths(mtmetrics.PluginMetric):
    metric = "lengths"
"""


@pytest.fixture(scope="module")
def parser() -> argparse.ArgumentParser:
    return build_parser()


def test_every_example_is_a_call_that_is_understood(parser: argparse.ArgumentParser) -> None:
    for line in EXAMPLES.strip().splitlines():
        name, *argv = shlex.split(line)
        assert name == "mtmetrics"
        assert callable(parser.parse_args(argv).run)


def test_every_command_has_three_examples(parser: argparse.ArgumentParser) -> None:
    [commands] = [
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    ]
    shown = [line.split()[1] for line in EXAMPLES.strip().splitlines()]
    commands = set(commands.choices)
    assert {name: shown.count(name) for name in commands if shown.count(name) < 3} == {"doctor": 1}


def helped(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    with pytest.raises(SystemExit) as stopped:
        main([*argv, "--help"])
    assert stopped.value.code == 0
    return capsys.readouterr().out


def test_every_command_and_action_has_a_help(parser: argparse.ArgumentParser) -> None:
    [commands] = [
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    ]
    for command in (*commands.choices.values(), *runnable_commands(parser)):
        assert command.description
        assert "--help" in command.format_help()


def test_help_of_a_service_needs_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("anyio", "starlette"):
        monkeypatch.setitem(sys.modules, package, None)
    for module in ("mtmetrics.cli.serve", "mtmetrics.integrations.service"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    descriptions = [
        command.description or "" for command in runnable_commands(build_parser("serve"))
    ]
    assert any("POST /score" in description for description in descriptions)


def test_options_of_a_metric_stand_in_its_help_alone(capsys: pytest.CaptureFixture[str]) -> None:
    general = helped(capsys, "score")
    groups = (
        "\ninput:",
        "\nmetric:",
        "\nmodels:",
        "\noutput:",
        "\nexamples:",
        "--metric NAME --help",
    )
    assert all(group in general for group in groups)
    assert "--drop-rate" not in general
    own = helped(capsys, "score", "--metric", "xmoverscore:mini")
    assert "--drop-rate" in own
    assert "--without" not in own
    twice = helped(capsys, "score", "--metric", "sentsim:mini", "--metric", "sentsim:paper")
    assert twice.count("preset (sentsim)") == 1


@pytest.mark.parametrize("call", ["doctor", "data list", "artifacts verify"])
def test_an_example_without_arguments_stands_in_help(
    capsys: pytest.CaptureFixture[str], call: str
) -> None:
    assert f"\nexamples:\n  mtmetrics {call}\n" in helped(capsys, *call.split())


WRONG = (
    "",
    "no-such-command",
    "score --no-such-option",
    "score --format html",
    "evaluate --data",
)
WRONG += (
    "probe guess",
    "probe preference --format tsv",
    "artifacts",
    "data",
    "idf",
)


@pytest.mark.parametrize("call", WRONG)
def test_wrong_usage_exits_with_2(capsys: pytest.CaptureFixture[str], call: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(call.split())
    assert (stopped.value.code, capsys.readouterr().out) == (2, "")


@pytest.mark.parametrize(
    "call",
    [
        "score --plug lengths.py --metric lengths rows.tsv",
        "score --plugi=lengths.py --metric lengths rows.tsv",
        "score --plugin lengths.py --metri lengths rows.tsv",
        "score --metric random --see 3 rows.tsv",
        "list --plug lengths.py",
        "train lm --mono en.txt --ou lm",
        "artifacts pull x --l de-en",
        "--vers",
    ],
)
def test_the_beginning_of_a_name_is_no_option(
    no_plugins: None, capsys: pytest.CaptureFixture[str], call: str
) -> None:
    Path("lengths.py").write_text(PLUGIN)
    Path("rows.tsv").write_text("source\ttranslation\na\tb\n")
    with pytest.raises(SystemExit) as stopped:
        main(call.split())
    assert (stopped.value.code, capsys.readouterr().out) == (2, "")


def test_no_parser_takes_the_beginning_of_a_name(parser: argparse.ArgumentParser) -> None:
    assert not any(command.allow_abbrev for command in (parser, *runnable_commands(parser)))


def test_all_commands_can_be_quiet(parser: argparse.ArgumentParser) -> None:
    assert all("--quiet" in command._option_string_actions for command in runnable_commands(parser))


@pytest.mark.parametrize("argv", [["evaluate", "--recipes"], ["score", "--help"], ["--version"]])
def test_a_reader_that_went_away_is_no_bug(
    argv: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that stops, such as ``| head -1``, meets no traceback and no complaint of the
    interpreter at its end."""
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as gone:
        monkeypatch.setattr("sys.stdout", gone)
        try:
            code = main(argv)
        except SystemExit as stopped:
            code = stopped.code
    assert code == 1
