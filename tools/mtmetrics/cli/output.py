"""Output of the commands: rounds and prints results, checks before a long computation that the
output can be written, and opens files that appear only when they are complete."""

import argparse
import contextlib
import io
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

from mtmetrics.errors import InputError
from mtmetrics.io.atomic import is_special_file

if TYPE_CHECKING:
    from mtmetrics.reports.styles import Report

# A JSON object.
Document = dict[str, object]
# Attributes of parsed arguments that name output files or folders; --tune DIR is `tuned_preset`.
_OUTPUT_ATTRIBUTES = ("out", "report", "plot", "tuned_preset")
# Matches the metavar of options that name files or folders, such as FILE or FILE:1-9.
_FILE_METAVAR = re.compile(r"\b(FILE|DIR)\b")
# Formats of rows of scores. All but the first are also endings of files.
FORMATS = ("table", "json", "jsonl", "tsv", "csv", "markdown", "parquet")
# Formats of a report that is a table.
TABLE_FORMATS = ("table", "json", "markdown", "latex", "csv", "tsv")


def rounded(value: object, *, full_precision: bool) -> object:
    """Returns plain data for JSON: numbers are rounded, and NaN becomes None.

    Args:
        value: numbers, texts, and lists and dictionaries of these.
        full_precision: whether numbers keep all digits; else they keep 6 significant ones.
    """
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, float) and not full_precision:
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {key: rounded(inner, full_precision=full_precision) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner, full_precision=full_precision) for inner in value]
    return value


def pick_format(requested_format: str | None, out: str | None = None) -> str:
    """Returns the output format: the requested one, else by the ending of the output file, else a
    table on a terminal and JSON in a pipe.

    Raises:
        InputError: the file's ending names no format, or the format does not suit the output.
    """
    if out:
        suffix = Path(out.removesuffix(".gz")).suffix.removeprefix(".")
        default_format = "markdown" if suffix == "md" else suffix
    else:
        default_format = "table" if sys.stdout.isatty() else "json"
    endings = FORMATS[1:]
    if requested_format is None and out and default_format not in endings:
        raise InputError(
            f"--out {out}: ends in none of {', '.join('.' + ending for ending in endings)}; pass "
            "--format"
        )
    output_format = requested_format or default_format
    if output_format == "parquet" and not out:
        raise InputError("--format parquet needs --out FILE")
    if output_format == "parquet" and out.endswith(".gz"):
        raise InputError(f"--out {out}: Parquet is compressed already; pass a name with no .gz")
    if requested_format == "table" and out:
        raise InputError("--format table is for the screen; --out takes the other formats")
    return output_format


def utf8_output() -> IO[str]:
    """Switches standard output to UTF-8, for output that programs read, and returns it.

    Tables for people keep the encoding of the shell, and lose characters that it lacks."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    return sys.stdout


def print_json(document: object) -> None:
    """Prints plain data as JSON, in UTF-8."""
    utf8_output()
    print(json.dumps(document, ensure_ascii=False, indent=1))


def print_report(report: "Report", args: argparse.Namespace) -> None:
    """Prints a report in the format of ``--format``.

    The numbers of JSON are rounded, unless the user passes ``--full-precision`` or the command does
    not have this option."""
    output_format = pick_format(args.format)
    if output_format == "json":
        print_json(rounded(report.document, full_precision=getattr(args, "full_precision", True)))
        return
    if output_format != "table":
        utf8_output()
    print(report.render(output_format))


def print_warnings(warnings: Iterable[str]) -> None:
    """Prints each warning as one line to standard error."""
    for warning in warnings:
        print(f"mtmetrics: warning: {warning}", file=sys.stderr)


def check_target(
    path: str | None,
    option: str,
    *,
    overwrite: bool = True,
    folder: bool = False,
    advice: str = "pass --overwrite or another name",
) -> None:
    """Checks, before a long computation, that its output can be written.

    Args:
        path: the output file or folder; None is accepted.
        option: names the path in messages.
        overwrite: whether an existing path may be replaced.
        folder: whether the output is a folder.
        advice: tells the user what to do if the path exists.

    Raises:
        InputError: the parent folder does not exist; the path exists and may not be replaced; or it
            is a folder instead of a file, or a file instead of a folder.
    """
    if not path or is_special_file(path):
        return
    parent = Path(os.path.realpath(path)).parent if os.path.islink(path) else Path(path).parent
    if not parent.is_dir():
        raise InputError(f"{option} {path}: there is no folder {parent}")
    if not Path(path).exists():
        return
    if not overwrite:
        raise InputError(f"{option} {path}: exists already; {advice}")
    if Path(path).is_dir() != folder:
        problem = "is a file; a folder is needed" if folder else "is a folder; a file is needed"
        raise InputError(f"{option} {path}: {problem}")


def refuse_inputs_as_outputs(
    arguments: argparse.Namespace, options: Iterable[argparse.Action]
) -> None:
    """Checks, before a command runs, that each output differs from all inputs and other outputs.

    Two paths are also equal if one is a link to the other. Existing folders that keep their files,
    and special files such as /dev/null, may be named several times.

    Args:
        arguments: values of the options.
        options: the options of the command; their metavars say which of them name files.

    Raises:
        InputError: an output would replace an input or another output.
    """
    inputs, outputs = _named_files(arguments, options)
    for index, (output, path) in enumerate(outputs):
        # An existing folder keeps its files, unless the whole folder is replaced.
        keeps_files = os.path.isdir(path) and not getattr(arguments, "overwrite", False)
        if is_special_file(path) or keeps_files:
            continue
        for option, input_path in inputs:
            if _is_same_file(path, input_path):
                raise InputError(
                    f"{output}: is the input {option}, which it would replace; pass another name"
                )
        for output_before, path_before in outputs[:index]:
            if os.path.realpath(path_before) == os.path.realpath(path):
                raise InputError(f"{output}: is {output_before}, too; pass another name")


def _named_files(
    arguments: argparse.Namespace, options: Iterable[argparse.Action]
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Returns the files and folders that the arguments name.

    Returns:
        The inputs: option and path. And the outputs: option with its value, such as
        "--out scores.tsv", and path.
    """
    inputs, outputs = [], []
    for option in options:
        value = getattr(arguments, option.dest, None)
        name = option.option_strings[-1] if option.option_strings else str(option.metavar)
        for item in value if isinstance(value, list) else [value]:
            path = str(item)
            if item is None:
                continue
            if option.dest in _OUTPUT_ATTRIBUTES:
                outputs.append((f"{name} {path}", path))
            elif _FILE_METAVAR.search(str(option.metavar)) or path.startswith("scores:"):
                # The metric scores:FILE reads a file. FILE:1-9 is FILE with a range of lines.
                path = path.removeprefix("scores:")
                inputs += [(name, path), (name, path.partition(":")[0])]
    return inputs, outputs


def _is_same_file(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def check_new(paths: Iterable[Path], option: str, *, overwrite: bool) -> None:
    """Raises InputError if one of the files exists, unless `overwrite` is set.

    `option` names the file or its folder."""
    existing = next((path for path in paths if path.exists()), None)
    if existing is not None and not overwrite:
        raise InputError(f"{existing} exists already; pass --overwrite or another {option}")


@contextlib.contextmanager
def open_output(out: str | None, *, binary: bool = False, table: bool = False) -> Iterator[IO]:
    """Opens standard output, or a file that appears only if the block succeeds.

    Args:
        out: the file; None for standard output. Text is compressed if the name ends in .gz.
        binary: whether the file takes bytes. Standard output always takes text.
        table: whether the output is a table for people; else standard output is in UTF-8.
    """
    from mtmetrics.io.atomic import atomic_bytes, atomic_text

    if out is None:
        yield sys.stdout if table else utf8_output()
    elif binary:
        with atomic_bytes(out) as stream:
            yield stream
    else:
        with atomic_text(out) as stream:
            yield stream


def write_report(path: str | None, report: Document) -> None:
    """Writes a report as JSON, if a path is given."""
    from mtmetrics.io.atomic import write_json

    if path:
        write_json(path, report)
