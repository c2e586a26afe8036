"""The options of ``--engine ray``, and ``mtmetrics score`` on it."""

import argparse
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from mtmetrics.artifacts.presets import preset_names
from mtmetrics.cli.messages import progress
from mtmetrics.cli.options import pool_options, single_metric
from mtmetrics.cli.output import print_json, rounded
from mtmetrics.cluster.block_folder import BlockFolder
from mtmetrics.cluster.engine import BLOCK_ROWS, Engine, column_names, map_blocks
from mtmetrics.cluster.row_files import absolute
from mtmetrics.errors import InputError
from mtmetrics.io.columns import column_names as field_names
from mtmetrics.scorers.registry import find_metric
from mtmetrics.scorers.side import FIELD_OF_COLUMN

if TYPE_CHECKING:
    from mtmetrics.cluster.block_folder import Summary
    from mtmetrics.cluster.engine import Worker
    from mtmetrics.scorers.spec import MetricSpec

T = TypeVar("T")
# Options that name no path, though the working folder may hold a file or folder of that name, such
# as de-en or source.
_NO_PATHS = {
    "metric",
    "lang_pair",
    "against",
    "degenerate",
    "device",
    "dtype",
    "map",
    "sides",
    "pieces",
    "similarity",
    "variant",
    "distance",
    "setting",
    "combine",
    "without",
    "normalize",
    "key",
}


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Adds the choice of a cluster, and how work is divided on it."""
    group = parser.add_argument_group(
        "engine", "With --engine ray, FILE is a .parquet or .jsonl file, or a folder of them, "
                  "or a URI such as s3://... of one, and --out a folder to be filled with "
                  "Parquet: all columns, and what was computed. Repeat an interrupted call to "
                  "finish it. Needs the extra [ray].",
    )  # fmt: skip
    group.add_argument(
        "--engine",
        metavar="ray[=ADDRESS]",
        help="work on a Ray cluster: of this machine alone, or the one at ADDRESS (HOST:PORT, or "
        "auto)",
    )
    group.add_argument(
        "--cpus-per-worker",
        type=int,
        default=1,
        metavar="N",
        help="CPUs of a worker (default: %(default)s); where there are GPUs, each worker takes one "
        "of them too",
    )
    group.add_argument(
        "--block-rows",
        type=int,
        default=BLOCK_ROWS,
        metavar="N",
        help="rows that are computed, written and after a fault repeated together (default: "
        "%(default)s)",
    )
    group.add_argument(
        "--on-error",
        choices=("stop", "keep"),
        default="stop",
        help="stop at the first bad row; or keep going without bad rows, and list them in OUT/errors "
        "(filter: OUT/_scored/errors) (default: %(default)s)",
    )


def chosen_engine(args: argparse.Namespace) -> Engine:
    """Returns the cluster that --engine names, for commands that map FILE to a folder.

    Raises:
        InputError: the input is not one FILE, the output is no folder, or `parse_engine` raises it.
    """
    if args.file is None or args.sources or args.predictions or args.references:
        raise InputError(
            "--engine ray reads one FILE or folder of rows (.parquet, .jsonl); not -s, -t and -r"
        )
    if args.out is None or args.format not in (None, "parquet"):
        raise InputError(
            "--engine ray writes a folder of Parquet: pass --out FOLDER, and no other --format"
        )
    return parse_engine(args)


def parse_engine(args: argparse.Namespace) -> Engine:
    """Returns the cluster that --engine names. Its workers use GPUs, unless --device is cpu.

    Raises:
        InputError: the cluster cannot be read, or a device is named that a worker may not have.
    """
    if args.device not in (None, "auto", "cpu"):
        raise InputError(
            f"--device {args.device}: --engine ray gives each worker its device; pass auto or cpu"
        )
    return Engine.parse(
        args.engine, cpus_per_worker=args.cpus_per_worker, gpus=args.device in (None, "auto")
    )


def score(args: argparse.Namespace) -> None:
    """Scores on the cluster, and prints the summary as JSON."""
    engine = chosen_engine(args)
    if args.segments or len(args.metric or ()) > 1:
        raise InputError("--engine ray scores with one --metric, and prints no --segments")
    spec = single_metric(args)
    names = column_names(args.file)
    fields = field_names(args.file, names)
    available_columns = [column for column, field in FIELD_OF_COLUMN.items() if field in fields]
    side = find_metric(spec.metric).resolve_side(spec.preset, dict(spec.options), available_columns)
    loader = {
        "metric": spec.metric,
        "preset": absolute_preset(spec, args.lp),
        "lang_pair": args.lp,
        **dict(spec.options),
        "against": side,
        "degenerate": args.degenerate,
    }
    pool = pool_options(args, dtype="auto")
    # All that the scores depend on: another call with the same folder has to agree. The number of
    # threads, the option workers, is no part of it.
    settings = {**loader, "dtype": pool["dtype"]}
    settings = {
        name: value for name, value in settings.items() if value is not None and name != "workers"
    }
    columns = text_columns(args.file, names, [*side.fields, "translation"])
    from mtmetrics.cluster.scoring import SCORE, ScoringWorker, total

    make_worker = functools.partial(
        ScoringWorker,
        columns,
        absolute_paths(loader),
        absolute_paths(pool),
        workers=engine.cpus_per_worker,
    )
    blocks = run_blocks(args, engine, make_worker, out=args.out, texts=columns, settings=settings)
    summary, report = total(blocks)
    if args.ci:
        from mtmetrics.statistics.significance import bootstrap_interval

        scores = BlockFolder(args.out).column(SCORE)
        interval = bootstrap_interval(scores[scores == scores])  # without those that are left out
        summary["ci"] = interval and interval._asdict()
    summary["bad"] = sum(block["bad"] for block in blocks)
    print_json(rounded(summary, full_precision=args.full_precision))
    report.warn()


def text_columns(path: str, names: Sequence[str], fields: Sequence[str]) -> tuple[str, ...]:
    """Returns the columns that hold some fields.

    Args:
        path: the file, for messages.
        names: of its columns.
        fields: such as ``source``; one that the file lacks keeps its name, under which the engine
            will miss it.
    """
    column_of_field = field_names(path, names)
    return tuple(column_of_field.get(field, field) for field in fields)


def run_blocks(
    args: argparse.Namespace,
    engine: Engine,
    make_worker: "Callable[[], Worker]",
    *,
    out: str,
    texts: Sequence[str],
    settings: Mapping[str, object],
) -> list["Summary"]:
    """Maps workers over FILE, and shows a bar; see `mtmetrics.cluster.engine.map_blocks`.

    Args:
        args: parsed arguments.
        engine: the cluster.
        make_worker: makes a worker in its process, once the plug-ins of --plugin are loaded there.
        out: the folder to fill.
        texts: columns that must hold texts.
        settings: what the output depends on.

    Returns:
        The summary of each block.
    """
    plugins = [os.path.abspath(path) for path in args.plugin or ()]
    blocks = map_blocks(
        functools.partial(_make_worker, plugins, make_worker),
        args.file,
        engine=engine,
        block_rows=args.block_rows,
        keep_errors=args.on_error == "keep",
        out=out,
        texts=texts,
        settings=settings,
    )
    return list(progress(blocks, unit=" blocks", desc="scoring"))


def _make_worker(plugins: list[str], make_worker: "Callable[[], Worker]") -> "Worker":
    """Makes a worker in its process, which does not know the plug-ins yet."""
    from mtmetrics.scorers.plugins import load_plugin

    for path in plugins:
        load_plugin(path)
    return make_worker()


def absolute_preset(spec: "MetricSpec", lang_pair: str | None) -> str | None:
    """Returns the preset of a metric for a language pair, under a name that holds in the working
    folder of another process. A preset of this package comes before a folder of the same name, as in
    `load_preset`."""
    preset = spec.preset_of(lang_pair)
    if preset is None or preset in preset_names(spec.metric) or not os.path.exists(preset):
        return preset
    return absolute(preset)


def absolute_paths(options: Mapping[str, T]) -> dict[str, T]:
    """Returns options with paths that hold in the working folder of another process.

    A text is a path if there is a file or folder of that name, unless the option is in `_NO_PATHS`.
    """
    absolute_options = dict(options)
    for name, value in options.items():
        if isinstance(value, str) and name not in _NO_PATHS and os.path.exists(value):
            absolute_options[name] = absolute(value)
    return absolute_options
