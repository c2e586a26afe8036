"""``mtmetrics data``: what judged data there is, getting it, and scoring a test set of mt-metrics-eval."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtmetrics.cli.io import print_table
from mtmetrics.cli.options import add_metric_options, metric_options, model_pool, progress
from mtmetrics.errors import InputError
from mtmetrics.inputs import choice, warn

if TYPE_CHECKING:
    from mtmetrics.evaluation.wmt_folder import EvalSet


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "data",
        help="list and fetch judged data, or score a test set of mt-metrics-eval",
        description="Human judgements: what public sets there are, fetching them, and scores for mt-metrics-eval.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    shown = actions.add_parser("list", help="list public sets", description="Lists the public sets that can be pulled.")
    text = "output format (default: %(default)s)"
    shown.add_argument("--format", choices=("table", "json"), default="table", help=text)
    shown.set_defaults(run=run_list)
    pulled = actions.add_parser(
        "pull",
        help="fetch public sets",
        description="Fetches public sets from where their authors put them, and prints as JSON where they lie, what "
        "was fetched and what was there already; 'mtmetrics evaluate --data FOLDER' reads them. Checksums are compared "
        "where they are known, and recorded in SHA256SUMS beside the files where they are not.",
    )
    pulled.add_argument("names", nargs="+", metavar="NAME", help="sets")
    pulled.add_argument("--out", metavar="DIR", help="write to DIR/NAME/ instead of the cache")
    pulled.set_defaults(run=run_pull)
    scored = actions.add_parser(
        "score",
        help="score all systems of a test set of mt-metrics-eval",
        description="Scores all systems of a test set in the folder layout of mt-metrics-eval and adds the scores to "
        "its metric-scores, so that mt-metrics-eval compares the metric with others; the score of a system is the mean "
        "over its segments. Prints as JSON what was written.",
    )
    scored.add_argument("folder", metavar="DIR", help="the test set, such as mt-metrics-eval-v2/wmt22")
    scored.add_argument("--name", required=True, help="what mt-metrics-eval shall call the metric")
    text = "only these language pairs (default: all)"
    scored.add_argument("--lp", dest="pairs", nargs="+", metavar="XX-YY", help=text)
    text = "the reference to compare with (default: refA or ref, else the first)"
    scored.add_argument("--reference", metavar="NAME", help=text)
    scored.add_argument("--overwrite", action="store_true", help="replace scores of the same name")
    add_metric_options(scored)
    scored.set_defaults(run=run_score)


def run_list(args: argparse.Namespace) -> int:
    """Prints the registry."""
    from mtmetrics.evaluation.datasets import datasets

    rows = [
        {
            "name": dataset.name,
            "files": len(dataset.files),
            "with_checksum": sum(file.sha256 is not None for file in dataset.files.values()),
            "licence": dataset.licence,
            "what": dataset.what,
            "urls": [file.url for file in dataset.files.values()],
        }
        for dataset in datasets().values()
    ]
    if args.format == "json":
        print(json.dumps({"data": rows}, indent=1, ensure_ascii=False))
        return 0
    columns = ("name", "files", "with_checksum", "licence", "what")
    head = [name.upper().replace("_", " ") for name in columns]
    print_table([head, *([str(row[name]) for name in columns] for row in rows)])
    return 0


def run_pull(args: argparse.Namespace) -> int:
    """Fetches sets and prints what was done."""
    from mtmetrics.evaluation.datasets import SUMS, datasets

    known = datasets()
    sets = [known[choice("data", name, list(known))] for name in args.names]
    done = {}
    for dataset in sets:
        folder = Path(args.out) / dataset.name if args.out else dataset.cache
        with progress(None, desc=dataset.name, unit="B", unit_scale=True) as bar:
            pulled = dataset.pull(folder, on_bytes=bar.update)
        if pulled.recorded:
            known_none = f"{dataset.name}: no checksum was known for {', '.join(pulled.recorded)}"
            warn(f"{known_none}; that of what came is recorded in {folder / SUMS}")
        done[dataset.name] = {"folder": str(folder), "fetched": pulled.fetched, "present": pulled.present}
    print(json.dumps(done, indent=1))
    return 0


def run_score(args: argparse.Namespace) -> int:
    """Scores the language pairs one by one with shared models, and prints what was written."""
    from mtmetrics.evaluation.wmt_folder import EvalSet, lang_pairs
    from mtmetrics.scorers.registry import load_scorer

    # Everything is read and checked before the first pair is scored, so that a mistake does not cost an hour.
    sets = [EvalSet.read(args.folder, pair) for pair in args.pairs or lang_pairs(args.folder)]
    jobs = [(eval_set, *_compared(args, eval_set)) for eval_set in sets]
    for eval_set, references, _ in jobs:
        eval_set.metric_files(args.name, references, overwrite=args.overwrite)
    options = metric_options(args)
    metric = options.pop("metric")
    pool = model_pool(args)
    done = []
    for eval_set, references, compared in progress(jobs, desc="scoring", unit=" pairs"):
        scorer = load_scorer(metric, pool=pool, **options | compared | {"lang_pair": eval_set.lang_pair})
        others = eval_set.sources if scorer.compares == "sources" else eval_set.references[references]
        results = scorer.score_systems(others, eval_set.scored_systems(references))
        scores = {system: result.segments.tolist() for system, result in results.items()}
        files = eval_set.write_metric_scores(args.name, references, scores, overwrite=args.overwrite)
        row = {"lang_pair": eval_set.lang_pair, "files": [str(path) for path in files.values()]}
        systems = {system: result.system for system, result in results.items()}
        done.append(row | {"signature": scorer.signature, "systems": systems})
    print(json.dumps(done, indent=1, ensure_ascii=False))
    return 0


def _compared(args: argparse.Namespace, eval_set: "EvalSet") -> tuple[str, dict[str, Any]]:
    """What mt-metrics-eval calls the side that the metric compares with, and the option that says so to its loader."""
    from mtmetrics.evaluation.wmt_folder import SOURCES_ONLY
    from mtmetrics.scorers.registry import find_metric

    comparison = find_metric(metric_options(args)["metric"])
    reference = eval_set.reference(args.reference)
    given = ["sources", *([] if reference is None else ["references"])]
    column, options = comparison.choose(given, metric_options(args).get(comparison.option or ""))
    if column == "references":
        return str(reference), options
    if args.reference is not None:
        raise InputError(f"--reference {args.reference}: {comparison.name} compares with the sources here")
    return SOURCES_ONLY, options
