"""Help, examples, completion, and messages in the words of the shell."""

import argparse
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import refused, write

from mtmetrics.cli.main import EXAMPLES, build_parser, leaves, main
from mtmetrics.cli.options import add_metric_options, metric_specs
from mtmetrics.layout import bundled_artifacts
from mtmetrics.reports.metric_runs import MetricSpec


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


def test_every_command_and_action_has_a_help(parser: argparse.ArgumentParser) -> None:
    [commands] = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for command in (*commands.choices.values(), *leaves(parser)):
        assert command.description
        assert "--help" in command.format_help()


def test_options_of_a_metric_stand_in_its_help_alone(capsys: pytest.CaptureFixture[str]) -> None:
    general = helped(capsys, "score")
    groups = ("\ninput:", "\nmetric:", "\nmodels:", "\noutput:", "\nexamples:", "--metric NAME --help")
    assert all(group in general for group in groups)
    assert "--drop-rate" not in general
    own = helped(capsys, "score", "--metric", "xmoverscore:mini")
    assert "--drop-rate" in own
    assert "--without" not in own


WRONG = ("", "no-such-command", "score --no-such-option", "score --format html", "evaluate --data", "plot")
WRONG += ("plot pie", "plot bars --data x", "probe guess", "probe preference --format tsv", "artifacts", "data", "idf")


@pytest.mark.parametrize("call", WRONG)
def test_wrong_usage_exits_with_2(capsys: pytest.CaptureFixture[str], call: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(call.split())
    assert (stopped.value.code, capsys.readouterr().out) == (2, "")


def test_all_commands_can_be_quiet(parser: argparse.ArgumentParser) -> None:
    assert all("--quiet" in command._option_string_actions for command in leaves(parser))


def test_errors_name_options_of_the_shell(mtmetrics: Callable, tiny_preset: Path, tmp_path: Path) -> None:
    rows = write(tmp_path / "rows.tsv", "das Haus\tthe house\n")
    for argv, message in (
        (["--preset", tiny_preset, rows], "language pair None: pass --lp, such as 'de-en'"),
        (["--preset", tiny_preset, "--lp", "de-en", "--layer", "77", rows], "--layer 77"),
        (["--metric", "bertr:mini:layer", rows], "'layer' cannot be used"),
        (["-r", rows, "-t", rows], "xmoverscore compares predictions with sources; pass -s SOURCES"),
    ):
        refused(mtmetrics("score", *argv), message)
    uscore = ("uscore", "--lp", "de-en", "--source-text", rows, "--target-text", rows, "--out", tmp_path / "made")
    refused(mtmetrics(*uscore, "--workers", "0"), "--workers 0: must be a whole number of at least 1")


def test_options_and_presets_go_to_the_metrics_that_they_are_for() -> None:
    def specs(*argv: str) -> dict[str, MetricSpec]:
        parser = argparse.ArgumentParser()
        add_metric_options(parser, several=True)
        return metric_specs(parser.parse_args(argv))

    texts = ("xmoverscore:mini:lm_weight=0.5,ngram=1", "sentsim::normalize=fixed")
    assert specs("--metric", texts[0], "--metric", texts[1], "--preset", "paper") == {
        texts[0]: MetricSpec("xmoverscore", "mini", (("lm_weight", 0.5), ("ngram", 1))),
        texts[1]: MetricSpec("sentsim", "paper", (("normalize", "fixed"),)),
    }
    (spec,) = specs("--metric", "sentsim:mini:layer=2", "--combine", "sss+wmd", "--layer", "3").values()
    assert (spec.metric, spec.preset, dict(spec.options)) == ("sentsim", "mini", {"layer": 2, "combine": "sss+wmd"})
    assert specs() == {"xmoverscore": MetricSpec("xmoverscore", "paper")}


def test_list_says_what_works_here(mtmetrics: Callable) -> None:
    code, out, _ = mtmetrics("list", "xmoverscore", "esim", "uscore", "--format", "tsv")
    rows = {tuple(line.split("\t")[:2]): line.split("\t")[2:] for line in out.splitlines()}
    assert code == 0
    compared, languages, offline, needs, size, licence = rows["xmoverscore", "mini"]
    assert (compared, offline, needs) == ("source", "yes", "mini-encoder mini-lm-en")
    folders = [bundled_artifacts() / name for name in needs.split()]
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    assert float(size) == pytest.approx(sum(file.stat().st_size for file in files) / 1e6, abs=0.05)
    assert licence == "mixed-training-data"
    assert languages.endswith("zh")
    assert rows["uscore", "mini"][1].endswith("zh \N{RIGHTWARDS ARROW} en")
    assert rows["esim", "mini"][::2] == ["source or reference", "yes", rows["esim", "mini"][4]]
    assert rows["esim", "mini"][3] == "esim-mini mini-encoder"
    assert rows["esim", "paper"][2].startswith("no: names no model")
    found = {row["preset"]: row for row in json.loads(mtmetrics("list", "comet", "--format", "json")[1])["metrics"]}
    kiwi = found["wmt22-cometkiwi-da"]
    assert (kiwi["licences"], kiwi["megabytes"]) == (["gated, CC BY-NC-SA 4.0"], None)
    assert kiwi["needs"] == ["Unbabel/wmt22-cometkiwi-da"]
    assert mtmetrics("list", "bleurt")[0] == 2
