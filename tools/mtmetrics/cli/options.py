"""Options that several commands share, so that a flag has one name and one meaning everywhere."""

import argparse
import contextlib
import dataclasses
import functools
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from mtmetrics.errors import InputError
from mtmetrics.models.running import Running
from mtmetrics.scorers.metric import METRICS
from mtmetrics.scorers.registry import known_metric
from mtmetrics.scorers.settings import kinds, plain_value

if TYPE_CHECKING:
    from mtmetrics.models.pool import ModelPool
    from mtmetrics.reports.metric_runs import MetricSpec

T = TypeVar("T")
# A parser, or a group of options of one.
Container = argparse._ActionsContainer
# The parsers of the actions of a command.
Subparsers = argparse._SubParsersAction
USUAL_METRIC = "xmoverscore"
# Set by `main`: no bars and no notes, but warnings and errors.
quiet = False
_MOST_AHEAD = 1000
_ROWS = (
    "TSV (source, translation and reference in this order, or named by a header row), .csv with "
    "a header row, .jsonl or .parquet (source, translation, reference; or src, mt, ref); - "
    "reads TSV from standard input"
)
# Keywords that are no option of a single metric, but of a command.
_COMMON = (
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
_DTYPE_DEFAULT = "float32; auto in filter and rerank, and with --engine ray"


def flag(keyword: str) -> str:
    """The option of the command line for a keyword of Python."""
    return "--lp" if keyword == "lang_pair" else f"--{keyword.replace('_', '-')}"


@functools.cache
def own_options() -> dict[str, list[dataclasses.Field]]:
    """Returns metric -> the fields of its settings that replace what a preset says."""
    options = {}
    for metric in METRICS.values():
        fields = metric.settings().options().values()
        options[metric.name] = [field for field in fields if field.name not in _COMMON]
    return options


def own_keywords() -> list[str]:
    """Returns the names of the options that replace what a preset says, each once."""
    names = [field.name for fields in own_options().values() for field in fields]
    return list(dict.fromkeys(names))


def default_text(field: dataclasses.Field) -> str:
    """Returns the default of a setting as help shows it; nothing where there is none."""
    if field.default is None or field.default is False:
        return ""
    return f" (default: {field.default})"


def add_settings(
    group: Container,
    owners: Mapping[str, Iterable[dataclasses.Field]],
    shown_default: Callable[[dataclasses.Field], str] = default_text,
) -> None:
    """Adds an option for each field of settings: of metrics, trainings, productions or models.

    An option that is not given is None; `settings_of` keeps the default of the settings then.

    Args:
        owners: what has the settings -> their fields, with a `help` in the metadata. The help of
            the option names the owners that describe a field in different words.
        shown_default: gives the end of a help text.
    """
    fields: dict[str, dataclasses.Field] = {}
    descriptions: dict[str, dict[str, list[str]]] = {}
    for owner, owned in owners.items():
        for field in owned:
            fields.setdefault(field.name, field)
            text = field.metadata["help"] + shown_default(field)
            descriptions.setdefault(field.name, {}).setdefault(text, []).append(owner)
    for name, field in fields.items():
        texts = list(descriptions[name])
        if len(texts) > 1:
            texts = [f"{', '.join(names)}: {text}" for text, names in descriptions[name].items()]
        _add_setting(group, field, "; ".join(texts).replace("%", "%%"))


def _add_setting(group: Container, field: dataclasses.Field, help_text: str) -> None:
    """Adds the option of one field, without a default."""
    types = kinds(field) or {str}
    if types == {bool}:
        action = argparse.BooleanOptionalAction
        group.add_argument(flag(field.name), action=action, default=None, help=help_text)
        return
    is_number = types <= {int, float}
    metavar = field.metadata.get("usage", "N" if is_number else None) or None
    group.add_argument(flag(field.name), metavar=metavar, type=_value_reader(types), help=help_text)


def _value_reader(types: set[type]) -> Callable[[str], Any]:
    """Returns the function that reads a value of one of these types."""
    if len(types) == 1:
        return next(iter(types))

    def read(text: str) -> Any:
        try:
            return plain_value(types, text)
        except InputError as error:
            raise argparse.ArgumentTypeError(f"invalid value: {text!r}; {error}") from None

    return read


def settings_of(args: argparse.Namespace, config: type[T]) -> T:
    """Returns settings of a class, with those that the user gave."""
    names = [field.name for field in dataclasses.fields(config)]  # type: ignore[arg-type]
    values = {name: getattr(args, name) for name in names}
    return config(**{name: value for name, value in values.items() if value is not None})


def add_lang_pair(group: Container) -> None:
    """Adds ``--lp``."""
    group.add_argument(
        "--lp",
        metavar="XX-YY",
        help="language pair, such as de-en, deu_Latn-eng_Latn or en-pt_BR",
    )


def add_sources(group: Container) -> None:
    """Adds ``-s FILE``."""
    group.add_argument("-s", "--sources", metavar="FILE", help="one source segment per line")


def add_encoder(group: Container) -> None:
    """Adds ``--encoder MODEL``, which must be given."""
    group.add_argument(
        "--encoder",
        metavar="MODEL",
        required=True,
        help="folder, bundled artifact or Hub repository",
    )


def add_table_or_json(group: Container) -> None:
    """Adds ``--format``, a table or JSON."""
    group.add_argument(
        "--format",
        choices=("table", "json"),
        default="table",
        help="output format (default: %(default)s)",
    )


def add_plugin(group: Container) -> None:
    """Adds ``--plugin FILE.py``."""
    group.add_argument(
        "--plugin",
        metavar="FILE.py",
        action="append",
        help="metrics of this file, too; repeatable",
    )


def add_where(group: Container) -> None:
    """Adds ``--where CONDITION``."""
    group.add_argument(
        "--where",
        metavar="CONDITION",
        help="only rows whose field has a value, or a number that is not below one, such as "
        "year=2020, system=NAME or 'judgements>=2'",
    )


def add_judged_options(group: Container) -> None:
    """Adds the choice of rows and fields of judged data."""
    group.add_argument("--lp", metavar="XX-YY", dest="pair", help="read this language pair only")
    group.add_argument(
        "--field",
        metavar="FIELD",
        default="translation",
        help="the field that holds the translation (default: %(default)s)",
    )
    add_where(group)
    group.add_argument(
        "--detokenize",
        action="store_true",
        help="first make running text of texts that Moses tokenised (extra [mining]); the "
        "signature says so",
    )


def add_seed(group: Container, drawn: str) -> None:
    """Adds ``--seed``; the help says what is `drawn`."""
    group.add_argument(
        "--seed", metavar="SEED", type=int, default=1, help=f"of {drawn} (default: %(default)s)"
    )


def add_row_options(parser: argparse.ArgumentParser, *, one_file: str = _ROWS) -> None:
    """Adds the files to read and the language pair.

    Args:
        one_file: rows that a single FILE holds, for the help.
    """
    group = parser.add_argument_group("input")
    group.add_argument("file", metavar="FILE", nargs="?", help=one_file)
    add_sources(group)
    group.add_argument(
        "-t",
        "--predictions",
        metavar="FILE",
        nargs="+",
        action="extend",
        default=[],
        help="one translation per line; several files are several systems",
    )
    group.add_argument(
        "-r",
        "--references",
        metavar="FILE",
        nargs="+",
        action="extend",
        default=[],
        help="one reference per line; of several files the best one counts",
    )
    add_lang_pair(group)


def add_output_options(
    parser: argparse.ArgumentParser,
    formats: Sequence[str],
    *,
    text: str = "output format (default: table on a terminal, else json)",
) -> Any:
    """Adds the group of output options, with `--format`, and returns it."""
    group = parser.add_argument_group("output")
    group.add_argument("--format", choices=formats, help=text)
    group.add_argument(
        "--full-precision",
        action="store_true",
        help="all digits of numbers; 6 significant ones without it",
    )
    return group


def add_metric_options(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Adds the choice of a metric, or `several`, and preset, the options that replace what the
    preset says, and how models are run."""
    group = parser.add_argument_group("metric")
    repeatable = "; repeatable, each is run once" if several else ""
    add_metric(
        group,
        f"metric, such as sentsim:mini or sentsim:mini:variant=wmd{repeatable} (default: "
        f"{USUAL_METRIC})",
    )
    add_plugin(group)
    group.add_argument(
        "--preset",
        metavar="NAME|DIR",
        help="preset, or a folder with a preset.toml (default: paper; mini of uscore, esim, "
        "bilstm*)",
    )
    group.add_argument(
        "--against",
        metavar="SIDE",
        help="compare with the source or the reference, for metrics that can do both",
    )
    add_settings(parser.add_argument_group(OWN_OPTIONS), own_options(), lambda field: "")
    add_model_options(parser)


def add_metric(group: Container, text: str) -> None:
    """Adds ``--metric``, which may be given several times."""
    group.add_argument(
        "--metric", metavar="NAME[:PRESET[:OPTION=VALUE,...]]", action="append", help=text
    )


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds how models are run."""

    def shown_default(field: dataclasses.Field) -> str:
        if field.name == "dtype":  # where the user names none, the command chooses
            return f" (default: {_DTYPE_DEFAULT})"
        return default_text(field)

    group = parser.add_argument_group("models")
    add_settings(group, {"": dataclasses.fields(Running)}, shown_default)


def metric_options(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the keywords for `load_scorer` of the metric that the arguments name; raises
    `InputError` where they name several."""
    spec, *others = metric_specs(args).values()
    if others:
        text = "this command takes one metric; score, compare and evaluate take several"
        raise InputError(f"--metric {others[0]}: {text}")
    return loader_options(spec, args)


def loader_options(spec: "MetricSpec", args: argparse.Namespace) -> dict[str, Any]:
    """Returns the keywords for `mtmetrics.scorers.registry.load_scorer` of a metric, with the
    language pair of the arguments."""
    lang_pair = {"lang_pair": args.lp} if hasattr(args, "lp") else {}
    return {"metric": spec.metric, "preset": spec.preset, **dict(spec.options), **lang_pair}


def metric_specs(
    args: argparse.Namespace, *, usual: Sequence[str] = (USUAL_METRIC,)
) -> "dict[str, MetricSpec]":
    """Reads the metrics, with --preset and, for a single metric, the other options.

    Args:
        usual: the metrics where the user names none.

    Returns:
        The text that the user wrote for a metric -> the metric.

    Raises:
        InputError: a metric comes twice, an option could belong to several metrics, or
            `MetricSpec.parse` refuses a text.
    """
    from mtmetrics.reports.metric_runs import MetricSpec

    named = args.metric or [*usual]
    twice = [text for text in named if named.count(text) > 1]
    if twice:
        raise InputError(f"--metric {twice[0]}: given twice")
    values = {name: getattr(args, name) for name in own_keywords()}
    options = {name: value for name, value in values.items() if value is not None}
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
    running = settings_of(args, Running)
    return dataclasses.asdict(running) | {"dtype": args.dtype or dtype}


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


def add_mix_option(parser: argparse.ArgumentParser, others: str = "") -> None:
    """Adds the weights of the sum of several scores.

    Args:
        others: scores other than those of metrics that may have a weight, for the help.
    """
    parser.add_argument(
        "--mix",
        metavar="NAME=WEIGHT",
        action="append",
        help=f"weight of a metric, as it was named with --metric{others}, in the sum that decides; "
        "repeatable (default: 1 for each metric)",
    )


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
