"""Options that several commands share, so that a flag has one name and one meaning everywhere."""

import argparse
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mtmetrics.errors import InputError

if TYPE_CHECKING:
    from mtmetrics.evaluation.run import MetricSpec
    from mtmetrics.scorers.pool import ModelPool

USUAL_METRIC = "xmoverscore"
# What metrics take: keyword of their loaders -> help, and how else it is parsed. A new option is a line here.
_CHOICES: dict[str, tuple[str, dict[str, Any]]] = {
    "against": ("compare with the source or the reference (bertr, distilscore, esim, bilstm_attention, bilstm)", {}),
    "setting": ("src-mt or mt-ref, compare with the source or the reference (sentsim)", {}),
}
_TABLE = "another encoder, or word vectors ({lang} in the path: one table per language)"
_WEIGHTS = "xmoverscore: uniform, or a stored table of inverse document frequencies; uscore: tuned, + or ++"
_FLAG = {"action": argparse.BooleanOptionalAction, "default": None}
_OVERRIDES: dict[str, tuple[str, dict[str, Any]]] = {
    "encoder": (_TABLE, {"metavar": "MODEL|TABLE"}),
    "layer": ("hidden state of the encoder, 0 = embeddings", {"type": int}),
    "similarity": ("mover (of words) or cosine (of sentence vectors)", {}),
    "variant": ("xmoverscore: acl20, release or uscore; sentsim: bertscore or wmd", {}),
    "parts": ("sentsim: any of sss, bertscore, wmd and smd; uscore: wrd, snt or wrd+snt", {"metavar": "PART+PART"}),
    "without": ("uscore: leave out translation, language_model or sentences", {"metavar": "NAME+NAME"}),
    "ngram": ("tokens per n-gram", {"type": int}),
    "distance": ("sqeuclidean, euclidean or cosine", {}),
    "map": ("none, clp, umd, clp+umd or umd+clp", {}),
    "maps": ("a map file, a folder of maps, or a map artifact", {"metavar": "PATH|NAME"}),
    "sides": ("map the source side or both", {}),
    "lm": ("language model of the target language, or none", {"metavar": "MODEL"}),
    "lm_weight": ("weight of the language model", {"type": float}),
    "weights": (_WEIGHTS, {"metavar": "uniform|FILE|NAME"}),
    "drop_rate": ("share of flows that partial transport drops", {"type": float}),
    "normalize": ("batch (by the extremes of the call) or fixed (by bounds of the preset)", {}),
    "normalize_vectors": ("word vectors of length 1 for Word and Sentence Mover's Distance", _FLAG),
    "special_tokens": ("count special tokens as word pieces", {"action": "store_true", "default": None}),
    "regressor": ("another trained network: folder, bundled artifact or Hub repository", {"metavar": "MODEL"}),
    "threads": ("solver threads (default: all cores)", {"type": int}),
}
# --parts already says that the parts are to be printed.
_RENAMED = {"parts": "combine"}
_ONE_FILE = "TSV without a header, .jsonl or .parquet; - reads TSV from standard input"


def add_row_options(parser: argparse.ArgumentParser, *, one_file: str = _ONE_FILE) -> None:
    """Adds the files to read (`one_file` says what a single FILE holds) and the language pair."""
    parser.add_argument("file", nargs="?", metavar="FILE", help=one_file)
    parser.add_argument("-s", "--sources", metavar="FILE", help="one source segment per line")
    for short, name, text in (
        ("-t", "--predictions", "one translation per line; several files are several systems"),
        ("-r", "--references", "one reference per line; of several files the best one counts"),
    ):
        parser.add_argument(short, name, metavar="FILE", nargs="+", help=text)
    parser.add_argument("--lp", metavar="XX-YY", help="language pair, such as de-en")


def add_metric_options(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Adds the choice of metric and preset, and what overrides the preset.

    With `several`, `--metric` is taken several times, with preset and options in its value.
    """
    group = parser.add_argument_group("metric")
    if several:
        text = "metric, such as sentsim:mini:setting=mt-ref,variant=wmd; repeatable, each is run once "
        text += "(default: xmoverscore)"
        group.add_argument("--metric", action="append", metavar="NAME[:PRESET[:OPTION=VALUE,...]]", help=text)
    else:
        group.add_argument("--metric", default=USUAL_METRIC, help="metric (default: %(default)s)")
    text = "preset, or a folder with a preset.toml (default: %(default)s)"
    group.add_argument("--preset", default="paper", metavar="NAME|DIR", help=text)
    override = parser.add_argument_group("instead of what the preset says; each metric has some of these")
    for place, options in ((group, _CHOICES), (override, _OVERRIDES)):
        for name, (text, settings) in options.items():
            place.add_argument("--" + _RENAMED.get(name, name).replace("_", "-"), help=text, **settings)
    add_model_options(parser)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Adds how models are run."""
    group = parser.add_argument_group("models")
    text = "auto, cpu, cuda, cuda:1 or 1, mps; several share the work: 0,1 (default: %(default)s)"
    group.add_argument("--device", default="auto", metavar="NAME,...", help=text)
    text = (
        "float32, bfloat16, float16, or auto: bfloat16 where the device computes it natively, else float32 (default: "
    )
    group.add_argument("--dtype", help=text + "float32; auto with --engine ray)")
    text = "padded tokens per encoder batch (default: %(default)s)"
    group.add_argument("--batch-tokens", type=int, default=4096, help=text)
    text = "keep encoded texts in this folder, for later runs with the same encoder"
    group.add_argument("--embedding-cache", metavar="DIR", help=text)
    group.add_argument("--local-files-only", action="store_true", help="never ask the Hub")


def metric_options(args: argparse.Namespace) -> dict[str, Any]:
    """The keywords for `mtmetrics.scorers.registry.load_scorer`, None where the arguments leave the choice to the
    preset."""
    options = {"metric": args.metric, "preset": args.preset}
    options |= {name: getattr(args, _RENAMED.get(name, name)) for name in (*_CHOICES, *_OVERRIDES)}
    return options | ({"lang_pair": args.lp} if hasattr(args, "lp") else {})


def metric_specs(args: argparse.Namespace, *, usual: Sequence[str] = (USUAL_METRIC,)) -> "dict[str, MetricSpec]":
    """The metrics as the user names them, with --preset and, for a single metric, the other options.

    Args:
        args: of a command with ``add_metric_options(..., several=True)``.
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
    own = ("metric", "preset", "lang_pair")
    options = {name: value for name, value in metric_options(args).items() if value is not None and name not in own}
    if len(named) != 1 and options:
        name = next(iter(options))
        raise InputError(
            f"option {name}: for which metric? Write it as in --metric {USUAL_METRIC}:{args.preset}:{name}=VALUE"
        )
    return {text: MetricSpec.parse(text).filled(args.preset, options) for text in named}


def pool_options(args: argparse.Namespace, *, dtype: str = "float32") -> dict[str, Any]:
    """How models are run, for `mtmetrics.scorers.pool.ModelPool`; `dtype` is the usual number format."""
    names = ("device", "batch_tokens", "embedding_cache", "local_files_only")
    return {name: getattr(args, name) for name in names} | {"dtype": args.dtype or dtype}


def model_pool(args: argparse.Namespace, *, dtype: str = "float32") -> "ModelPool":
    """The pool of models as the arguments ask for it; `dtype` is the usual number format."""
    from mtmetrics.scorers.pool import ModelPool

    return ModelPool(**pool_options(args, dtype=dtype))


def progress(iterable: Any, **options: Any) -> Any:
    """Wraps an iterable in a progress bar on standard error, shown on a terminal only."""
    from tqdm import tqdm

    return tqdm(iterable, disable=None, leave=False, **options)


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
