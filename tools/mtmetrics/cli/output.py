"""Output of commands: formats, digits, reports, warnings; checks before the work that it can be
written; and files that appear only when they are whole."""

import argparse
import contextlib
import io
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from mtmetrics.errors import InputError
from mtmetrics.io.atomic import is_special_file

if TYPE_CHECKING:
    from mtmetrics.reports.styles import Report

# An object of JSON.
Document = dict[str, object]
# Attributes of parsed arguments that name what is written.
_OUTPUTS = ("out", "report", "plot", "tuned")
# A placeholder of options that name files or folders, perhaps with ranges of lines.
_FILE_METAVAR = re.compile(r"\b(FILE|DIR)\b")
FORMATS = ("table", "json", "jsonl", "tsv", "csv", "markdown", "parquet")
TABLE_FORMATS = ("table", "json", "markdown", "latex", "csv", "tsv")


def rounded(value: object, *, full: bool) -> object:
    """Returns plain data with its numbers rounded.

    Args:
        value: numbers, texts, and lists and dictionaries of these.
        full: whether numbers keep all digits; else they keep 6 significant ones. What is no number
            becomes None in both cases.
    """
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, float) and not full:
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {key: rounded(inner, full=full) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner, full=full) for inner in value]
    return value


def pick_format(name: str | None, out: str | None = None) -> str:
    """Returns the output format: as named, else by the end of the output file's name, else a table
    on a terminal and JSON where the output is piped.

    Raises:
        InputError: the file's name says nothing, or the format does not suit it.
    """
    if out:
        suffix = Path(out.removesuffix(".gz")).suffix.removeprefix(".")
        by_target = "markdown" if suffix == "md" else suffix
    else:
        by_target = "table" if sys.stdout.isatty() else "json"
    endings = FORMATS[1:]
    if name is None and out and by_target not in endings:
        raise InputError(
            f"--out {out}: ends in none of {', '.join('.' + ending for ending in endings)}; pass "
            "--format"
        )
    form = name or by_target
    if form == "parquet" and (not out or out.endswith(".gz")):
        raise InputError("--format parquet needs --out FILE, which is compressed by itself: no .gz")
    if name == "table" and out:
        raise InputError("--format table is for the screen; --out takes the other formats")
    return form


def machine_output() -> IO[str]:
    """Returns standard output for what programs read: in UTF-8, whatever the shell says. Tables for
    people keep the encoding of the shell, and lose what it lacks."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    return sys.stdout


def print_json(document: object) -> None:
    """Prints plain data as JSON, with all digits."""
    machine_output()
    print(json.dumps(document, ensure_ascii=False, indent=1))


def print_report(report: "Report", args: argparse.Namespace) -> None:
    """Prints a report as ``--format`` says. The numbers of JSON are rounded unless
    ``--full-precision`` wants all digits, or the command has no such option."""
    style = pick_format(args.format)
    if style == "json":
        print_json(rounded(report.document, full=getattr(args, "full_precision", True)))
        return
    if style != "table":
        machine_output()
    print(report.render(style))


def print_warnings(lines: Iterable[str]) -> None:
    """Prints what is unusual to standard error, a line each."""
    for line in lines:
        print(f"mtmetrics: warning: {line}", file=sys.stderr)


def check_target(
    path: str | None,
    option: str,
    *,
    overwrite: bool = True,
    folder: bool = False,
    mend: str = "pass --overwrite or another name",
) -> None:
    """Refuses, before the work, a target that could not be written after it.

    Args:
        path: the file, or `folder`; None is never refused.
        option: names the path in messages.
        overwrite: whether a path that exists may be replaced.
        folder: whether a folder is written.
        mend: how to mend a path that exists.

    Raises:
        InputError: there is no folder to put it in; it exists and may not be replaced; or it is a
            folder instead of a file, or a file instead of a folder.
    """
    if not path or is_special_file(path):
        return
    parent = Path(os.path.realpath(path)).parent if os.path.islink(path) else Path(path).parent
    if not parent.is_dir():
        raise InputError(f"{option} {path}: there is no folder {parent}")
    if not Path(path).exists():
        return
    if not overwrite:
        raise InputError(f"{option} {path}: exists already; {mend}")
    if Path(path).is_dir() != folder:
        wrong = "is a file; a folder is needed" if folder else "is a folder; a file is needed"
        raise InputError(f"{option} {path}: {wrong}")


def refuse_inputs_as_outputs(
    arguments: argparse.Namespace, options: Iterable[argparse.Action]
) -> None:
    """Refuses, before the work, output that would replace an input, also by a link or another path,
    or other output.

    Args:
        arguments: values of the options.
        options: those of the command; their placeholders say which of them name files.
    """
    inputs, outputs = _named_files(arguments, options)
    outputs_before: dict[str, str] = {}
    for label, path in outputs.items():
        # Files that a folder holds already stay, unless the whole folder is replaced.
        is_filled = os.path.isdir(path) and not getattr(arguments, "overwrite", False)
        if not is_special_file(path) and not is_filled:
            _refuse_replacement(label, path, inputs)
            for label_before, path_before in outputs_before.items():
                if os.path.realpath(path_before) == os.path.realpath(path):
                    raise InputError(f"{label}: is {label_before}, too; pass another name")
        outputs_before[label] = path


def _named_files(
    arguments: argparse.Namespace, options: Iterable[argparse.Action]
) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Returns the files that a call names.

    Returns:
        Option -> the inputs that it names, and option with its value -> the output.
    """
    inputs: dict[str, list[str]] = {}
    outputs: dict[str, str] = {}
    for option in options:
        value = getattr(arguments, option.dest, None)
        values = [str(item) for item in (value if isinstance(value, list) else [value])]
        if value is None or not values:
            continue
        name = option.option_strings[-1] if option.option_strings else str(option.metavar)
        if option.dest in _OUTPUTS:
            outputs |= {f"{name} {path}": path for path in values}
        elif option.dest == "metric":
            prefix = "scores:"
            inputs[name] = [text.removeprefix(prefix) for text in values if text.startswith(prefix)]
        elif _FILE_METAVAR.search(str(option.metavar)):
            inputs[name] = values
    return inputs, outputs


def _refuse_replacement(label: str, output: str, inputs: Mapping[str, Sequence[str]]) -> None:
    """Refuses an output that is one of the inputs; of one with ranges of lines, FILE:1-9, only the
    file counts."""
    for option, values in inputs.items():
        for value in values:
            file = value.partition(":")[0]
            if _is_same_file(output, value) or _is_same_file(output, file):
                raise InputError(
                    f"{label}: is the input {option}, which it would replace; pass another name"
                )


def _is_same_file(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def check_new(paths: Iterable[Path], option: str, *, overwrite: bool) -> None:
    """Refuses, before the work, files that exist already, in a place that an `option` names."""
    existing = next((path for path in paths if path.exists()), None)
    if existing is not None and not overwrite:
        raise InputError(f"{existing} exists already; pass --overwrite or another {option}")


@contextlib.contextmanager
def opened(out: str | None, *, binary: bool = False, table: bool = False) -> Iterator[IO]:
    """Opens a file, which appears only when everything went well, or standard output.

    Args:
        out: the file; None for standard output. Text for a name that ends in .gz is compressed.
        binary: whether the file takes bytes.
        table: whether standard output shows a table to people.
    """
    from mtmetrics.io.atomic import atomic_bytes, atomic_text

    if out is None:
        yield sys.stdout if table else machine_output()
    elif binary:
        with atomic_bytes(out) as stream:
            yield stream
    else:
        with atomic_text(out) as stream:
            yield stream


def write_report(path: str | None, report: Document) -> None:
    """Writes a report as JSON, if a file is named for it."""
    from mtmetrics.io.atomic import write_json

    if path:
        write_json(path, report)
