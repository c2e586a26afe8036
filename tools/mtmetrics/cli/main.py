"""The command ``mtmetrics``: runs a sub-command, and reports expected errors as one line and an exit
code."""

import argparse
import contextlib
import functools
import importlib
import os
import sys
import warnings
from collections.abc import Iterator, Sequence

from mtmetrics._version import __version__
from mtmetrics.cli import messages, options
from mtmetrics.cli.output import refuse_inputs_as_outputs
from mtmetrics.cli.parser import Parser, early_options, named_metrics
from mtmetrics.cli.process import (
    EndedError,
    drop_if_broken,
    ended_by_signals,
    keep_large_blocks,
    return_large_blocks,
    tolerant_output,
)
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.scorers.metric import METRICS
from mtmetrics.scorers.registry import installed_plugins, known_metric

# To add a command, add a line here, a module of the same name, and three examples in
# `mtmetrics.cli.parser`. The module has a function `configure(parser)`, which adds the options and
# sets the default `run`: a function that gets the parsed arguments and returns an exit code or None.
_COMMANDS = {
    "score": "score translations",
    "compare": "compare systems on one test set",
    "explain": "show which words were matched with which, and which are at fault",
    "evaluate": "correlate metrics with human judgements",
    "probe": "test a metric on parallel text, without human judgements",
    "list": "list metrics, presets, languages, and what works offline",
    "data": "list and fetch judged data, or score a test set of mt-metrics-eval",
    "filter": "keep the good sentence pairs of parallel text",
    "rerank": "take the best of several translations of each source",
    "mine": "find parallel sentences in two monolingual files",
    "train": "train models, and make maps, tables of frequencies, presets of UScore and judgements",
    "artifacts": "list, verify, pull, push, import or convert models and maps",
    "space": "publish metrics as Spaces",
    "install": "register the metrics with evaluate",
    "demo": "compare systems in the browser, or try a metric there",
    "serve": "score what programs send by HTTP",
    "doctor": "check the installation",
}
# Old name -> new name. An old name still works, but help does not list it, and it prints a note.
RENAMED = {
    "remap": "train maps",
    "idf": "train idf",
    "uscore": "train uscore",
    "label": "train labels",
    "plot": "evaluate --plot",
    "tune": "evaluate --tune",
}
# Old name of a command -> those of its options that have another name now.
_RENAMED_OPTIONS = {
    "plot": {"--out": "--plot", "--parts": "--weigh"},
    "tune": {"--out": "--tune"},
}
# Python keyword of an argument with texts -> its option in messages.
_TEXT_OPTIONS = {"sources": "-s SOURCES", "references": "-r REFERENCES"}


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """Returns the parser with all commands.

    Args:
        only: the one command that gets its options; "" for none, None for all. The modules of
            the other commands are not imported.
    """
    parser = Parser(
        prog="mtmetrics",
        description="Machine-translation evaluation metrics: XMoverScore and its relatives.",
    )
    parser.add_argument("--version", action="version", version=f"mtmetrics {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, text in _COMMANDS.items():
        command = subparsers.add_parser(name, help=text)
        if only in (None, name):
            importlib.import_module(f"mtmetrics.cli.{name}").configure(command)
    for runnable in runnable_commands(parser):
        runnable.set_defaults(command_parser=runnable)
        runnable.add_argument(
            "-q",
            "--quiet",
            action="store_true",
            help="hide progress and notes, but not warnings and errors",
        )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line on `argv`, or on the arguments of the process.

    Returns:
        0 on success, 1 on failure, 2 for bad usage, 130 after Ctrl-C, 128 + N after signal N
        (SIGTERM 143, SIGHUP 129).

    Raises:
        SystemExit: after --help and --version with 0, and for arguments that argparse refuses with
            2.
    """
    if sys.stderr is None:  # closed by `2>&-`; print(file=None) would write to standard output
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        return _report_failure(
            "standard output is closed; send it to /dev/null if you do not need it", 1
        )
    try:
        with tolerant_output(), ended_by_signals():
            return _run(sys.argv[1:] if argv is None else argv)
    except EndedError as ended:
        return _report_failure("terminated", 128 + ended.number)
    except KeyboardInterrupt:
        return _report_failure("interrupted", 130)
    except BrokenPipeError:  # the reader of our output went away (`| head`)
        return 1
    except OSError as error:
        file = "" if error.filename is None else f"{error.filename}: "
        return _report_failure(f"{file}{error.strerror or error or type(error).__name__}", 1)


def _run(argv: Sequence[str]) -> int:
    """Runs a command, and turns its expected errors into one line and an exit code."""
    if "_ARGCOMPLETE" in os.environ:
        complete(build_parser())
    argv = _with_new_names(argv)
    try:
        arguments = _parse(argv)
    except MTMetricsError as error:
        # There is no parser yet whose options could replace keywords.
        return _report_failure(str(error), _exit_code(error))
    messages.quiet = arguments.quiet
    # The parsers of trainings set `large_blocks`: these keep freed blocks of memory to reuse them.
    # Other commands return them to the system.
    if getattr(arguments, "large_blocks", False):
        keep_large_blocks()
    else:
        return_large_blocks()
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = functools.partial(_show_warning, set())
        try:
            refuse_inputs_as_outputs(arguments, arguments.command_parser._actions)
            return arguments.run(arguments) or 0
        except MTMetricsError as error:
            # The message names Python keywords; `worded` replaces them by options of the command.
            message = error.worded(functools.partial(_flag_of, arguments.command_parser))
            return _report_failure(message, _exit_code(error))


def _with_new_names(argv: Sequence[str]) -> Sequence[str]:
    """Replaces an old name of a command, and the options that changed with it. Prints a note."""
    if not argv or argv[0] not in RENAMED:
        return argv
    old_name, *arguments = argv
    new_name = RENAMED[old_name]
    note = f"'mtmetrics {old_name}' is now 'mtmetrics {new_name}'"
    print(f"mtmetrics: {note}; the old name goes in 2.1", file=sys.stderr)
    # Options in the new name are part of the note alone: the user's --out becomes one of them.
    new_arguments = [word for word in new_name.split() if not word.startswith("--")]
    if old_name == "plot" and arguments and not arguments[0].startswith("-"):
        picture, *arguments = arguments
        new_arguments.append(f"--draw={picture}")
    renamed = _RENAMED_OPTIONS.get(old_name, {})
    for argument in arguments:
        option, equals, value = argument.partition("=")
        new_arguments.append(renamed.get(option, option) + equals + value)
    return new_arguments


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    """Loads the plug-ins that the arguments name, and parses the arguments.

    Raises:
        MTMetricsError: a plug-in cannot be loaded.
        InputError: a plug-in has an option that the command has already.
    """
    _load_plugins(argv)
    try:
        parser = build_parser(argv[0] if argv else "")
    except argparse.ArgumentError as error:
        raise InputError(
            f"{error}: an option of a plug-in is one of the command, too; rename the field of its "
            "Settings"
        ) from None
    return parser.parse_args(argv)


def _exit_code(error: MTMetricsError) -> int:
    return 2 if isinstance(error, InputError) else 1


def _flag_of(command: argparse.ArgumentParser, keyword: str, value: str) -> str | None:
    """Returns the option of a command for a Python keyword, with `value` if it is not empty; None if
    the command has no such option. In every command -s SOURCES stands for ``sources``, and
    -r REFERENCES for ``references``, without the value."""
    if keyword in _TEXT_OPTIONS:
        return _TEXT_OPTIONS[keyword]
    option = options.flag(keyword)
    if option not in command._option_string_actions:
        return None
    return f"{option} {value}".rstrip()


def _load_plugins(argv: Sequence[str]) -> None:
    """Registers the plug-ins whose options the parser needs: the files of --plugin, and, if --metric
    names a metric that is not built in, all installed ones.

    Child processes find the files through MTMETRICS_PLUGINS."""
    for path in early_options(argv).plugin:
        if not path:  # --plugin without a value, which the parser reports
            continue
        from mtmetrics.scorers.plugins import load_plugin

        load_plugin(path)
        paths = [os.environ.get("MTMETRICS_PLUGINS"), os.path.abspath(path)]
        os.environ["MTMETRICS_PLUGINS"] = os.pathsep.join(filter(None, paths))
    for name in named_metrics(argv):
        # Loads the installed plug-ins if the name is none of ours. An unknown name is reported later.
        known_metric(name)


def _report_failure(message: str, code: int) -> int:
    """Prints a message as one line to standard error, and returns the exit code."""
    try:
        print("mtmetrics: " + " ".join(message.split()), file=sys.stderr, flush=True)
    except OSError:  # `2>&1 | head`
        drop_if_broken(sys.stderr)
    return code


def _show_warning(
    texts_shown: set[str],
    message: Warning | str,
    category: type[Warning],
    *_: object,
    **__: object,
) -> None:
    """Shows a UserWarning once, and drops warnings of other categories; replaces
    `warnings.showwarning`."""
    text = str(message)
    if issubclass(category, UserWarning) and text not in texts_shown:
        from tqdm import tqdm

        texts_shown.add(text)
        # Prints above a progress bar, not into its line.
        tqdm.write(f"mtmetrics: warning: {text}", file=sys.stderr)


def complete(parser: argparse.ArgumentParser) -> None:
    """Answers the shell's request for completions and ends the process, if argcomplete is
    installed."""
    with contextlib.suppress(ImportError, MTMetricsError):
        import argcomplete

        installed_plugins()  # adds their metrics to METRICS

        from mtmetrics.artifacts.presets import preset_names

        values = {
            "metric": list(METRICS),
            "preset": sorted({name for metric in METRICS for name in preset_names(metric)}),
        }
        for command in runnable_commands(parser):
            for action in command._actions:
                if action.dest in values:
                    action.completer = argcomplete.completers.ChoicesCompleter(values[action.dest])
        argcomplete.autocomplete(parser)


def runnable_commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yields the parsers of all commands that have no sub-commands."""
    has_subcommands = False
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            has_subcommands = True
            for command in action.choices.values():
                yield from runnable_commands(command)
    if not has_subcommands:
        yield parser


if __name__ == "__main__":
    sys.exit(main())
