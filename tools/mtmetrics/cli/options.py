"""Options that several commands share.

Functions ``add_...`` add options to a parser, or to a group of options of a parser. Functions with
an argument `args` read parsed arguments, such as `metric_specs` and `model_pool`. A command that
needs another help text or another default for a flag, such as ``--lp`` or ``--format``, defines this
flag itself.

Settings are the fields of a dataclass. Metrics, models and training runs have such classes.
`add_settings` adds an option for each field, and `settings_of` reads these options."""

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
from mtmetrics.scorers.registry import find_metric
from mtmetrics.scorers.settings import parse_value, plain_types

if TYPE_CHECKING:
    from mtmetrics.models.pool import ModelPool
    from mtmetrics.scorers.spec import MetricSpec

# A class of settings.
T = TypeVar("T")
# A parser, or a group of options of a parser.
Container = argparse._ActionsContainer
# Takes a parser for each action of a command, such as ``train encoder`` and ``train lm``.
Subparsers = argparse._SubParsersAction
# Values that a setting can have on the command line.
PlainValue = bool | int | float | str
# Keywords of `add_argument` for an option that takes one value or several. If the user repeats the
# flag, the option has the values of all its flags.
REPEATABLE_LIST = {"nargs": "+", "action": "extend", "default": []}
DEFAULT_METRIC = "xmoverscore"
_ROW_FILE_HELP = (
    "TSV (source, translation and reference in this order, or named by a header row), .csv with "
    "a header row, .jsonl or .parquet (source, translation, reference; or src, mt, ref); or "
    "- for TSV from standard input"
)
# Names that an option of a command and a setting of a metric may share. The flag is that of the
# command; the user writes such a setting inside --metric. A setting with the name of any other
# option of the command is refused, see `mtmetrics.cli.main`.
_RESERVED_OPTIONS = (
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
# Title of the group of options that override a preset's values. `mtmetrics.cli.parser.Parser` finds
# the group by this title: help shows its options only for the metrics that the user names, as in
# ``mtmetrics score --metric sentsim --help``.
PRESET_OVERRIDES_TITLE = "options that override the preset"
_DTYPE_DEFAULT = "float32; auto in filter and rerank, and with --engine ray"


def flag(keyword: str) -> str:
    """Returns the command-line flag of a Python keyword."""
    return "--lp" if keyword == "lang_pair" else f"--{keyword.replace('_', '-')}"


@functools.cache
def settings_with_flags() -> dict[str, list[dataclasses.Field]]:
    """Returns the settings of each metric that have a command-line flag: metric -> fields.

    Call it only after the plug-ins are loaded: later ones would be missing."""
    fields_of_metric = {}
    for metric in METRICS.values():
        fields = metric.settings_class().options().values()
        fields_of_metric[metric.name] = [
            field for field in fields if field.name not in _RESERVED_OPTIONS
        ]
    return fields_of_metric


def _format_default(field: dataclasses.Field) -> str:
    """Formats the default of a setting for help; returns "" for None and False."""
    if field.name == "dtype":  # the command decides, not the class of settings
        return f" (default: {_DTYPE_DEFAULT})"
    if field.default is None or field.default is False:
        return ""
    return f" (default: {field.default})"


def add_settings(
    group: Container, fields_of_class: Mapping[str, Iterable[dataclasses.Field]]
) -> None:
    """Adds an option for each field of one or several classes of settings.

    The parsed value is None if the user omits the flag. `settings_of` skips such values, so that
    the settings class sets its default.

    Several classes may have a field of the same name. Then one option serves all of them, with the
    type and the placeholder of the first class. If their help texts differ, the option shows each
    text after the names of its classes.

    Args:
        group: takes the options.
        fields_of_class: name of a class of settings, for users, such as the name of a metric -> the
            fields of the class. The metadata of a field holds its `help`, and may hold `usage`, the
            placeholder of the value. The name of a single class is never shown, and may be "".
    """
    fields: dict[str, dataclasses.Field] = {}
    # Name of a field -> help text -> the classes that have this help text.
    classes_by_help: dict[str, dict[str, list[str]]] = {}
    for class_name, class_fields in fields_of_class.items():
        for field in class_fields:
            fields.setdefault(field.name, field)
            help_text = field.metadata["help"] + _format_default(field)
            classes_by_help.setdefault(field.name, {}).setdefault(help_text, []).append(class_name)
    for name, field in fields.items():
        help_texts = list(classes_by_help[name])
        if len(help_texts) > 1:
            help_texts = [
                f"{', '.join(class_names)}: {help_text}"
                for help_text, class_names in classes_by_help[name].items()
            ]
        _add_setting(group, field, "; ".join(help_texts).replace("%", "%%"))


def _add_setting(group: Container, field: dataclasses.Field, help_text: str) -> None:
    """Adds the option of one field, without a default."""
    types = plain_types(field) or {str}
    if types == {bool}:
        action = argparse.BooleanOptionalAction
        group.add_argument(flag(field.name), action=action, default=None, help=help_text)
        return
    is_number = types <= {int, float}
    # If "usage" is empty, argparse makes the metavar of the name.
    metavar = field.metadata.get("usage", "N" if is_number else None) or None
    group.add_argument(flag(field.name), metavar=metavar, type=_value_reader(types), help=help_text)


def _value_reader(types: set[type]) -> Callable[[str], PlainValue]:
    """Returns the function that reads a value of one of these types."""
    if len(types) == 1:
        return next(iter(types))

    def read(text: str) -> PlainValue:
        try:
            return parse_value(types, text)
        except InputError as error:
            raise argparse.ArgumentTypeError(f"invalid value: {text!r}; {error}") from None

    return read


def settings_of(args: argparse.Namespace, settings_class: type[T]) -> T:
    """Builds an object of `settings_class` from the flags that the user passed.

    A field keeps its default if the user omitted its flag."""
    names = [field.name for field in dataclasses.fields(settings_class)]  # type: ignore[arg-type]
    return settings_class(**passed_values(args, names))


def passed_values(args: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Returns the values of options that the user passed: name -> value.

    Args:
        args: parsed arguments.
        names: the options to return, as Python keywords. The command has all of them, and their
            default is None, which means that the user did not pass them.
    """
    values = {name: getattr(args, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def add_lang_pair(group: Container, *, required: bool = False) -> None:
    """Adds ``--lp``."""
    group.add_argument(
        "--lp",
        metavar="XX-YY",
        required=required,
        help="language pair, such as de-en, deu_Latn-eng_Latn or en-pt_BR",
    )


def add_sources(group: Container) -> None:
    """Adds ``-s FILE``."""
    group.add_argument("-s", "--sources", metavar="FILE", help="one source segment per line")


def add_encoder(group: Container) -> None:
    """Adds ``--encoder MODEL``, which is required."""
    group.add_argument(
        "--encoder",
        metavar="MODEL",
        required=True,
        help="folder, bundled artifact or Hub repository",
    )


def add_format(group: Container) -> None:
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
        help="also load the metrics that this file defines; repeatable",
    )


def add_where(group: Container) -> None:
    """Adds ``--where CONDITION``."""
    group.add_argument(
        "--where",
        metavar="CONDITION",
        help="use only rows with FIELD=VALUE (year=2020, system=NAME) or FIELD>=NUMBER "
        "('judgements>=2')",
    )


def add_judged_options(group: Container) -> None:
    """Adds the options for reading human judgements: they select rows, name the field of the
    translation, and undo tokenisation. One of them is ``--lp``, parsed as `args.pair`."""
    # In other commands --lp is the language pair of the input, `args.lp`. Here it selects rows of
    # files that may hold several pairs.
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
        help="first undo the Moses tokenisation of the texts (extra [mining]); the signature "
        "records it",
    )


def add_seed(group: Container, purpose: str, default: int = 1) -> None:
    """Adds ``--seed``.

    Args:
        group: takes the option.
        purpose: the random choices that depend on the seed; the help is "seed for" and this text.
        default: the seed if the user passes none.
    """
    group.add_argument(
        "--seed",
        metavar="SEED",
        type=int,
        default=default,
        help=f"seed for {purpose} (default: %(default)s)",
    )


def add_monolingual_files(group: Container) -> None:
    """Adds the language pair and two files of sentences, one for each language."""
    add_lang_pair(group, required=True)
    group.add_argument(
        "--source-text",
        metavar="FILE",
        required=True,
        help="sentences of the source language, one per line",
    )
    group.add_argument(
        "--target-text", metavar="FILE", required=True, help="sentences of the target language"
    )


def add_no_language_filter(group: Container) -> None:
    """Adds ``--no-language-filter``, which turns the filter off."""
    group.add_argument(
        "--no-language-filter",
        action="store_true",
        help="keep sentences that seem to be of another language",
    )


def add_row_options(parser: argparse.ArgumentParser, *, file_help: str = _ROW_FILE_HELP) -> None:
    """Adds the files to read and the language pair.

    Args:
        parser: the parser of the command.
        file_help: help of the argument FILE; says which formats the file may have.
    """
    group = parser.add_argument_group("input")
    group.add_argument("file", metavar="FILE", nargs="?", help=file_help)
    add_sources(group)
    group.add_argument(
        "-t",
        "--predictions",
        metavar="FILE",
        **REPEATABLE_LIST,
        help="one translation per line; several files are several systems",
    )
    group.add_argument(
        "-r",
        "--references",
        metavar="FILE",
        **REPEATABLE_LIST,
        help="one reference per line; several files give each segment several references, of which "
        "the best one counts",
    )
    add_lang_pair(group)


def add_output_options(
    parser: argparse.ArgumentParser,
    formats: Sequence[str],
    *,
    format_help: str = "output format (default: table on a terminal, else json)",
) -> Container:
    """Adds a group of output options: `--format` and `--full-precision`. Returns the group."""
    group = parser.add_argument_group("output")
    group.add_argument("--format", choices=formats, help=format_help)
    group.add_argument(
        "--full-precision",
        action="store_true",
        help="show all digits of numbers (default: 6 significant digits)",
    )
    return group


def add_metric_options(parser: argparse.ArgumentParser, *, is_repeatable: bool = False) -> None:
    """Adds the options that choose metric, preset and side, the options that override values of the
    preset, and the options for running the models.

    A side is what a metric compares the translation with: the source, the reference, or both.

    Args:
        parser: the parser of the command.
        is_repeatable: whether help says that the user may repeat --metric. A command with one
            metric reads it with `single_metric`, which refuses several.
    """
    group = parser.add_argument_group("metric")
    repeat_hint = "; pass it once for each metric" if is_repeatable else ""
    add_metric(
        group,
        f"metric, such as sentsim:mini or sentsim:mini:variant=wmd{repeat_hint} (default: "
        f"{DEFAULT_METRIC})",
    )
    add_plugin(group)
    group.add_argument(
        "--preset",
        metavar="NAME|DIR",
        help="preset, or a folder with a preset.toml (default: paper; mini for uscore, esim, "
        "bilstm*; wmt22-comet-da for comet)",
    )
    group.add_argument(
        "--against",
        metavar="SIDE",
        help="compare with the source, the reference or both, for metrics that can choose",
    )
    # Help shows these flags with their texts for a metric, and without a default, because the preset
    # decides where the user omits one; see `mtmetrics.cli.parser.Parser`.
    add_settings(parser.add_argument_group(PRESET_OVERRIDES_TITLE), settings_with_flags())
    add_model_options(parser)


def add_metric(group: Container, help_text: str) -> None:
    """Adds ``--metric``, which the user may repeat."""
    group.add_argument(
        "--metric", metavar="NAME[:PRESET[:OPTION=VALUE,...]]", action="append", help=help_text
    )


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options for running models: device, number format, batch size, use of the Hub."""
    add_settings(parser.add_argument_group("models"), {"": dataclasses.fields(Running)})


def add_mix_option(parser: argparse.ArgumentParser, extra_help: str = "") -> None:
    """Adds ``--mix``: weights of metrics in the weighted sum of scores that ranks or filters rows.

    Args:
        parser: the parser of the command.
        extra_help: follows "weight of a metric" in the help. A command says so that its sum may
            have other terms, such as the score of a translation model.
    """
    parser.add_argument(
        "--mix",
        metavar="NAME=WEIGHT",
        action="append",
        help=f"weight of a metric, as it was named with --metric{extra_help}, in the sum "
        "of scores by which rows are chosen; repeatable (default: 1 for each metric)",
    )


def mix_weights(args: argparse.Namespace) -> dict[str, float]:
    """Reads the weights of --mix: name -> weight.

    Raises:
        InputError: a value is not NAME=WEIGHT, or two values have the same name.
    """
    weights: dict[str, float] = {}
    for text in args.mix or []:
        name, _, value = text.rpartition("=")
        try:
            weight: float | None = float(value)
        except ValueError:
            weight = None
        if weight is None or not name or name in weights:
            expected_form = (
                f"NAME=WEIGHT is needed, once for each name, such as {DEFAULT_METRIC}:mini=0.5"
            )
            raise InputError(f"--mix {text}: {expected_form}")
        weights[name] = weight
    return weights


def single_metric(args: argparse.Namespace) -> "MetricSpec":
    """Returns the metric that the arguments name, for a command that takes one.

    Raises:
        InputError: the arguments name several metrics, or `metric_specs` raises it.
    """
    spec, *further_specs = metric_specs(args).values()
    if further_specs:
        raise InputError(
            f"--metric {further_specs[0]}: this command takes one metric; score, compare and "
            "evaluate take several"
        )
    return spec


def metric_specs(
    args: argparse.Namespace, *, default_metrics: Sequence[str] = (DEFAULT_METRIC,)
) -> "dict[str, MetricSpec]":
    """Reads the metrics that the arguments name, with their presets and options.

    A value of --metric may leave preset, side and settings open. --preset and --against fill them in
    for each metric. Flags of settings fill them in for a single metric. A value inside --metric wins
    over all of them.

    Args:
        args: parsed arguments.
        default_metrics: the metrics if the user names none.

    Returns:
        The value of --metric, as the user wrote it -> the metric.

    Raises:
        InputError: a metric is named twice; the user passes the flag of a setting, and the metrics
            are several, or none because `default_metrics` is empty; `MetricSpec.parse` rejects a
            value of --metric; or a metric cannot compare with the side of --against.
    """
    from mtmetrics.scorers.spec import MetricSpec

    metric_texts = args.metric or [*default_metrics]
    for text in metric_texts:
        if metric_texts.count(text) > 1:
            raise InputError(f"--metric {text}: given twice")
    setting_names = [field.name for fields in settings_with_flags().values() for field in fields]
    setting_values = passed_values(args, setting_names)
    if len(metric_texts) != 1 and setting_values:
        first_setting = next(iter(setting_values))
        first_flag = flag(first_setting)
        example = _example_with_setting(first_setting, metric_texts, args.preset)
        expected_form = f"{example}{first_flag[2:]}=VALUE"
        raise InputError(f"{first_flag}: for which metric? Write it as in --metric {expected_form}")
    specs = {}
    for text in metric_texts:
        spec = MetricSpec.parse(text).filled(args.preset, setting_values)
        specs[text] = spec if args.against is None else _with_side(spec, args.against)
    return specs


def _example_with_setting(
    setting: str, metric_texts: Sequence[str], usual_preset: str | None
) -> str:
    """Returns the beginning of a value of --metric, ``NAME:PRESET:``, for a metric that has the
    setting: the first one of `metric_texts`, else any.

    Args:
        setting: name of the setting; at least one metric has it.
        metric_texts: the values of --metric.
        usual_preset: the preset of --preset.
    """
    metrics_with_setting = [
        name
        for name, fields in settings_with_flags().items()
        if any(field.name == setting for field in fields)
    ]
    texts = (*metric_texts, *metrics_with_setting)
    text = next(text for text in texts if text.partition(":")[0] in metrics_with_setting)
    name, _, preset_and_options = text.partition(":")
    preset = preset_and_options.partition(":")[0] or usual_preset or ""
    return f"{name}:{preset if METRICS[name].takes_presets else ''}:"


def _with_side(spec: "MetricSpec", against: str) -> "MetricSpec":
    """Returns the metric with the side that --against names.

    The metric stays unchanged if it can compare with one side only, or if its options name a side
    already.

    Raises:
        InputError: the metric cannot compare with that side.
    """
    metric = find_metric(spec.metric)
    # Raises InputError even if the metric has a single side, which needs no option.
    side = metric.resolve_side_without_preset({"against": against}, metric.columns)
    if len(metric.sides) == 1:
        return spec
    return spec.having(**{"against": side, **dict(spec.options)})


def pool_options(args: argparse.Namespace, *, dtype: str = "float32") -> dict[str, PlainValue]:
    """Returns the keywords of `mtmetrics.models.pool.ModelPool`.

    Args:
        args: parsed arguments.
        dtype: the number format if the user omits --dtype.
    """
    running = settings_of(args, Running)
    return dataclasses.asdict(running) | {"dtype": args.dtype or dtype}


def model_pool(args: argparse.Namespace, *, dtype: str = "float32") -> "ModelPool":
    """Makes a pool that runs models with the options of the arguments, see `pool_options`.

    Prints a note with the chosen number format if the user passes ``--dtype auto``, but not if auto
    is only the default of the command."""
    from mtmetrics.models.pool import ModelPool

    pool = ModelPool(**pool_options(args, dtype=dtype))
    if args.dtype == "auto" and not messages.quiet:
        number_format = pool.number_format
        note = f"computing in {number_format.name}: {number_format.reason}"
        print(f"mtmetrics: {note}", file=sys.stderr)
    return pool
