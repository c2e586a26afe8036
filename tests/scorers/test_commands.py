"""Scores that another program computes: what it is given, what it may give, and what is said where
it fails."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from helpers import both

from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.scorers.registry import load_scorer

# Writes a line for every call, and for each row how many more characters the translation has than
# the other columns.
PROGRAM = """
import json, os, sys
open("calls", "a").write(os.environ.get("MTMETRICS_LANG_PAIR", "") + os.environ.get("OWN", "") + "\\n")
for line in sys.stdin:
    row = json.loads(line)
    print(len(row["translation"]) - sum(len(text) for name, text in row.items() if name != "translation"))
"""
OTHERS, TEXTS = ["ein Haus", "zwei\nWege", "", "ein Haus"], ["a house", "two", "three", "a house"]


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Writes commands.toml, with a table [it], where the program lies, and loads the metric."""
    monkeypatch.chdir(tmp_path)
    Path("program.py").write_text(PROGRAM)

    def load(table: str, name: str = "it", **options: object):
        Path("commands.toml").write_text(f"[it]\n{textwrap.dedent(table)}")
        return load_scorer("cmd", name, **options)

    return load


def python(program: str = "program.py", *arguments: str) -> str:
    return f"command = {json.dumps([sys.executable, program, *arguments])}\n"


def test_rows_go_in_and_numbers_come_out(commands) -> None:
    scorer = commands(python() + "environment = {OWN = '!'}\nfloor = -99", lang_pair="de-en")
    result = scorer.score(TEXTS, sources=OTHERS)
    assert result.segments.tolist() == [-1.0, -6.0, -99.0, -1.0]
    assert (result.report.blank, scorer.side, Path("calls").read_text()) == (
        1,
        "source",
        "de-en!\n",
    )
    assert result.signature.startswith(f"cmd|name:it#{scorer.command.fingerprint}|lp:de-en|v:")
    both = scorer.score_systems({"a": TEXTS, "b": ["a", "b", "c", "d"]}, sources=OTHERS)
    assert both["b"].segments.tolist() == [-7.0, -8.0, -99.0, -7.0]


def test_source_and_reference_and_lower_is_better(commands) -> None:
    columns = "columns = ['reference', 'translation', 'source']\nlower_is_better = true\nfloor = 5"
    scorer = commands(python() + columns)
    result = scorer.score(["abcd", "x"], **both([("a", "bc"), ("a", " ")]))
    assert (result.segments.tolist(), scorer.side) == ([-1.0, -5.0], "both")
    assert "sign:turned" in result.signature
    blank = commands(python() + "lower_is_better = true").score(["x"], sources=[" "])
    assert str(blank.segments.tolist()) == "[0.0]"
    with pytest.raises(
        InputError,
        match="against 'source': the columns of cmd:it are reference, translation, source",
    ):
        commands(python() + columns, against="source")


def test_tabs_and_files(commands) -> None:
    Path("tabs.py").write_text("import sys\nfor line in sys.stdin: print(line.index('\\t'))")
    assert commands(python("tabs.py") + "input = 'tsv'").score(
        TEXTS, sources=OTHERS
    ).segments.tolist() == [
        8.0,
        9.0,
        0.0,
        8.0,
    ]
    Path("files.py").write_text(
        "import json, sys\n"
        "sources, translations = (open(path).read().splitlines() for path in sys.argv[1:3])\n"
        "rows = [{'src': s, 'COMET': len(s) / 2} for s, _ in zip(sources, translations, "
        "strict=True)]\n"
        "json.dump({sys.argv[2]: rows}, open(sys.argv[3], 'w'))"
    )
    # As `comet-score --to_json` writes them.
    scorer = commands(
        python("files.py", "{source}", "{translation}", "{scores}") + "output = 'json'"
    )
    assert scorer.score(TEXTS, sources=OTHERS).segments.tolist() == [4.0, 4.5, 0.0, 4.0]


def test_rows_in_a_file_under_names_of_its_own(commands) -> None:
    Path("rows.py").write_text(
        "import json, sys\n"
        "rows = [json.loads(line) for line in open(sys.argv[1])]\n"
        "open(sys.argv[2], 'w').writelines(json.dumps({**row, 'p': len(row['hypothesis'])}) + "
        "'\\n' for row in rows)"
    )
    table = "columns = {source = 'source', translation = 'hypothesis'}\noutput = 'jsonl'\nkey = 'p'"
    scorer = commands(python("rows.py", "{rows}", "{scores}") + table)
    assert scorer.score(TEXTS, sources=OTHERS).segments.tolist() == [7.0, 3.0, 0.0, 7.0]


def test_calls_of_few_rows_are_kept_and_gone_on_with(commands) -> None:
    table = python() + "lines = 1\nkeep = 'kept'"
    result = commands(table).score(TEXTS, sources=OTHERS)
    assert (len(Path("calls").read_text().splitlines()), len(list(Path("kept").iterdir()))) == (
        2,
        2,
    )
    next(Path("kept").iterdir()).unlink()
    assert (
        commands(table).score(TEXTS, sources=OTHERS).segments.tolist() == result.segments.tolist()
    )
    assert len(Path("calls").read_text().splitlines()) == 3
    commands(table + "\nversion = '2'").score(TEXTS, sources=OTHERS)
    assert len(Path("calls").read_text().splitlines()) == 5


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import sys; sys.exit('no such model')", r"metric cmd:it: ended with 1 \(no such model\)"),
        ("raise SystemExit(3)", r"ended with 3 \(it said nothing\)"),
        ("print(1)", "2 numbers are needed, one for each row; its output has 1"),
        ("print('a')\nprint(2)", "its output, line 1: a finite number is needed, got 'a'"),
        ("print('nan')\nprint(2)", "its output, line 1: a finite number is needed, got 'nan'"),
        ("", "its output: empty; there are no scores"),
        (
            "import time; time.sleep(60)",
            "not done after 0.5 seconds; raise timeout, or lower lines",
        ),
    ],
)
def test_what_goes_wrong_is_said_in_a_line(commands, program: str, message: str) -> None:
    Path("wrong.py").write_text(program)
    limit = "timeout = 0.5" if "sleep" in program else ""
    with pytest.raises(MTMetricsError, match=message):
        commands(python("wrong.py") + limit).score(TEXTS, sources=OTHERS)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            "command = 'no-such-program'",
            r"cannot be started \(no-such-program: No such file or directory\)",
        ),
        (
            "command = 'true'\nfolder = 'none'",
            r"cannot be started \(.*/none: No such file or directory\)",
        ),
        ("", r"commands commands.toml, \[it\]: no command"),
        ("command = 3", r"\[it\]: command 3: not of the kind that is needed"),
        (
            "command = 'cat'\nline = 3",
            r"\[it\]: unknown key 'line'; there are: command, columns, input",
        ),
        ("command = 'cat'\nlines = 0", r"\[it\]: lines 0: must be a whole number of at least 1"),
        ("command = 'cat'\nlines = true", r"\[it\]: lines True"),
        ("command = 'cat'\ntimeout = -1", r"\[it\]: timeout -1: must be more than 0 seconds"),
        ("command = 'cat'\ninput = 'csv'", r"\[it\]: input 'csv': must be one of jsonl, tsv"),
        (
            "command = 'cat'\ncolumns = ['source']",
            r"\[it\]: columns \['source'\]: translation and one or both of",
        ),
        (
            "command = 'cat'\ncolumns = ['source', 'source']",
            r"\[it\]: columns \['source', 'source'\]: translation and one or both of",
        ),
        (
            "command = 'cat'\ncolumns = {source = 'a', translation = 'a'}",
            r"\[it\]: columns \{.*\}: two have the same name in the rows",
        ),
        (
            "command = 'cat'\ntimeout = 1e9",
            r"\[it\]: timeout 1e\+09: must be at most 2147483 seconds",
        ),
        ("command = ' '", r"\[it\]: no command"),
        ('''command = "cat 'a"''', r"""\[it\]: command "cat 'a": No closing quotation"""),
        (
            "command = 'cat {reference}'",
            r"\[it\]: command: names \{reference\}, which columns does not",
        ),
        ("command = 'cat'\nenvironment = {A = 1}", r"\[it\]: environment"),
        ("command = [", "commands commands.toml: cannot be read as TOML"),
        ("command = 'true {scores}'", "it ended well, but wrote no {scores}"),
    ],
)
def test_what_a_table_cannot_say(commands, table: str, message: str) -> None:
    with pytest.raises(MTMetricsError, match=message):
        commands(table).score(TEXTS, sources=OTHERS)


def test_what_is_missing_is_named(commands) -> None:
    with pytest.raises(
        InputError, match="metric cmd:other: commands.toml has no such table; there are: it; write"
    ):
        commands(python(), name="other")
    with pytest.raises(
        InputError,
        match="commands elsewhere.toml: no such file; a table for each command is needed",
    ):
        commands(python(), commands="elsewhere.toml")


def test_on_the_command_line(commands, mtmetrics) -> None:
    commands(python())
    Path("rows.jsonl").write_text(
        '{"source": "ein Haus", "translation": "a house", "reference": "a home"}\n'
    )
    code, out, err = mtmetrics("score", "--metric", "cmd:it:commands=commands.toml", "rows.jsonl")
    assert (code, err, json.loads(out)["scores"]) == (0, "", [-1.0])
    code, out, _ = mtmetrics(
        "score", "--metric", "cmd:it", "--metric", "chrf", "--format", "jsonl", "rows.jsonl"
    )
    assert (code, '"cmd:it": -1.0, "chrf"' in out) == (0, True)
    code, _, err = mtmetrics("score", "--metric", "cmd", "rows.jsonl")
    assert (code, "metric cmd:NAME: commands.toml has no such table; there are: it" in err) == (
        2,
        True,
    )


def test_ctrl_c_ends_the_program_too(commands) -> None:
    Path("slow.py").write_text(
        "import os, time\nopen('pid.tmp', 'w').write(str(os.getpid()))\nos.rename('pid.tmp', "
        "'pid')\ntime.sleep(60)"
    )
    commands(python("slow.py"))
    Path("rows.tsv").write_text("source\ttranslation\na\tb\n")
    argv = [sys.executable, "-m", "mtmetrics", "score", "--metric", "cmd:it", "rows.tsv"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        while not Path("pid").exists():
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        assert running.wait(20) == 130
    with pytest.raises(ProcessLookupError):
        os.kill(int(Path("pid").read_text()), 0)
