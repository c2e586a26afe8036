"""Options that several commands share, so that a flag has one name and one meaning everywhere.

Functions ``add_...`` add options to a parser or to a group of one. At the end of the module stand
the functions that read back which metrics the user names, and how models are run."""

import argparse
import dataclasses
import functools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from mtmetrics.cli import messages
from mtmetrics.errors import InputError
from mtmetrics.models.running import Running
from mtmetrics.scorers.metric import METRICS
from mtmetrics.scorers.registry import known_metric
from mtmetrics.scorers.settings import kinds, plain_value

if TYPE_CHECKING:
    from mtmetrics.models.pool import ModelPool
    from mtmetrics.scorers.spec import MetricSpec

T = TypeVar("T")
# A parser, or a group of options of one.
Container = argparse._ActionsContainer
# The parsers of the actions of a command.
Subparsers = argparse._SubParsersAction
# Keywords of `load_scorer`: ``metric``, ``preset``, ``lang_pair``, ``against`` and the metric's own.
LoaderOptions = dict[str, Any]
# A value of an option that is a plain setting.
Value = bool | int | float | str
# Keywords of `add_argument` for an option that takes one value or more, and grows when it is given
# again.
LIST = {"nargs": "+", "action": "extend", "default": []}
USUAL_METRIC = "xmoverscore"
_ROW_FILES = (
    "TSV (source, translation and reference in this order, or named by a header row), .csv with "
    "a header row, .jsonl or .parquet (source, translation, reference; or src, mt, ref); - "
    "reads TSV from standard input"
)
# Options of commands. A setting of a metric that is called like one of them is no option of its own.
_OPTIONS_OF_COMMANDS = (
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
    """Returns the option of the command line for a keyword of Python."""
    return "--lp" if keyword == "lang_pair" else f"--{keyword.replace('_', '-')}"


@functools.cache
def own_options() -> dict[str, list[dataclasses.Field]]:
    """Returns metric -> the fields of its settings that replace what a preset says."""
    options = {}
    for metric in METRICS.values():
        fields = metric.settings().options().values()
        options[metric.name] = [field for field in fields if field.name not in _OPTIONS_OF_COMMANDS]
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
    default_text: Callable[[dataclasses.Field], str] = default_text,
) -> None:
    """Adds an option for each field of settings: of metrics, trainings, productions or models.

    An option that the user leaves out is None; `settings_of` keeps the default of the settings
    then. Where owners describe the same field in different words, the help of its option says
    whose words are whose.

    Args:
        group: takes the options.
        owners: name of an owner of settings -> its fields, with a `help` in their metadata.
        default_text: returns what the help of a field says of its default.
    """
    fields: dict[str, dataclasses.Field] = {}
    # Name of a field -> its help -> the owners that describe it so.
    owners_by_help: dict[str, dict[str, list[str]]] = {}
    for owner, owned_fields in owners.items():
        for field in owned_fields:
            fields.setdefault(field.name, field)
            help_text = field.metadata["help"] + default_text(field)
            owners_by_help.setdefault(field.name, {}).setdefault(help_text, []).append(owner)
    for name, field in fields.items():
        help_texts = list(owners_by_help[name])
        if len(help_texts) > 1:
            help_texts = [
                f"{', '.join(names)}: {help_text}"
                for help_text, names in owners_by_help[name].items()
            ]
        _add_setting(group, field, "; ".join(help_texts).replace("%", "%%"))


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


def _value_reader(types: set[type]) -> Callable[[str], Value]:
    """Returns the function that reads a value of one of these types."""
    if len(types) == 1:
        return next(iter(types))

    def read(text: str) -> Value:
        try:
            return plain_value(types, text)
        except InputError as error:
            raise argparse.ArgumentTypeError(f"invalid value: {text!r}; {error}") from None

    return read


def settings_of(args: argparse.Namespace, config: type[T]) -> T:
    """Returns settings of a class, with the values that the user gave."""
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


def add_seed(group: Container, drawn: str, default: int = 1) -> None:
    """Adds ``--seed``; the help says what is `drawn`."""
    group.add_argument(
        "--seed",
        metavar="SEED",
        type=int,
        default=default,
        help=f"of {drawn} (default: %(default)s)",
    )


def add_monolingual_files(group: Container) -> None:
    """Adds a file of each language, and the language pair."""
    group.add_argument("--lp", metavar="XX-YY", required=True, help="language pair, such as de-en")
    group.add_argument(
        "--source-text",
        metavar="FILE",
        required=True,
        help="sentences of the source language, one per line",
    )
    group.add_argument(
        "--target-text", metavar="FILE", required=True, help="sentences of the target language"
    )


def add_language_filter(group: Container) -> None:
    """Adds ``--no-language-filter``."""
    group.add_argument(
        "--no-language-filter",
        action="store_true",
        help="keep sentences that seem to be of another language",
    )


def add_row_options(parser: argparse.ArgumentParser, *, one_file: str = _ROW_FILES) -> None:
    """Adds the files to read and the language pair.

    Args:
        parser: of the command.
        one_file: help of FILE, the kinds of rows that it may hold.
    """
    group = parser.add_argument_group("input")
    group.add_argument("file", metavar="FILE", nargs="?", help=one_file)
    add_sources(group)
    group.add_argument(
        "-t",
        "--predictions",
        metavar="FILE",
        **LIST,
        help="one translation per line; several files are several systems",
    )
    group.add_argument(
        "-r",
        "--references",
        metavar="FILE",
        **LIST,
        help="one reference per line; of several files the best one counts",
    )
    add_lang_pair(group)


def add_output_options(
    parser: argparse.ArgumentParser,
    formats: Sequence[str],
    *,
    format_help: str = "output format (default: table on a terminal, else json)",
) -> Container:
    """Adds the group of output options, with `--format`, and returns it."""
    group = parser.add_argument_group("output")
    group.add_argument("--format", choices=formats, help=format_help)
    group.add_argument(
        "--full-precision",
        action="store_true",
        help="all digits of numbers; 6 significant ones without it",
    )
    return group


def add_metric_options(parser: argparse.ArgumentParser, *, is_repeatable: bool = False) -> None:
    """Adds the choice of a metric and of a preset, the options that replace what the preset says,
    and how models are run.

    Args:
        parser: of the command.
        is_repeatable: whether the command takes several metrics.
    """
    group = parser.add_argument_group("metric")
    repeatable = "; repeatable, each is run once" if is_repeatable else ""
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


def add_metric(group: Container, help_text: str) -> None:
    """Adds ``--metric``, which may be given several times."""
    group.add_argument(
        "--metric", metavar="NAME[:PRESET[:OPTION=VALUE,...]]", action="append", help=help_text
    )


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds how models are run."""

    def default_of(field: dataclasses.Field) -> str:
        # Where the user names no number format, the command chooses one.
        return f" (default: {_DTYPE_DEFAULT})" if field.name == "dtype" else default_text(field)

    group = parser.add_argument_group("models")
    add_settings(group, {"": dataclasses.fields(Running)}, default_of)


def add_mix_option(parser: argparse.ArgumentParser, model_scores_help: str = "") -> None:
    """Adds the weights of the sum of several scores.

    Args:
        parser: of the command.
        model_scores_help: continues the help where scores of translation models may have a weight.
    """
    parser.add_argument(
        "--mix",
        metavar="NAME=WEIGHT",
        action="append",
        help=f"weight of a metric, as it was named with --metric{model_scores_help}, in the sum "
        "that decides; repeatable (default: 1 for each metric)",
    )


def mix_weights(args: argparse.Namespace) -> dict[str, float]:
    """Returns the weights that --mix gives, by name.

    Raises:
        InputError: one is not NAME=WEIGHT, or a name comes twice.
    """
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


def metric_options(args: argparse.Namespace) -> LoaderOptions:
    """Returns the keywords of `load_scorer` for the one metric that the arguments name.

    Raises:
        InputError: they name several, or as `metric_specs`.
    """
    spec, *further_specs = metric_specs(args).values()
    if further_specs:
        raise InputError(
            f"--metric {further_specs[0]}: this command takes one metric; score, compare and "
            "evaluate take several"
        )
    return loader_options(spec, args)


def loader_options(spec: "MetricSpec", args: argparse.Namespace) -> LoaderOptions:
    """Returns the keywords of `mtmetrics.scorers.registry.load_scorer` for a metric, with the
    language pair of the arguments."""
    loader = {"metric": spec.metric, "preset": spec.preset, **dict(spec.options)}
    if hasattr(args, "lp"):
        loader["lang_pair"] = args.lp
    return loader


def metric_specs(
    args: argparse.Namespace, *, usual: Sequence[str] = (USUAL_METRIC,)
) -> "dict[str, MetricSpec]":
    """Reads the metrics, with --preset and, for a single metric, its own options.

    Args:
        args: parsed arguments.
        usual: the metrics where the user names none.

    Returns:
        The text that the user wrote for a metric -> the metric.

    Raises:
        InputError: a metric comes twice, an option could belong to several metrics, or
            `MetricSpec.parse` refuses a text.
    """
    from mtmetrics.scorers.spec import MetricSpec

    texts = args.metric or [*usual]
    for text in texts:
        if texts.count(text) > 1:
            raise InputError(f"--metric {text}: given twice")
    values = {name: getattr(args, name) for name in own_keywords()}
    options = {name: value for name, value in values.items() if value is not None}
    if len(texts) != 1 and options:
        option = flag(next(iter(options)))
        form = f"{USUAL_METRIC}:{args.preset or 'paper'}:{option[2:]}=VALUE"
        raise InputError(f"{option}: for which metric? Write it as in --metric {form}")
    specs = {}
    for text in texts:
        spec = MetricSpec.parse(text).filled(args.preset, options)
        specs[text] = spec if args.against is None else _compared_with(spec, args.against)
    return specs


def _compared_with(spec: "MetricSpec", against: str) -> "MetricSpec":
    """Returns the metric, to compare with the side that --against names; unchanged where it has no
    choice, or chooses by itself."""
    metric = known_metric(spec.metric)
    if metric is None:
        return spec
    side = metric.side_of_options({"against": against}, metric.columns)
    if len(metric.sides) == 1:
        return spec
    return spec.having(**{"against": side, **dict(spec.options)})


def pool_options(args: argparse.Namespace, *, dtype: str = "float32") -> dict[str, Value]:
    """Returns the keywords of `mtmetrics.models.pool.ModelPool`.

    Args:
        args: parsed arguments.
        dtype: the number format where the user names none.
    """
    running = settings_of(args, Running)
    return dataclasses.asdict(running) | {"dtype": args.dtype or dtype}


def model_pool(args: argparse.Namespace, *, dtype: str = "float32") -> "ModelPool":
    """Returns a pool that runs models as the arguments say, see `pool_options`. Where the user leaves
    the choice of a number format to it, a note says which it is."""
    from mtmetrics.models.pool import ModelPool

    pool = ModelPool(**pool_options(args, dtype=dtype))
    if args.dtype == "auto" and not messages.quiet:
        number_format = pool.number_format
        note = f"computes in {number_format.name}: {number_format.reason}"
        print(f"mtmetrics: {note}", file=sys.stderr)
    return pool
