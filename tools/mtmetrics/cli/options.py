"""Options that several commands share, so that a flag has one name and one meaning everywhere."""

import argparse
import contextlib
import dataclasses
import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mtmetrics.errors import InputError
from mtmetrics.scorers.registry import METRICS

if TYPE_CHECKING:
    from mtmetrics.evaluation.run import MetricSpec
    from mtmetrics.scorers.pool import ModelPool

USUAL_METRIC = "xmoverscore"
# Set by `main`: no bars and no notes, but warnings and errors.
quiet = False
_MOST_AHEAD = 1000
# What metrics take: keyword of their loaders -> help, and how else it is parsed. A new option is a line here.
_CHOICES: dict[str, tuple[str, dict[str, Any]]] = {
    "against": ("compare with the source or the reference, for metrics that can do both", {"metavar": "SIDE"}),
    "setting": ("the same for sentsim: src-mt or mt-ref", {}),
}
_TABLE = "another encoder, or word vectors ({lang} in the path: one table per language)"
_WEIGHTS = "xmoverscore: uniform, or a stored table of inverse document frequencies; uscore: tuned, + or ++"
_FLAG = {"action": argparse.BooleanOptionalAction, "default": None}
_OVERRIDES: dict[str, tuple[str, dict[str, Any]]] = {
    "encoder": (_TABLE, {"metavar": "MODEL|TABLE"}),
    "words": ("sentsim: another encoder of words", {"metavar": "MODEL"}),
    "layer": ("hidden state of the encoder, 0 = embeddings", {"type": int}),
    "similarity": ("mover (of words) or cosine (of sentence vectors)", {}),
    "variant": ("xmoverscore: acl20, release or uscore; sentsim: bertscore or wmd", {}),
    "combine": ("sentsim: any of sss, bertscore, wmd and smd; uscore: wrd, snt or wrd+snt", {"metavar": "PART+PART"}),
    "without": ("uscore: leave out translation, language_model or sentences", {"metavar": "NAME+NAME"}),
    "pieces": ("words (no punctuation, no continuation pieces) or all", {}),
    "ngram": ("tokens per n-gram", {"type": int}),
    "distance": ("sqeuclidean, euclidean or cosine", {}),
    "map": ("none, clp, umd, clp+umd or umd+clp", {}),
    "maps": ("a map file, a folder of maps, or a map artifact", {"metavar": "PATH|NAME"}),
    "sides": ("map the source side or both", {}),
    "lm": ("language model of the target language, or none", {"metavar": "MODEL"}),
    "lm_weight": ("weight of the language model", {"type": float}),
    "weights": (_WEIGHTS, {"metavar": "uniform|FILE|NAME"}),
    "drop_rate": ("share of flows that partial transport drops", {"type": float}),
    "w1": ("sentsim: weight of the sentence similarity, the first of two parts (default: 0.5)", {"type": float}),
    "w2": ("sentsim: weight of the word similarity, the second (default: 0.5)", {"type": float}),
    "normalize": ("batch (by the extremes of the call) or fixed (by bounds of the preset)", {}),
    "normalize_vectors": ("word vectors of length 1 for Word and Sentence Mover's Distance", _FLAG),
    "special_tokens": ("count special tokens as word pieces", {"action": "store_true", "default": None}),
    "regressor": ("another trained network: folder, bundled artifact or Hub repository", {"metavar": "MODEL"}),
    "workers": (
        "processes that solve transport, or threads that match (default: one per core, at most 4)",
        {"type": int},
    ),
}
_ONE_FILE = (
    "TSV (source, translation and reference in this order, or named by a header row), or .jsonl or .parquet (source, "
    "translation, reference; or src, mt, ref); - reads TSV from standard input"
)
# Keyword of Python -> option.
FLAGS = {name: name.replace("_", "-") for name in (*_CHOICES, *_OVERRIDES)}
FLAGS |= {name: name.replace("_", "-") for name in ("metric", "preset", "device", "dtype", "batch_tokens", "resamples")}
FLAGS |= {"lang_pair": "lp", "seed": "seed", "correction": "correction"}
# Help shows this group only for a metric that is named.
OWN_OPTIONS = "instead of what the preset says"


def add_row_options(parser: argparse.ArgumentParser, *, one_file: str = _ONE_FILE) -> None:
    """Adds the files to read (`one_file` says what a single FILE holds) and the language pair."""
    group = parser.add_argument_group("input")
    group.add_argument("file", nargs="?", metavar="FILE", help=one_file)
    group.add_argument("-s", "--sources", metavar="FILE", help="one source segment per line")
    for short, name, text in (
        ("-t", "--predictions", "one translation per line; several files are several systems"),
        ("-r", "--references", "one reference per line; of several files the best one counts"),
    ):
        group.add_argument(short, name, metavar="FILE", nargs="+", help=text)
    group.add_argument("--lp", metavar="XX-YY", help="language pair, such as de-en")


def add_output_options(
    parser: argparse.ArgumentParser,
    formats: Sequence[str],
    *,
    text: str = "output format (default: table on a terminal, else json)",
) -> Any:
    """Adds the group of output options, with `--format`, and returns it."""
    group = parser.add_argument_group("output")
    group.add_argument("--format", choices=formats, help=text)
    text = "all digits of numbers; 6 significant ones without it"
    group.add_argument("--full-precision", action="store_true", help=text)
    return group


def add_metric_options(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Adds the choice of metric and preset, and what overrides the preset.

    With `several`, `--metric` may be given several times.
    """
    group = parser.add_argument_group("metric")
    text = "metric, such as sentsim:mini or sentsim:mini:variant=wmd"
    text += "; repeatable, each is run once" if several else ""
    form = "NAME[:PRESET[:OPTION=VALUE,...]]"
    group.add_argument("--metric", action="append", metavar=form, help=f"{text} (default: {USUAL_METRIC})")
    text = "preset, or a folder with a preset.toml (default: %(default)s)"
    group.add_argument("--preset", default="paper", metavar="NAME|DIR", help=text)
    override = parser.add_argument_group(OWN_OPTIONS)
    for place, options in ((group, _CHOICES), (override, _OVERRIDES)):
        for name, (text, settings) in options.items():
            place.add_argument("--" + name.replace("_", "-"), help=text, **settings)
    add_model_options(parser)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds how models are run."""
    group = parser.add_argument_group("models")
    text = "auto, cpu, cuda, cuda:1 or 1, mps; several share the work: 0,1 (default: %(default)s)"
    group.add_argument("--device", default="auto", metavar="NAME,...", help=text)
    text = (
        "float32, bfloat16, float16, or auto: bfloat16 where the device computes it natively, else float32 (default: "
    )
    group.add_argument("--dtype", help=text + "float32; auto in filter and rerank, and with --engine ray)")
    text = "padded tokens per encoder batch (default: %(default)s)"
    group.add_argument("--batch-tokens", type=int, default=4096, help=text)
    text = "keep encoded texts in this folder, for later runs with the same encoder"
    group.add_argument("--embedding-cache", metavar="DIR", help=text)
    group.add_argument("--local-files-only", action="store_true", help="never ask the Hub")


def metric_options(args: argparse.Namespace) -> dict[str, Any]:
    """The keywords for `mtmetrics.scorers.registry.load_scorer` of the one metric that the arguments name.

    Raises:
        InputError: they name several, or as `metric_specs`.
    """
    specs = list(metric_specs(args).values())
    if len(specs) > 1:
        raise InputError(
            f"--metric {specs[1]}: this command takes one metric; score, compare and evaluate take several"
        )
    options = {"metric": specs[0].metric, "preset": specs[0].preset or args.preset, **dict(specs[0].options)}
    return options | ({"lang_pair": args.lp} if hasattr(args, "lp") else {})


def metric_specs(args: argparse.Namespace, *, usual: Sequence[str] = (USUAL_METRIC,)) -> "dict[str, MetricSpec]":
    """The metrics as the user names them, with --preset and, for a single metric, the other options.

    Args:
        args: of a command with `add_metric_options`.
        usual: what is taken where the user names none.

    Returns:
        What the user wrote for each metric -> the metric.

    Raises:
        InputError: a metric is given twice, options that could belong to several metrics, or as `MetricSpec.parse`.
    """
    from mtmetrics.evaluation.run import MetricSpec

    named = args.metric or [*usual]
    twice = [text for text in named if named.count(text) > 1]
    if twice:
        raise InputError(f"--metric {twice[0]}: given twice")
    given = {name: getattr(args, name) for name in ("setting", *_OVERRIDES)}
    options = {name: value for name, value in given.items() if value is not None}
    if len(named) != 1 and options:
        name = next(iter(options))
        flag = name.replace("_", "-")
        form = f"{USUAL_METRIC}:{args.preset}:{flag}=VALUE"
        raise InputError(f"--{flag}: for which metric? Write it as in --metric {form}")
    specs = {text: MetricSpec.parse(text).filled(args.preset, options) for text in named}
    return {text: _compared(spec, args.against) for text, spec in specs.items()}


def _compared(spec: "MetricSpec", side: str | None) -> "MetricSpec":
    """The metric, told by its own option to compare with a side; unlike the others, --against is for all metrics."""
    metric = METRICS.get(spec.metric)
    if side is None or metric is None:
        return spec
    value = metric.against(side)
    return spec if metric.option is None else spec.having(**{metric.option: value} | dict(spec.options))


def pool_options(args: argparse.Namespace, *, dtype: str = "float32") -> dict[str, Any]:
    """How models are run, for `mtmetrics.scorers.pool.ModelPool`; `dtype` is the usual number format."""
    names = ("device", "batch_tokens", "embedding_cache", "local_files_only")
    return {name: getattr(args, name) for name in names} | {"dtype": args.dtype or dtype}


def model_pool(args: argparse.Namespace, *, dtype: str = "float32") -> "ModelPool":
    """The pool of models as the arguments ask for it; `dtype` is the usual number format."""
    from mtmetrics.scorers.pool import ModelPool

    return ModelPool(**pool_options(args, dtype=dtype))


class _Meter:
    """Moves a bar by the segments that are scored and, between them, by the texts that networks have read."""

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


def bar(iterable: Any = None, **options: Any) -> Any:
    """A bar of progress on standard error, shown on a terminal only and not with --quiet."""
    from tqdm import tqdm

    return tqdm(iterable, disable=quiet or None, **options)


@contextlib.contextmanager
def scoring(total: int | None, desc: str = "scoring") -> Iterator[None]:
    """Shows how many segments are scored while the block runs, of how many if that is known, and the time left."""
    from mtmetrics.models.runner import listening

    with bar(total=total or None, desc=desc, unit=" segments") as shown:
        with listening(_Meter(shown)):
            yield
        shown.update(max((total or 0) - shown.n, 0))


def progress(iterable: Any, **options: Any) -> Any:
    """Wraps an iterable in a bar; rows of input know how many they are."""
    total = options.pop("total", None) or operator.length_hint(iterable) or None
    return bar(iterable, total=total, **options)


def add_settings(settings: Any, config: type) -> None:
    """Adds an option for each field of a dataclass of settings, which has a default, and its `help` in the metadata."""
    for field in dataclasses.fields(config):
        flag = "--" + field.name.replace("_", "-")
        text = field.metadata["help"]
        if isinstance(field.default, bool):
            settings.add_argument(flag, action=argparse.BooleanOptionalAction, default=field.default, help=text)
            continue
        kind = type(field.default)
        metavar, text = "NAME" if kind is str else "N", f"{text} (default: %(default)s)"
        settings.add_argument(flag, type=kind, default=field.default, metavar=metavar, help=text)


def add_mix_option(parser: argparse.ArgumentParser, others: str = "") -> None:
    """Adds the weights of the sum of several scores; `others` says what else than a metric may have one."""
    text = f"weight of a metric, as it was named with --metric{others}, in the sum that decides; repeatable (default: "
    text += "1 for each metric)"
    parser.add_argument("--mix", action="append", metavar="NAME=WEIGHT", help=text)


def mix_weights(args: argparse.Namespace) -> dict[str, float]:
    """The weights that --mix gives; `InputError` where one is not NAME=WEIGHT, or a name comes twice."""
    weights: dict[str, float] = {}
    for text in args.mix or []:
        name, _, value = text.rpartition("=")
        try:
            weight = float(value)
        except ValueError:
            weight = None
        if not name or weight is None or name in weights:
            raise InputError(
                f"--mix {text}: NAME=WEIGHT is needed, once for each name, such as {USUAL_METRIC}:mini=0.5"
            )
        weights[name] = weight
    return weights
