"""Figures of papers that calls of this command draw, for ``mtmetrics evaluate --recipe``."""

import argparse
import contextlib
import io
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mtmetrics.cli import messages
from mtmetrics.cli.options import flag
from mtmetrics.errors import InputError, MTMetricsError

if TYPE_CHECKING:
    from mtmetrics.reports.recipes import Recipe

_WARNING = "mtmetrics: warning: "
# Options of the evaluation that its calls take over.
_FORWARDED_OPTIONS = ("device", "dtype", "batch_tokens")


class _Call(NamedTuple):
    """A call of the command that has ended.

    Attributes:
        code: its exit code.
        output: what it printed to standard output.
        messages: what it printed to standard error.
    """

    code: int
    output: str
    messages: str


def run_calls(args: argparse.Namespace, recipe: "Recipe") -> list[str]:
    """Runs the calls of a figure; one that fails says why, and the others go on.

    Returns:
        Paragraphs of a report: each command line with its output, then the pictures.

    Raises:
        InputError: the figure has no such preset, or a public set is missing.
        MTMetricsError: no call could be run.
    """
    folder = Path(args.report)
    folder.mkdir(exist_ok=True)
    paragraphs, pictures, failures = [], [], 0
    for words in _command_lines(args, recipe):
        call = _run(words)
        paragraphs += [f"```bash\nmtmetrics {shlex.join(words)}\n```", _report(call)]
        if call.code == 0:
            pictures += _pictures_in(folder, words)
        else:
            failures += 1
    print("\n\n".join(filter(None, paragraphs)))
    if failures == len(recipe.runs):
        raise MTMetricsError(
            f"--recipe {recipe.name}: nothing could be run; the lines above say why"
        )
    return [*paragraphs, *pictures]


def _command_lines(args: argparse.Namespace, recipe: "Recipe") -> list[list[str]]:
    """Returns the words of each call, with the data and the options of the evaluation."""
    preset = args.preset or "paper"
    folders = args.data or []
    if any("{sets[" in line for line in recipe.runs) and len(folders) != len(recipe.pull):
        raise InputError(
            f"--recipe {recipe.name}: needs all of {', '.join(recipe.pull)}; pass --data DIR with "
            "a folder of each, or none, so that they are fetched"
        )
    data = [file for path in args.data or [] for file in _files_of_pairs(path, recipe.pairs)]
    placeholders = {
        "data": shlex.join(data),
        "sets": [shlex.quote(path) for path in args.data or []],
        "texts": shlex.join(args.text or []),
        "text": [shlex.quote(path) for path in args.text or []],
        "preset": shlex.quote(preset),
        "model": recipe.model(preset),
        "out": shlex.quote(str(Path(args.report))),
    }
    forwarded = _forwarded_options(args)
    command_lines = []
    for line in recipe.runs:
        words = shlex.split(line.format(**placeholders))
        command_lines.append(words + _accepted_options(words, forwarded))
    return command_lines


def _forwarded_options(args: argparse.Namespace) -> list[str]:
    """Returns the options of the evaluation that say how models are run."""
    values = {name: getattr(args, name) for name in _FORWARDED_OPTIONS}
    words = [f"{flag(name)}={value}" for name, value in values.items() if value]
    if args.local_files_only:
        words.append("--local-files-only")
    if messages.quiet:
        words.append("--quiet")
    return words


def _accepted_options(words: Sequence[str], forwarded: Sequence[str]) -> list[str]:
    """Returns those of the forwarded options that a command has: a training, for example, has no
    number format."""
    from mtmetrics.cli.main import build_parser

    _, unknown_words = build_parser(words[0]).parse_known_args([*words, *forwarded])
    return [word for word in forwarded if word not in unknown_words]


def _run(words: Sequence[str]) -> _Call:
    """Runs a call in this process, and shows its messages when it has ended."""
    from mtmetrics.cli.main import main

    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        code = main(words)
    sys.stderr.write(stderr.getvalue())
    return _Call(code, stdout.getvalue().strip(), stderr.getvalue().strip())


def _report(call: _Call) -> str:
    """Returns the output of a call, or why it failed, and its warnings."""
    lines = call.messages.splitlines()
    output = call.output
    if not output and call.code != 0:
        output = lines[-1]
    warnings = [line for line in lines if line.startswith(_WARNING)]
    return "\n\n".join(filter(None, [output, *warnings]))


def _pictures_in(folder: Path, words: Sequence[str]) -> list[str]:
    """Returns paragraphs that show the pictures that a call drew: files and folders inside the
    folder of the report that its words name."""
    pictures = []
    for word in words:
        target = Path(word)
        if folder in target.parents:
            files = [target] if target.suffix == ".svg" else sorted(target.glob("*.png"))
            pictures += [f"![{file.stem}]({file.relative_to(folder)})" for file in files]
    return pictures


def _files_of_pairs(path: str, lang_pairs: Sequence[str]) -> list[str]:
    """Returns those files of a folder that have one of the language pairs in their names; the path
    itself where none has."""
    if not lang_pairs or not Path(path).is_dir():
        return [path]
    files = sorted(map(str, Path(path).iterdir()))
    return [file for file in files if any(pair in Path(file).name for pair in lang_pairs)] or [path]
