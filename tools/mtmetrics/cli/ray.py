"""The options of ``--engine ray``, and ``mtmetrics score`` on it."""

import argparse
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mtmetrics.cli.messages import progress
from mtmetrics.cli.options import metric_options, pool_options
from mtmetrics.cli.output import print_json, rounded
from mtmetrics.cluster.block_folder import BlockFolder
from mtmetrics.cluster.engine import BLOCK_ROWS, Engine, column_names, map_blocks
from mtmetrics.cluster.row_files import absolute
from mtmetrics.errors import InputError
from mtmetrics.io.columns import column_names as field_names
from mtmetrics.scorers.registry import find_metric
from mtmetrics.scorers.side import FIELDS

_NO_PATHS = {"metric", "device", "dtype"}  # though there may be a folder of that name


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Adds the choice of a cluster, and how work is divided on it."""
    group = parser.add_argument_group(
        "engine", "With --engine ray, FILE is a .parquet or .jsonl file, or a folder of them, "
                  "or a URI such as s3://... of one, and --out a folder to be filled with "
                  "Parquet: all columns, and what was computed. Repeat an interrupted call to "
                  "finish it. Needs the extra [ray].",
    )  # fmt: skip
    text = (
        "work on a Ray cluster: of this machine alone, or the one at ADDRESS (HOST:PORT, or auto)"
    )
    group.add_argument("--engine", metavar="ray[=ADDRESS]", help=text)
    text = (
        "CPUs of a worker (default: %(default)s); where there are GPUs, each worker takes one "
        "of them too"
    )
    group.add_argument("--cpus-per-worker", type=int, default=1, metavar="N", help=text)
    text = (
        "rows that are computed, written and after a fault repeated together (default: %(default)s)"
    )
    group.add_argument("--block-rows", type=int, default=BLOCK_ROWS, metavar="N", help=text)
    text = (
        "stop at the first bad row, or keep bad rows in OUT/errors and go on (default: %(default)s)"
    )
    group.add_argument("--on-error", choices=("stop", "keep"), default="stop", help=text)


def chosen_engine(args: argparse.Namespace) -> Engine:
    """The engine as the arguments ask for it, for one FILE and a folder; `InputError` where they
    ask for anything else too."""
    if args.file is None or args.sources or args.predictions or args.references:
        raise InputError(
            "--engine ray reads one FILE or folder of rows (.parquet, .jsonl); not -s, -t and -r"
        )
    if args.out is None or args.format not in (None, "parquet"):
        raise InputError(
            "--engine ray writes a folder of Parquet: pass --out FOLDER, and no other --format"
        )
    if args.device not in (None, "auto", "cpu"):
        raise InputError(
            f"--device {args.device}: --engine ray gives each worker its device; pass auto or cpu"
        )
    return Engine.parse(
        args.engine, cpus_per_worker=args.cpus_per_worker, gpus=args.device in (None, "auto")
    )


def score(args: argparse.Namespace) -> int:
    """Scores on the cluster, and prints the summary as JSON."""
    engine = chosen_engine(args)
    if args.segments or len(args.metric or ()) > 1:
        raise InputError("--engine ray scores with one --metric, and prints no --segments")
    asked_for = metric_options(args)
    names = column_names(args.file)
    fields = field_names(args.file, names)
    given = [column for column, field in FIELDS.items() if field in fields]
    side = find_metric(asked_for["metric"]).side_of_preset(
        asked_for.get("preset"), asked_for, given
    )
    options, pool = asked_for | {"against": side}, pool_options(args, dtype="auto")
    options["degenerate"] = args.degenerate
    settings = options | {"dtype": pool["dtype"]}
    settings = {
        name: value for name, value in settings.items() if value is not None and name != "workers"
    }
    columns = text_columns(args.file, names, [*side.fields, "translation"])
    from mtmetrics.cluster.scoring import SCORE, total

    anywhere = map(absolute_paths, (options, pool))
    plugins = [os.path.abspath(path) for path in args.plugin or ()]
    make_worker = functools.partial(_worker, plugins, columns, *anywhere, engine.cpus_per_worker)
    done = run_blocks(args, engine, make_worker, out=args.out, texts=columns, settings=settings)
    summary, report = total(done)
    if args.ci:
        from mtmetrics.statistics.significance import bootstrap_interval

        scores = BlockFolder(args.out).column(SCORE)
        interval = bootstrap_interval(scores[scores == scores])  # without those that are left out
        summary["ci"] = interval and interval._asdict()
    bad = sum(block["bad"] for block in done)
    print_json(rounded(summary | {"bad": bad}, full=args.full_precision))
    report.warn()
    return 0


def text_columns(path: str, names: Sequence[str], fields: Sequence[str]) -> tuple[str, ...]:
    """The columns that hold some fields, under whichever of the known names; a field that is not
    there keeps its own name, under which the engine will miss it."""
    known = field_names(path, names)
    return tuple(known.get(field, field) for field in fields)


def run_blocks(
    args: argparse.Namespace, engine: Engine, make_worker: Callable[[], Any], **given: Any
) -> list[Any]:
    """The summaries of all blocks of FILE; `given` is what else `map_blocks` takes."""
    how = {"engine": engine, "block_rows": args.block_rows, "keep_errors": args.on_error == "keep"}
    return list(
        progress(map_blocks(make_worker, args.file, **how, **given), unit=" blocks", desc="scoring")
    )


def _worker(plugins: list[str], *arguments: Any) -> Any:
    from mtmetrics.cluster.scoring import ScoringWorker
    from mtmetrics.scorers.plugins import load_plugin

    for path in plugins:
        load_plugin(path)
    *given, workers = arguments
    return ScoringWorker(*given, workers=workers)


def absolute_paths(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options with paths that hold in the working folder of another process, too."""
    paths = {
        name: value
        for name, value in options.items()
        if isinstance(value, str) and name not in _NO_PATHS and os.path.exists(value)
    }
    return {**options, **{name: absolute(value) for name, value in paths.items()}}
