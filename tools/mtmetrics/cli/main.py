"""The command ``mtmetrics``: its help, the call of a sub-command, and expected errors as one line
and an exit code."""

import argparse
import contextlib
import copy
import ctypes
import functools
import importlib
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import IO, Any

from mtmetrics._version import __version__
from mtmetrics.cli import messages, options
from mtmetrics.cli.output import refuse_inputs_as_outputs
from mtmetrics.errors import InputError, MTMetricsError
from mtmetrics.scorers.metric import METRICS
from mtmetrics.scorers.registry import installed_plugins, known_metric

# A new command is a line here, a module of its name that configures its parser, and three examples
# below.
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
# Old name -> the new one. They are not listed, and say the new name when they are called.
RENAMED = {
    "remap": "train maps",
    "idf": "train idf",
    "uscore": "train uscore",
    "label": "train labels",
    "plot": "evaluate --plot",
    "tune": "evaluate --tune",
}
# Commands that share a module, whose functions are called by them.
_TOGETHER = dict.fromkeys(("list", "install", "doctor"), "inventory")
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_MIB = 2**20
# Options that hold texts, as messages write them.
_COLUMNS = {"sources": "-s SOURCES", "references": "-r REFERENCES"}
_STANDARD_OUTPUT = "standard output"
# One call a line; the help of a command shows those that begin with its name. Tests parse every one
# of them.
EXAMPLES = """
mtmetrics score --preset mini --lp de-en -s source.de -t system-a.en system-b.en --ci
mtmetrics score --metric xmoverscore:mini --metric sentsim:mini --lp de-en rows.tsv --segments
mtmetrics score --metric bertr:mini -r reference.en -t system.en --out scores.jsonl
mtmetrics compare --preset mini --lp de-en -s source.de -t system-a.en system-b.en
mtmetrics compare --metric bertr:mini --metric chrf -r reference.en -t system-a.en system-b.en --format markdown
mtmetrics compare --preset mini --lp de-en systems.jsonl --correction holm --resamples 10000
mtmetrics explain --preset mini --lp de-en rows.tsv --segments 1-3
mtmetrics explain --preset mini --lp de-en -s source.de -t system.en --worst 10 --plot worst
mtmetrics explain --metric bertr:mini -r reference.en -t system.en --segments 7 --plot segment.svg
mtmetrics evaluate --preset mini --data judged.jsonl
mtmetrics evaluate --metric sentsim:mini --metric chrf --against reference --ci --data de-en.jsonl fi-en.jsonl
mtmetrics evaluate --metric bertr:mini --layers all --plot layers.svg --data judged.jsonl
mtmetrics evaluate --recipe zhao2020-table1 --preset mini --report reproduced
mtmetrics evaluate --metric xmoverscore:mini --data judged.jsonl --plot scatter.png --draw scatter
mtmetrics evaluate --metric xmoverscore:mini --metric chrf --data judged.jsonl --plot bars.svg
mtmetrics evaluate --metric xmoverscore:mini --data development.jsonl --plot weights.pdf --draw weights
mtmetrics evaluate --metric xmoverscore:mini --data development.jsonl --tune tuned
mtmetrics evaluate --metric uscore:mini --data development.jsonl --try weights=tuned,+,++ --tune tuned
mtmetrics evaluate --metric bertr:mini:encoder=my-encoder --against reference --data development.jsonl --tune tuned
mtmetrics probe preference pairs.tsv --preset mini --lp de-en --word-pairs words.tsv
mtmetrics probe matching pairs.tsv --preset mini --lp de-en --candidates 50
mtmetrics probe matching pairs.tsv --metric sentsim:mini --lp de-en --at 1 --plot matching.png
mtmetrics list
mtmetrics list xmoverscore sentsim
mtmetrics list --format json
mtmetrics data list
mtmetrics data pull wmt17-cased
mtmetrics data score mt-metrics-eval-v2/wmt22 --lp en-de --name XMoverScore --metric xmoverscore:paper
mtmetrics filter --preset mini --lp de-en pairs.tsv --top 0.5 --out kept.tsv --report report.json
mtmetrics filter --metric xmoverscore:mini --metric uscore:mini --lp de-en pairs.tsv --tokens 1000000 --out kept.tsv
mtmetrics filter --preset mini --lp de-en pairs.parquet --threshold -1.2 --engine ray --out kept
mtmetrics rerank --preset mini --lp de-en nbest.jsonl
mtmetrics rerank --mbr --metric sentsim:mini --lp de-en nbest.jsonl
mtmetrics rerank --preset mini --lp de-en nbest.jsonl --tune development.jsonl
mtmetrics mine --lp de-en --source-text de.txt --target-text en.txt --memory 4G --out pairs.jsonl
mtmetrics mine --lp de-en --source-text de.txt --target-text en.txt --encoder my-own --level sentence --out a.jsonl
mtmetrics mine --lp de-en --source-text de.txt --target-text en.txt --encoder my-own --map umd --maps maps --out a.jsonl
mtmetrics train encoder --begin intfloat/multilingual-e5-small --parallel de-en.jsonl --out my-encoder
mtmetrics train lm --mono en.txt --out my-lm
mtmetrics train regressor --architecture esim --encoder my-encoder --judged judged.jsonl --out my-esim
mtmetrics train regressor --composition transformer --encoder mini-encoder --judged labelled.jsonl.gz --out my-esim
mtmetrics train maps --encoder mini-encoder --layer 4 --lp de-en --parallel de-en.jsonl --out maps
mtmetrics train maps --encoder mini-encoder --layer 4 --lp de-en --word-pairs words.tsv --map clp --out maps
mtmetrics train maps --encoder mini-encoder --lp de-en --parallel de-en.jsonl --level sentence --out maps
mtmetrics train idf --encoder mini-encoder --text de.txt en.txt --out idf.safetensors
mtmetrics train idf --encoder bert-base-multilingual-cased --text de.txt en.txt --out idf.safetensors --overwrite
mtmetrics train idf --encoder my-own --text de.txt en.txt --out idf.safetensors --dtype auto
mtmetrics train uscore --lp de-en --source-text de.txt --target-text en.txt --without translation --out made
mtmetrics train uscore --lp de-en --source-text de.txt --target-text en.txt --parallel de-en.tsv --out made
mtmetrics train uscore --lp de-en --source-text de.txt --target-text en.txt --judged judged.jsonl --out made
mtmetrics train labels --metric bilstm:mini --data outputs.jsonl --out labelled.jsonl.gz
mtmetrics train labels --metric bilstm:mini --metric esim:mini --data outputs.jsonl --failures 99 --out labels.jsonl
mtmetrics train labels --data judged.jsonl --out standardised.jsonl
mtmetrics artifacts list
mtmetrics artifacts verify
mtmetrics artifacts pull xmoverscore-published --lp de-en ru-en
mtmetrics artifacts convert facebook/mbart-large-cc25 --out models/mbart-large-cc25
mtmetrics space push xmoverscore --namespace org --package-url git+https://git.example.org/mtmetrics@v1.1.0
mtmetrics space push compare bertr --namespace org --execute
mtmetrics space push xmoverscore --namespace org --format json
mtmetrics install
mtmetrics install xmoverscore
mtmetrics install sentsim bertr
mtmetrics demo
mtmetrics demo --port 8000
mtmetrics demo xmoverscore
mtmetrics serve --preset mini --lp de-en
mtmetrics serve --metric esim:mini:against=source --lp de-en --threshold 0.2 --port 9000
mtmetrics serve --metric bertr:mini --most-segments 64 --most-waiting 16
mtmetrics doctor
"""


class Parser(argparse.ArgumentParser):
    """A parser whose help begins with a short usage and ends with examples.

    It takes no option by the beginning of its name: `_early_options` reads some options before it,
    by their names."""

    argv: Sequence[str] = ()

    def __init__(self, **keywords: Any) -> None:
        super().__init__(allow_abbrev=False, **keywords)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Keeps the arguments for the help, which may come before the metric."""
        self.argv = args or ()
        return super().parse_known_args(args, namespace)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Prints help or usage; unlike argparse it does not hide that the message could not be
        written."""
        (file or sys.stderr).write(message)

    def format_usage(self) -> str:
        """Returns the arguments that must be given; the help lists the others."""
        formatter = self._get_formatter()
        needed = [
            action for action in self._actions if action.required or not action.option_strings
        ]
        formatter.add_usage(None, needed, ())
        return formatter.format_help().replace(self.prog, f"{self.prog} [options]", 1)

    def format_help(self) -> str:
        """Returns the help, with the options of those metrics alone that the user names."""
        formatter = self._get_formatter()
        formatter.add_text(self.description)
        own_options = None
        for group in self._action_groups:
            if group.title == options.OWN_OPTIONS:
                own_options = group
                continue
            formatter.start_section(group.title)
            formatter.add_text(group.description)
            formatter.add_arguments(group._group_actions)
            formatter.end_section()
        if own_options is not None:
            self._add_own_options(formatter, own_options._group_actions)
        parts = [self.format_usage(), formatter.format_help()]
        examples = [line for line in EXAMPLES.splitlines() if line.startswith(f"{self.prog} ")]
        if self.prog == "mtmetrics":
            examples = examples[:1]
        if examples:
            parts.append("examples:\n" + "".join(f"  {line}\n" for line in examples))
        return "\n".join(parts)

    def _add_own_options(
        self, formatter: argparse.HelpFormatter, actions: list[argparse.Action]
    ) -> None:
        """Adds a section for each metric that the user names, or how to see one."""
        names = _named_metrics(self.argv)
        if not names:
            formatter.start_section(f"{options.OWN_OPTIONS} (a metric's own options)")
            formatter.add_text(f"{self.prog} --metric NAME --help")
            formatter.end_section()
        for name in filter(known_metric, names):
            fields = METRICS[name].settings().options()
            actions_of_metric = [copy.copy(action) for action in actions if action.dest in fields]
            for action in actions_of_metric:  # not what it is of other metrics
                action.help = fields[action.dest].metadata["help"].replace("%", "%%")
            formatter.start_section(f"{options.OWN_OPTIONS} ({name})")
            formatter.add_arguments(actions_of_metric)
            formatter.end_section()


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """Returns the parser with all commands.

    Args:
        only: a command; the others have a line of help and no options then.
    """
    text = "Machine-translation evaluation metrics: XMoverScore and its relatives."
    parser = Parser(prog="mtmetrics", description=text)
    parser.add_argument("--version", action="version", version=f"mtmetrics {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, line in _COMMANDS.items():
        command = subparsers.add_parser(name, help=line)
        if only in (None, name):
            module = importlib.import_module(f"mtmetrics.cli.{_TOGETHER.get(name, name)}")
            getattr(module, f"configure_{name}" if name in _TOGETHER else "configure")(command)
    for name, new_name in RENAMED.items():
        command = subparsers.add_parser(name)
        command.set_defaults(renamed=(name, new_name))
        if only in (None, name):
            importlib.import_module(f"mtmetrics.cli.{name}").configure(command)
    for command in leaves(parser):
        command.set_defaults(leaf=command)
        command.add_argument(
            "-q",
            "--quiet",
            action="store_true",
            help="no progress and no notes; warnings and errors stay",
        )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line on `argv`, or on the arguments of the process.

    Returns:
        0, 1 if something could not be done, 2 for bad usage, 130 after Ctrl-C, 143 after SIGTERM.
    """
    words = sys.argv[1:] if argv is None else argv
    if sys.stderr is None:  # `2>&-`, where messages would go to standard output
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        return _fail("standard output is closed; where it is not wanted, send it to /dev/null", 1)
    try:
        with _tolerant_output(), _ended_by_signals():
            return _call(words)
    except _EndedError as ended:
        return _fail("terminated", 128 + ended.number)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except BrokenPipeError:  # the reader of our output went away (`| head`)
        return 1
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "
        return _fail(f"{place}{error.strerror or error or type(error).__name__}", 1)


class _EndedError(BaseException):
    """A signal asked the process to end; not an `Exception`, so that nothing but the clearing up
    comes between."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Has signals that ask the process to end raise `_EndedError`, so that no temporary file
    stays."""
    process = os.getpid()

    def end(number: int, _: object) -> None:
        if os.getpid() == process:
            raise _EndedError(number)
        signal.signal(number, signal.SIG_DFL)  # a forked process has nothing to clear up
        os.kill(os.getpid(), number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    in_main_thread = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in numbers if in_main_thread}
    # `nohup` has a signal ignored, and None stands for a handler that Python cannot put back.
    before = {
        number: handler
        for number, handler in before.items()
        if handler not in (signal.SIG_IGN, None)
    }
    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _StandardOutput(io.FileIO):
    """Standard output whose errors name it."""

    def write(self, data: Any) -> int | None:
        """Writes bytes."""
        try:
            return super().write(data)
        except OSError as error:
            error.filename = _STANDARD_OUTPUT
            raise


@contextlib.contextmanager
def _tolerant_output() -> Iterator[None]:
    """Has standard output replace characters that its encoding lacks (see
    `mtmetrics.cli.output.machine_output`), and name itself in errors."""
    stream = sys.stdout
    before = stream.encoding, stream.errors
    if isinstance(stream, io.TextIOWrapper):
        if isinstance(getattr(stream.buffer, "raw", stream.buffer), io.FileIO):
            sys.stdout = _with_name(stream)
        sys.stdout.reconfigure(errors="replace")
    try:
        yield
        sys.stdout.flush()
    except SystemExit:  # after help
        sys.stdout.flush()
        raise
    except OSError:
        for output in (sys.stdout, sys.stderr):
            _drop_if_broken(output)
        raise
    finally:
        sys.stdout = stream
        if isinstance(stream, io.TextIOWrapper) and (stream.encoding, stream.errors) != before:
            stream.reconfigure(encoding=before[0], errors=before[1])


def _with_name(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """Another stream to the same open file, whose errors name it."""
    stream.flush()
    raw = _StandardOutput(stream.fileno(), "wb", closefd=False)
    target = (
        raw if stream.write_through else io.BufferedWriter(raw)
    )  # the former with PYTHONUNBUFFERED
    how = {"line_buffering": stream.line_buffering, "write_through": stream.write_through}
    return io.TextIOWrapper(target, encoding=stream.encoding, **how)


def _drop_if_broken(stream: IO[str]) -> None:
    """Sends what is left in the buffer of a stream nowhere, if it cannot be written: the
    interpreter would complain while it shuts down."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _call(argv: Sequence[str]) -> int:
    """Runs a command; its expected errors become a line and an exit code."""
    if "_ARGCOMPLETE" in os.environ:
        complete(build_parser())
    try:
        _load_plugins(argv)
    except MTMetricsError as error:
        return _fail(str(error), 2 if isinstance(error, InputError) else 1)
    try:
        parser = build_parser(
            next((word for word in argv if word in _COMMANDS or word in RENAMED), "")
        )
    except argparse.ArgumentError as error:
        why = "an option of a plug-in is one of the command, too; rename the field of its Settings"
        return _fail(f"{error}: {why}", 2)
    arguments = parser.parse_args(argv)
    messages.quiet = getattr(arguments, "quiet", False)
    if hasattr(arguments, "renamed"):
        old_name, new_name = arguments.renamed
        note = f"'mtmetrics {old_name}' is now 'mtmetrics {new_name}'; the old name goes in 2.1"
        print(f"mtmetrics: {note}", file=sys.stderr)
    (keep_large_blocks if getattr(arguments, "large_blocks", False) else return_large_blocks)()
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = functools.partial(_show_warning, set())
        try:
            refuse_inputs_as_outputs(arguments, arguments.leaf._actions)
            return arguments.run(arguments) or 0
        except MTMetricsError as error:
            message = error.worded(functools.partial(_flag_of, arguments.leaf))
            return _fail(message, 2 if isinstance(error, InputError) else 1)


def _flag_of(command: argparse.ArgumentParser, keyword: str, value: str) -> str | None:
    """Returns a keyword of Python, with its value if there is one, as the option of a command;
    None where the command has no such option."""
    if keyword in _COLUMNS:
        return _COLUMNS[keyword]
    option = options.flag(keyword)
    if option not in command._option_string_actions:
        return None
    return f"{option} {value}".rstrip()


def _early_options(argv: Sequence[str]) -> argparse.Namespace:
    """Reads ``--plugin`` and ``--metric``, which say which other options there are."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("--plugin", "--metric"):
        # A value that is missing is for the whole parser to refuse.
        parser.add_argument(name, action="append", nargs="?", default=[])
    early, _ = parser.parse_known_args(argv)
    return early


def _named_metrics(argv: Sequence[str]) -> list[str]:
    """Returns the names of the metrics that the arguments choose."""
    return [text.partition(":")[0] for text in _early_options(argv).metric if text]


def _load_plugins(argv: Sequence[str]) -> None:
    """Makes metrics known whose options the parser has to have: those of --plugin, and installed
    ones that --metric names. Processes that this one starts find the files by the environment."""
    for path in filter(None, _early_options(argv).plugin):
        from mtmetrics.scorers.plugins import load_plugin

        load_plugin(path)
        paths = [os.environ.get("MTMETRICS_PLUGINS"), os.path.abspath(path)]
        os.environ["MTMETRICS_PLUGINS"] = os.pathsep.join(filter(None, paths))
    for name in _named_metrics(argv):
        known_metric(name)


def keep_large_blocks() -> None:
    """Has the C library (where it is glibc) keep blocks of up to 32 MiB when they are freed:
    trainings take and free the same sizes in every step, and asking the system for them anew costs
    a fourth of the time."""
    _set_blocks({_M_MMAP_THRESHOLD: 32 * _MIB, _M_TRIM_THRESHOLD: 2**31 - 1})


def return_large_blocks() -> None:
    """Has the C library (where it is glibc) give every block of 1 MiB or more back to the system
    when it is freed.

    It raises that bound by itself up to 32 MiB; arrays of that size then leave gaps in its heap,
    and the memory of a run over many chunks keeps growing although nothing is kept."""
    _set_blocks({_M_MMAP_THRESHOLD: _MIB})


def _set_blocks(sizes: dict[int, int]) -> None:
    with contextlib.suppress(OSError, TypeError, AttributeError):
        for parameter, size in sizes.items():
            ctypes.CDLL(None).mallopt(parameter, size)


def _fail(message: str, code: int) -> int:
    try:
        print("mtmetrics: " + " ".join(message.split()), file=sys.stderr, flush=True)
    except OSError:  # `2>&1 | head`
        _drop_if_broken(sys.stderr)
    return code


def _show_warning(
    shown: set[str], message: Warning | str, category: type[Warning], *_: object, **__: object
) -> None:
    """Shows a warning of a user's input or settings, unless it is among those that were `shown`
    before."""
    if issubclass(category, UserWarning) and str(message) not in shown:
        from tqdm import tqdm

        shown.add(str(message))
        tqdm.write(
            f"mtmetrics: warning: {message}", file=sys.stderr
        )  # above a bar, not in its line


def complete(parser: argparse.ArgumentParser) -> None:
    """Answers the shell's request for completions and ends the process, where argcomplete is
    installed."""
    with contextlib.suppress(ImportError, MTMetricsError):
        import argcomplete

        installed_plugins()

        from mtmetrics.artifacts.presets import preset_names

        values = {
            "metric": list(METRICS),
            "preset": sorted({name for metric in METRICS for name in preset_names(metric)}),
        }
        for command in leaves(parser):
            for action in command._actions:
                if action.dest in values:
                    action.completer = argcomplete.completers.ChoicesCompleter(values[action.dest])
        argcomplete.autocomplete(parser)


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """The parsers of all commands that do something by themselves."""
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for action in inner:
        for command in action.choices.values():
            yield from leaves(command)
    if not inner:
        yield parser


if __name__ == "__main__":
    sys.exit(main())
