"""Runs the ``mtmetrics`` command lines that draw a figure of a paper, for ``mtmetrics evaluate
--recipe``."""

import argparse
import contextlib
import io
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from mtmetrics.cli import messages
from mtmetrics.cli.main import build_parser, main
from mtmetrics.cli.options import flag
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.reports.recipes import Recipe

_WARNING = "mtmetrics: warning: "
# Options of ``mtmetrics evaluate`` that are passed on to the command lines.
_FORWARDED_OPTIONS = ("device", "dtype", "batch_tokens")


def run_calls(args: argparse.Namespace, recipe: Recipe) -> list[str]:
    """Runs the command lines of a figure. If one fails, its error is printed, and the others still
    run.

    Returns:
        Paragraphs of a report: each command line with its output, then the pictures.

    Raises:
        InputError: the recipe has no encoder for the preset of --preset, or a public set is missing.
        MTMetricsError: all command lines failed.
    """
    folder = Path(args.report)
    folder.mkdir(exist_ok=True)
    paragraphs, image_links, failures = [], [], 0
    for argv in _command_lines(args, recipe):
        code, output = _run(argv)
        paragraphs += [f"```bash\nmtmetrics {shlex.join(argv)}\n```", output]
        if code == 0:
            image_links += _image_links(folder, argv)
        else:
            failures += 1
    print("\n\n".join(filter(None, paragraphs)))
    if failures == len(recipe.runs):
        raise MTMetricsError(
            f"--recipe {recipe.name}: nothing could be run; the lines above say why"
        )
    return [*paragraphs, *image_links]


def _command_lines(args: argparse.Namespace, recipe: Recipe) -> list[list[str]]:
    """Returns the arguments of each command line, with the data and options of the evaluation."""
    preset = args.preset or "paper"
    # Folders of public sets, in the order of `recipe.pull`; or files of the user.
    paths = args.data or []
    if any("{sets[" in line for line in recipe.runs) and len(paths) != len(recipe.pull):
        raise InputError(
            f"--recipe {recipe.name}: needs all of {', '.join(recipe.pull)}; pass --data DIR with "
            "a folder of each, or none, so that they are fetched"
        )
    data = [file for path in paths for file in _files_of_pairs(path, recipe.pairs)]
    # "data" stands for all files of the language pairs, "sets[0]" for the first set of
    # `recipe.pull`.
    placeholders = {
        "data": shlex.join(data),
        "sets": [shlex.quote(path) for path in paths],
        "texts": shlex.join(args.text or []),
        "text": [shlex.quote(path) for path in args.text or []],
        "preset": shlex.quote(preset),
        "model": recipe.model(preset),
        "out": shlex.quote(str(Path(args.report))),
    }
    forwarded = _forwarded_options(args)
    command_lines = []
    for line in recipe.runs:
        argv = shlex.split(line.format(**placeholders))
        command_lines.append(argv + _accepted_options(argv, forwarded))
    return command_lines


def _forwarded_options(args: argparse.Namespace) -> list[str]:
    """Returns the options of the evaluation that say how models are run, such as --device=cpu."""
    values = {name: getattr(args, name) for name in _FORWARDED_OPTIONS}
    forwarded = [f"{flag(name)}={value}" for name, value in values.items() if value]
    if args.local_files_only:
        forwarded.append("--local-files-only")
    if messages.quiet:
        forwarded.append("--quiet")
    return forwarded


def _accepted_options(argv: Sequence[str], forwarded: Sequence[str]) -> list[str]:
    """Returns the forwarded options that a command has; ``train``, for example, has no --dtype."""
    _, unknown = build_parser(argv[0]).parse_known_args([*argv, *forwarded])
    return [option for option in forwarded if option not in unknown]


def _run(argv: Sequence[str]) -> tuple[int, str]:
    """Runs a command line in this process, and then prints its standard error.

    Returns:
        The exit code; and for the report the output, or else the error, and the warnings.
    """
    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        code = main(argv)
    sys.stderr.write(stderr.getvalue())
    lines = stderr.getvalue().strip().splitlines()
    output = stdout.getvalue().strip()
    if not output and code != 0:
        output = lines[-1]
    warnings = [line for line in lines if line.startswith(_WARNING)]
    return code, "\n\n".join(filter(None, [output, *warnings]))


def _image_links(folder: Path, argv: Sequence[str]) -> list[str]:
    """Returns Markdown links to the pictures that a command line drew.

    These are the arguments that are a .svg file in the folder of the report, and the .png files of
    arguments that are a folder in it."""
    links = []
    for argument in argv:
        target = Path(argument)
        if folder in target.parents:
            files = [target] if target.suffix == ".svg" else sorted(target.glob("*.png"))
            links += [f"![{file.stem}]({file.relative_to(folder)})" for file in files]
    return links


def _files_of_pairs(path: str, lang_pairs: Sequence[str]) -> list[str]:
    """Returns the files of a folder whose names contain one of the language pairs; the path itself
    if there are none."""
    if not lang_pairs or not Path(path).is_dir():
        return [path]
    files = []
    for file in sorted(Path(path).iterdir()):
        if any(lang_pair in file.name for lang_pair in lang_pairs):
            files.append(str(file))
    return files or [path]
