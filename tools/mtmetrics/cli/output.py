"""Output of commands: formats, digits, tables, warnings, and files that appear only when
they are whole."""

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
from typing import IO, TYPE_CHECKING, Any

from mtmetrics.errors import InputError
from mtmetrics.io.atomic import is_stream

_OUTPUTS = ("out", "report", "plot", "tuned")
# A placeholder of options that name files or folders, perhaps with ranges of lines.
_FILE = re.compile(r"\b(FILE|DIR)\b")

if TYPE_CHECKING:
    from mtmetrics.reports.styles import Report

FORMATS = ("table", "json", "jsonl", "tsv", "csv", "markdown", "parquet")
TABLE_FORMATS = ("table", "json", "markdown", "latex", "csv", "tsv")


def rounded(value: Any, *, full: bool) -> Any:
    """The numbers in plain data with 6 significant digits, or all digits; None for what is no
    number."""
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
    """The output format: as named, else by the end of the output file's name, else a table on a
    terminal and JSON where the output is piped.

    Raises:
        InputError: the file's name says nothing, or Parquet without a file.
    """
    usual = "table" if sys.stdout.isatty() else "json"
    suffix = Path(out.removesuffix(".gz")).suffix.removeprefix(".") if out else usual
    suffix = {"md": "markdown"}.get(suffix, suffix)
    if name is None and out and suffix not in (endings := FORMATS[1:]):
        raise InputError(
            f"--out {out}: ends in none of {', '.join('.' + known for known in endings)}; pass "
            "--format"
        )
    if (name or suffix) == "parquet" and (not out or out.endswith(".gz")):
        raise InputError("--format parquet needs --out FILE, which is compressed by itself: no .gz")
    if name == "table" and out:
        raise InputError("--format table is for the screen; --out takes the other formats")
    return name or suffix


def machine_output() -> IO[str]:
    """Standard output for what programs read: in UTF-8, whatever the shell says. Tables for people
    keep the encoding of the shell, and lose what it lacks."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    return sys.stdout


def print_json(document: Any) -> None:
    machine_output()
    print(json.dumps(document, ensure_ascii=False, indent=1))


def print_report(report: "Report", args: argparse.Namespace) -> None:
    """Prints what was found as ``--format`` says; the numbers of JSON have 6 digits, unless all are
    wanted."""
    style = pick_format(args.format)
    if style == "json":
        print_json(rounded(report.document, full=vars(args).get("full_precision", True)))
    else:
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
    """Refuses before the work a file, or `folder`, named with an `option`, that could not be
    written after it: there is no folder to put it in; there is one of this name, which is not to be
    replaced; or that is a folder, or none."""
    if not path or is_stream(path):
        return
    parent = Path(os.path.realpath(path)).parent if os.path.islink(path) else Path(path).parent
    if not parent.is_dir():
        raise InputError(f"{option} {path}: there is no folder {parent}")
    if not overwrite and Path(path).exists():
        raise InputError(f"{option} {path}: exists already; {mend}")
    if Path(path).exists() and Path(path).is_dir() != folder:
        raise InputError(
            f"{option} {path}: is {'a file; a folder' if folder else 'a folder; a file'} is needed"
        )


def refuse_inputs_as_outputs(
    arguments: argparse.Namespace, options: Iterable[argparse.Action]
) -> None:
    """Refuses, before the work, output that would replace an input, also by a link or another path,
    or other output.

    Args:
        arguments: values of the options.
        options: those of the command; their placeholders say which of them name files.
    """
    outputs: dict[str, str] = {}
    inputs: dict[str, list[str]] = {}
    for option in options:
        value = getattr(arguments, option.dest, None)
        values = [
            str(one) for one in (value if isinstance(value, list) else [value]) if one is not None
        ]
        name = option.option_strings[-1] if option.option_strings else str(option.metavar)
        if option.dest in _OUTPUTS:
            outputs |= {f"{name} {path}": path for path in values}
        elif option.dest == "metric":
            inputs[name] = [
                one.removeprefix("scores:") for one in values if one.startswith("scores:")
            ]
        elif _FILE.search(str(option.metavar)):
            inputs[name] = values
    for number, (output, path) in enumerate(outputs.items()):
        # What a folder holds already stays, unless the whole folder is replaced.
        if is_stream(path) or (os.path.isdir(path) and not getattr(arguments, "overwrite", False)):
            continue
        for name, values in inputs.items():
            if any(
                _is_same_file(path, part) for one in values for part in (one, one.partition(":")[0])
            ):
                raise InputError(
                    f"{output}: is the input {name}, which it would replace; pass another name"
                )
        for other, before in [*outputs.items()][:number]:
            if os.path.realpath(before) == os.path.realpath(path):
                raise InputError(f"{output}: is {other}, too; pass another name")


def _is_same_file(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def check_new(paths: Iterable[Path], option: str, *, overwrite: bool) -> None:
    """Refuses before the work files, in a place that is named with an `option`, one of which is
    there already."""
    existing = next((path for path in paths if path.exists()), None)
    if existing is not None and not overwrite:
        raise InputError(f"{existing} exists already; pass --overwrite or another {option}")


@contextlib.contextmanager
def opened(out: str | None, *, binary: bool = False, table: bool = False) -> Iterator[IO[Any]]:
    """A stream to a file, which appears only when everything went well, or standard output, perhaps
    for a table that people read; text for a name that ends in .gz is compressed."""
    from mtmetrics.io.atomic import atomic_bytes, atomic_text

    if out is None:
        yield sys.stdout if table else machine_output()
    elif binary:
        with atomic_bytes(out) as stream:
            yield stream
    else:
        with atomic_text(out) as stream:
            yield stream


def write_report(path: str | None, report: dict[str, Any]) -> None:
    """Writes a report as JSON, if a file is named for it."""
    from mtmetrics.io.atomic import write_json

    if path:
        write_json(path, report)
