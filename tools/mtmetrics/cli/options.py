"""Options that several commands share, so that a flag has one name and one meaning everywhere."""

import argparse
import contextlib
import dataclasses
import functools
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mtmetrics.errors import InputError
from mtmetrics.models.running import Running
from mtmetrics.scorers.metric import METRICS
from mtmetrics.scorers.registry import known_metric
from mtmetrics.scorers.settings import kinds, plain_value

if TYPE_CHECKING:
    from mtmetrics.models.pool import ModelPool
    from mtmetrics.reports.metric_runs import MetricSpec

USUAL_METRIC = "xmoverscore"
# Set by `main`: no bars and no notes, but warnings and errors.
quiet = False
_MOST_AHEAD = 1000
# As its usage is written -> help, and what else is said of it; see `add_options`.
Options = Mapping[str, str | tuple[str, Any]]
# Name -> what runs it, a line for the list of all, description and options; see `add_actions`.
Actions = Mapping[str, tuple[Callable[[argparse.Namespace], int | None], str, str, Options]]
_FLAG = {"action": argparse.BooleanOptionalAction, "default": None}
LANG_PAIR: Options = {"--lp XX-YY": "language pair, such as de-en, deu_Latn-eng_Latn or en-pt_BR"}
SOURCES: Options = {"-s --sources FILE": "one source segment per line"}
ENCODER: Options = {"--encoder MODEL!": "folder, bundled artifact or Hub repository"}
TABLE_OR_JSON: Options = {"--format": ("output format", ("table", "json"))}
PLUGIN: Options = {
    "--plugin FILE.py": ("metrics of this file, too; repeatable", {"action": "append"})
}
WHERE: Options = {
    "--where CONDITION": (
        "only rows whose field has a value, or a number that is not below one, such as "
        "year=2020, system=NAME or 'judgements>=2'"
    )
}
JUDGED: Options = {
    "--lp XX-YY": ("read this language pair only", {"dest": "pair"}),
    "--field FIELD": ("the field that holds the translation", "translation"),
    **WHERE,
    "--detokenize": (
        "first make running text of texts that Moses tokenised (extra [mining]); the signature "
        "says so"
    ),
}
_AGAINST: Options = {
    "--against SIDE": "compare with the source or the reference, for metrics that can do both"
}
_ROWS = (
    "TSV (source, translation and reference in this order, or named by a header row), .csv with "
    "a header row, .jsonl or .parquet (source, translation, reference; or src, mt, ref); - "
    "reads TSV from standard input"
)
_SAME = (
    "lang_pair",
    "against",
    "metric",
    "preset",
    "device",
    "dtype",
    "batch_tokens",
    "resamples",
    "seed",
    "correction",
)
# Help shows this group only for a metric that is named.
OWN_OPTIONS = "instead of what the preset says"


def _merged(
    owners: Mapping[str, Iterable[dataclasses.Field]], tell: Callable[[dataclasses.Field], str]
) -> dict[str, tuple[dataclasses.Field, dict[str, list[str]]]]:
    """Fields of several classes by name: the first one, and what is told of them -> the owners of
    whom it is told."""
    merged: dict[str, tuple[dataclasses.Field, dict[str, list[str]]]] = {}
    for owner, fields in owners.items():
        for field in fields:
            _, told = merged.setdefault(field.name, (field, {}))
            told.setdefault(tell(field), []).append(owner)
    return merged


@functools.cache
def own_options() -> Options:
    """What metrics take instead of what their presets say, from the settings of all of them."""
    fields = {metric.name: metric.settings().options().values() for metric in METRICS.values()}
    found: dict[str, tuple[str, Any]] = {}
    for name, (field, told) in _merged(fields, lambda field: field.metadata["help"]).items():
        if name in _SAME:  # the seed, which commands have for all that is drawn
            continue
        possible = kinds(field) or {str}
        usage = flag(name) + (
            "" if possible == {bool} else f" {field.metadata['usage'] or name.upper()}"
        )
        texts = (
            [*told]
            if len(told) == 1
            else [f"{', '.join(names)}: {text}" for text, names in told.items()]
        )
        found[usage] = ("; ".join(texts), _value_of(possible))
    return found


def _value_of(possible: set[type]) -> type | dict[str, Any]:
    """How the command line reads an option that may have values of these types."""
    if possible == {bool}:
        return _FLAG
    if len(possible) == 1:
        return next(iter(possible))

    def read(text: str) -> Any:
        try:
            return plain_value(possible, text)
        except InputError as error:
            raise argparse.ArgumentTypeError(f"invalid value: {text!r}; {error}") from None

    return {"type": read}


def _model_options() -> Options:
    told: dict[str, str | tuple[str, Any]] = {}
    for field in dataclasses.fields(Running):
        text, default = field.metadata["help"], field.default
        if field.name == "dtype":  # where the user says none, the command does
            text, default = (
                f"{text} (default: float32; auto in filter and rerank, and with --engine ray)",
                None,
            )
        usage = f"{flag(field.name)} {field.metadata['usage']}".strip()
        told[usage] = text if default in (None, False) else (text, default)
    return told


def flag(keyword: str) -> str:
    """The option of the command line for a keyword of Python."""
    return "--lp" if keyword == "lang_pair" else f"--{keyword.replace('_', '-')}"


@functools.cache
def keywords() -> list[str]:
    """Keywords of Python that messages of the package name and that are options here."""
    return [*_SAME, *(usage.split()[0][2:].replace("-", "_") for usage in own_options())]


class _Several(argparse.Action):
    """A list of values, to which an option that is given again adds; the first replaces the
    default."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: Any = None,
    ) -> None:
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, [*values] if before is self.default else [*before, *values])


def add_options(parser: Any, options: Options) -> list[str]:
    """Adds options to a parser or a group of one, and returns the names of their values.

    Each usage belongs to a help text, or to a help text and a specification.

    A usage lists the names of the option and the placeholder of its value: ``-t --predictions
    FILE``. One without a dash is a positional argument, one without a placeholder a flag. ``...``
    behind the placeholder stands for a list of values, empty by default, to which an option that is
    given again adds; ``!`` at the end says that it must be given.

    A specification is a type; a default value; a truth value, which is the default of a flag that
    has a ``--no-`` form; a tuple of choices, of which the first is the default; or a dictionary of
    keywords for ``add_argument``."""
    added = []
    for usage, told in options.items():
        text, more = (told, None) if isinstance(told, str) else told
        words = usage.removesuffix("!").split()
        names = sum(word.startswith("-") for word in words) or 1
        metavar, *several = words[names:] or [None]
        settings: dict[str, Any] = {"metavar": metavar} if metavar else {}
        settings |= {"nargs": "+", "default": [], "action": _Several} if several else {}
        if words[0].startswith("-"):
            settings |= {"required": True} if usage.endswith("!") else {}
        elif not usage.endswith("!"):
            settings["nargs"] = "*" if several else "?"
        if more is None:
            settings |= {} if metavar else {"action": "store_true"}
        elif isinstance(more, type):
            settings["type"] = more
        elif isinstance(more, bool):
            settings |= {"action": argparse.BooleanOptionalAction, "default": more}
        elif isinstance(more, dict):
            settings |= more
        else:
            kind = (
                {"choices": more, "default": more[0]}
                if isinstance(more, tuple)
                else {"default": more}
            )
            settings |= {"type": type(kind["default"])} | kind
            text += " (default: %(default)s)"
        added.append(parser.add_argument(*words[:names], help=text, **settings).dest)
    return added


def add_actions(
    parser: argparse.ArgumentParser,
    actions: Actions,
    *,
    title: str = "actions",
    metavar: str = "ACTION",
) -> dict[str, argparse.ArgumentParser]:
    """Adds the actions of a command, one of which must be named, and returns their parsers by
    name."""
    several = parser.add_subparsers(title=title, metavar=metavar, required=True)
    parsers = {}
    for name, (run, summary, description, own) in actions.items():
        # Unlike a description, help is a format.
        parsers[name] = several.add_parser(
            name, help=summary.replace("%", "%%"), description=description
        )
        add_options(parsers[name], own)
        parsers[name].set_defaults(run=run)
    return parsers


def add_row_options(parser: argparse.ArgumentParser, *, one_file: str = _ROWS) -> None:
    """Adds the files to read (`one_file` says what a single FILE holds) and the language pair."""
    files: Options = {
        "file FILE": one_file,
        **SOURCES,
        "-t --predictions FILE ...": "one translation per line; several files are several systems",
        "-r --references FILE ...": "one reference per line; of several files the best one counts",
    }
    add_options(parser.add_argument_group("input"), {**files, **LANG_PAIR})


def add_output_options(
    parser: argparse.ArgumentParser,
    formats: Sequence[str],
    *,
    text: str = "output format (default: table on a terminal, else json)",
) -> Any:
    """Adds the group of output options, with `--format`, and returns it."""
    group = parser.add_argument_group("output")
    digits = "all digits of numbers; 6 significant ones without it"
    add_options(group, {"--format": (text, {"choices": formats}), "--full-precision": digits})
    return group


def add_metric_options(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Adds the choice of a metric, or `several`, and preset, what overrides the preset, and how
    models are run."""
    repeatable = "; repeatable, each is run once" if several else ""
    text = (
        f"metric, such as sentsim:mini or sentsim:mini:variant=wmd{repeatable} (default: "
        f"{USUAL_METRIC})"
    )
    metric: Options = {
        "--metric NAME[:PRESET[:OPTION=VALUE,...]]": (text, {"action": "append"}),
        **PLUGIN,
        "--preset NAME|DIR": (
            "preset, or a folder with a preset.toml (default: paper; mini of uscore, esim, bilstm*)"
        ),
    }
    add_options(parser.add_argument_group("metric"), {**metric, **_AGAINST})
    add_options(parser.add_argument_group(OWN_OPTIONS), own_options())
    add_model_options(parser)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    add_options(parser.add_argument_group("models"), _model_options())


def metric_options(args: argparse.Namespace) -> dict[str, Any]:
    """As `loader_options`, of the one metric that the arguments name; `InputError` where they name
    several."""
    first, *others = metric_specs(args).values()
    if others:
        text = "this command takes one metric; score, compare and evaluate take several"
        raise InputError(f"--metric {others[0]}: {text}")
    return loader_options(first, args)


def loader_options(spec: "MetricSpec", args: argparse.Namespace) -> dict[str, Any]:
    """The keywords for `mtmetrics.scorers.registry.load_scorer` of a metric, with the language pair
    that is given."""
    lang_pair = {"lang_pair": args.lp} if hasattr(args, "lp") else {}
    return {"metric": spec.metric, "preset": spec.preset, **dict(spec.options), **lang_pair}


def metric_specs(
    args: argparse.Namespace, *, usual: Sequence[str] = (USUAL_METRIC,)
) -> "dict[str, MetricSpec]":
    """The metrics as the user names them, with --preset and, for a single metric, the other
    options.

    Returns what the user wrote for each metric -> the metric; without any they are `usual`. An
    `InputError` where a metric is given twice, options could belong to several metrics, or as
    `MetricSpec.parse`."""
    from mtmetrics.reports.metric_runs import MetricSpec

    named = args.metric or [*usual]
    twice = [text for text in named if named.count(text) > 1]
    if twice:
        raise InputError(f"--metric {twice[0]}: given twice")
    given = {name: getattr(args, name) for name in keywords() if name not in _SAME}
    options = {name: value for name, value in given.items() if value is not None}
    if len(named) != 1 and options:
        shown = flag(next(iter(options)))
        form = f"{USUAL_METRIC}:{args.preset or 'paper'}:{shown[2:]}=VALUE"
        raise InputError(f"{shown}: for which metric? Write it as in --metric {form}")
    specs = {text: MetricSpec.parse(text).filled(args.preset, options) for text in named}
    if args.against is not None:  # unlike the others, for all metrics
        for text, spec in specs.items():
            metric = known_metric(spec.metric)
            side = metric and metric.side_of_options({"against": args.against}, metric.columns)
            if metric is not None and len(metric.sides) > 1:
                specs[text] = spec.having(**{"against": side} | dict(spec.options))
    return specs


def pool_options(args: argparse.Namespace, *, dtype: str = "float32") -> dict[str, Any]:
    """How models are run, for `mtmetrics.models.pool.ModelPool`; `dtype` is the usual number
    format."""
    given = {field.name: getattr(args, field.name) for field in dataclasses.fields(Running)}
    return given | {"dtype": args.dtype or dtype}


def model_pool(args: argparse.Namespace, *, dtype: str = "float32") -> "ModelPool":
    """The pool of models as the arguments ask for it; `dtype` is the usual number format."""
    from mtmetrics.models.pool import ModelPool

    pool = ModelPool(**pool_options(args, dtype=dtype))
    if args.dtype == "auto" and not quiet:
        chosen = pool.number_format
        print(f"mtmetrics: computes in {chosen.name}: {chosen.reason}", file=sys.stderr)
    return pool


class _Meter:
    """Moves a bar by the segments that are scored and, between them, by the texts that networks
    have read."""

    def __init__(self, bar: Any) -> None:
        self.bar = bar
        self.done = self.texts = 0
        self.texts_per_segment = 3.0

    def __call__(self, what: str, count: int) -> None:
        if what == "texts":
            self.texts += count
        else:
            self.done += count
            self.texts_per_segment = max(self.texts / count, 1.0)
            self.texts = 0
        ahead = min(self.texts / self.texts_per_segment, _MOST_AHEAD)
        place = int(min(self.done + ahead, self.bar.total or self.done + ahead))
        self.bar.update(max(place - self.bar.n, 0))


def show_notes(shown: bool = True) -> None:
    """Has the package's notes on what it does, and the progress of trainings, on standard error;
    not with --quiet."""
    level = logging.INFO if shown and not quiet else logging.WARNING
    logging.basicConfig(level=level, format="%(message)s")
    logging.getLogger("faiss").setLevel(
        logging.WARNING
    )  # it tells which processors it was not built for


def progress(iterable: Any = None, **options: Any) -> Any:
    """A bar of progress on standard error, shown on a terminal only and not with --quiet."""
    from tqdm import tqdm

    return tqdm(iterable, disable=quiet or None, **options)


@contextlib.contextmanager
def scoring(total: int) -> Iterator[None]:
    """Shows how many segments are scored while the block runs, of how many (0: not known), and the
    time left."""
    from mtmetrics.models.progress import listening

    with progress(total=total or None, desc="scoring", unit=" segments") as bar:
        with listening(_Meter(bar)):
            yield
        bar.update(max(total - bar.n, 0))


def add_settings(parser: Any, *configs: type) -> None:
    """Adds an option for each field of dataclasses of settings, which has a default, and its `help`
    in the metadata.

    Of several classes the user takes one; a field that differs between them is described as each
    has it."""
    metavars = {str: " NAME", bool: ""}
    alone = len(configs) == 1
    owners = {config.__name__: dataclasses.fields(config) for config in configs}
    default = "" if alone else " (default: {.default})"
    for name, (field, told) in _merged(
        owners, lambda one: one.metadata["help"] + default.format(one)
    ).items():
        usage = flag(name) + metavars.get(type(field.default), " N")
        how = _FLAG if isinstance(field.default, bool) else {"type": type(field.default)}
        add_options(
            parser,
            {usage: ("; or ".join(told).replace("%", "%%"), field.default if alone else how)},
        )


def settings_of(args: argparse.Namespace, config: type) -> Any:
    """The settings that `add_settings` asked for, of one of its classes."""
    given = {field.name: getattr(args, field.name) for field in dataclasses.fields(config)}
    return config(**{name: value for name, value in given.items() if value is not None})


def add_mix_option(parser: argparse.ArgumentParser, others: str = "") -> None:
    """Adds the weights of the sum of several scores; `others` says what else than a metric may have
    one."""
    text = (
        f"weight of a metric, as it was named with --metric{others}, in the sum that decides; "
        "repeatable (default: "
    )
    add_options(parser, {"--mix NAME=WEIGHT": (text + "1 for each metric)", {"action": "append"})})


def mix_weights(args: argparse.Namespace) -> dict[str, float]:
    """The weights that --mix gives; `InputError` where one is not NAME=WEIGHT, or a name comes
    twice."""
    weights: dict[str, float] = {}
    for text in args.mix or []:
        name, _, value = text.rpartition("=")
        try:
            if not name or name in weights:
                raise ValueError
            weights[name] = float(value)
        except ValueError:
            form = f"NAME=WEIGHT is needed, once for each name, such as {USUAL_METRIC}:mini=0.5"
            raise InputError(f"--mix {text}: {form}") from None
    return weights
