"""The command ``mtmetrics``: runs the sub-command, and turns expected errors into one line and an exit code."""

import argparse
import ctypes
import importlib
import os
import sys
import warnings
from collections.abc import Sequence

from mtmetrics import __version__
from mtmetrics.cli import options
from mtmetrics.cli.help import Parser, complete, leaves
from mtmetrics.cli.words import in_shell_words
from mtmetrics.errors import InputError, MTMetricsError

# A new command is a name here and a module of that name; its examples stand in `mtmetrics.cli.help`.
_COMMANDS = (
    "score compare explain evaluate plot probe list data filter rerank mine remap idf uscore train artifacts space "
    "install demo doctor"
)
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_MIB = 2**20


def build_parser() -> argparse.ArgumentParser:
    """The parser with all sub-commands; fast, since none imports a heavy package to describe itself."""
    text = "Machine-translation evaluation metrics: XMoverScore and its relatives."
    parser = Parser(prog="mtmetrics", description=text)
    parser.add_argument("--version", action="version", version=f"mtmetrics {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in _COMMANDS.split():
        importlib.import_module(f"mtmetrics.cli.{name}").add_parser(subparsers)
    for command in leaves(parser):
        text = "no progress and no notes; warnings and errors stay"
        command.add_argument("-q", "--quiet", action="store_true", help=text)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line on `argv`, or on the arguments of the process.

    Returns:
        0, 1 if something could not be done, 2 for bad usage, 130 after Ctrl-C.
    """
    parser = build_parser()
    if "_ARGCOMPLETE" in os.environ:
        complete(parser)
    arguments = parser.parse_args(argv)
    options.quiet = getattr(arguments, "quiet", False)
    (keep_large_blocks if getattr(arguments, "large_blocks", False) else return_large_blocks)()
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = _show_warning
        return _run(arguments)


def keep_large_blocks() -> None:
    """Has the C library (where it is glibc) keep blocks of up to 32 MiB when they are freed: trainings take and free
    the same sizes in every step, and asking the system for them anew costs a fourth of the time."""
    _set_blocks(_M_MMAP_THRESHOLD, 32 * _MIB)
    _set_blocks(_M_TRIM_THRESHOLD, 2**31 - 1)


def return_large_blocks() -> None:
    """Has the C library (where it is glibc) give every block of 1 MiB or more back to the system when it is freed.

    It raises that bound by itself up to 32 MiB; arrays of that size then leave gaps in its heap, and the memory of a
    run over many chunks keeps growing although nothing is kept.
    """
    _set_blocks(_M_MMAP_THRESHOLD, _MIB)


def _set_blocks(parameter: int, size: int) -> None:
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        return
    mallopt(parameter, size)


def _run(arguments: argparse.Namespace) -> int:
    try:
        code = arguments.run(arguments)
        sys.stdout.flush()
        return code
    except InputError as error:
        return _fail(in_shell_words(str(error)), 2)
    except MTMetricsError as error:
        return _fail(in_shell_words(str(error)), 1)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except BrokenPipeError:
        # The reader of our output went away (`| head`); keep the interpreter from complaining while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _fail(message: str, code: int) -> int:
    print("mtmetrics: " + " ".join(message.split()), file=sys.stderr)
    return code


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    if issubclass(category, UserWarning):
        from tqdm import tqdm

        tqdm.write(f"mtmetrics: warning: {message}", file=sys.stderr)  # above a bar, not in its line


if __name__ == "__main__":
    sys.exit(main())
