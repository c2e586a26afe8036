"""``mtmetrics data``: what judged data there is, getting it, and scoring a test set of
mt-metrics-eval."""

import argparse
from pathlib import Path

from mtmetrics.checks import choice, names_of_pair, warn
from mtmetrics.cli import messages, options
from mtmetrics.cli.output import Document, print_json, print_report
from mtmetrics.errors import InputError
from mtmetrics.judgements.eval_set import SOURCES_ONLY, EvalSet, lang_pairs
from mtmetrics.judgements.public_sets import SUMS, datasets
from mtmetrics.reports.styles import Grid, Report
from mtmetrics.scorers.registry import find_metric
from mtmetrics.scorers.side import Side
from mtmetrics.scorers.spec import MetricSpec


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Human judgements: what public sets there are, fetching them, and scores for "
        "mt-metrics-eval."
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_list(actions)
    _add_pull(actions)
    _add_score(actions)


def _add_list(actions: options.Subparsers) -> None:
    parser = actions.add_parser(
        "list", help="list public sets", description="Lists the public sets that can be pulled."
    )
    options.add_format(parser)
    parser.set_defaults(run=run_list)


def _add_pull(actions: options.Subparsers) -> None:
    parser = actions.add_parser(
        "pull",
        help="fetch public sets",
        description=(
            "Fetches public sets from where their authors put them, and prints as JSON where "
            "they lie, what was fetched and what was there already; 'mtmetrics evaluate "
            "--data FOLDER' reads them. Checksums are compared where they are known, and "
            "recorded in SHA256SUMS beside the files where they are not."
        ),
    )
    parser.add_argument("names", metavar="NAME", nargs="+", help="sets")
    parser.add_argument("--out", metavar="DIR", help="write to DIR/NAME/ instead of the cache")
    parser.set_defaults(run=run_pull)


def _add_score(actions: options.Subparsers) -> None:
    parser = actions.add_parser(
        "score",
        help="score all systems of a test set of mt-metrics-eval",
        description=(
            "Scores all systems of a test set in the folder layout of mt-metrics-eval and "
            "adds the scores to its metric-scores, so that mt-metrics-eval compares the "
            "metric with others; the score of a system is the mean over its segments. Prints "
            "as JSON what was written."
        ),
    )
    parser.add_argument(
        "folder", metavar="DIR", help="the test set, such as mt-metrics-eval-v2/wmt22"
    )
    parser.add_argument(
        "--name", metavar="NAME", required=True, help="what mt-metrics-eval shall call the metric"
    )
    parser.add_argument(
        "--lp",
        metavar="XX-YY",
        dest="pairs",
        **options.REPEATABLE_LIST,
        help="only these language pairs (default: all)",
    )
    parser.add_argument(
        "--reference",
        metavar="NAME",
        help="the reference to compare with (default: refA or ref, else the first)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace scores of the same name")
    parser.set_defaults(run=run_score)

    options.add_metric_options(parser)


def run_list(args: argparse.Namespace) -> None:
    rows = []
    for dataset in datasets().values():
        files = dataset.files.values()
        row = {
            "name": dataset.name,
            "files": len(files),
            "with_checksum": sum(file.is_pinned for file in files),
            "licence": dataset.licence,
            "what": dataset.what,
            "urls": [file.url for file in files],
        }
        rows.append(row)
    columns = [name for name in rows[0] if name != "urls"]
    table = [[name.upper().replace("_", " ") for name in columns]]
    table += [[str(row[name]) for name in columns] for row in rows]
    print_report(Report({"data": rows}, [Grid(table, (1, 2))]), args)


def run_pull(args: argparse.Namespace) -> None:
    # Checks all names before the first set is fetched, which may take an hour.
    for name in args.names:
        choice("data", name, list(datasets()))
    print_json({name: pulled(name, args.out) for name in args.names})


def pulled(name: str, out: str | None = None) -> Document:
    """Fetches what is missing of a public set.

    Args:
        name: of the set.
        out: fill the folder OUT/NAME instead of the cache.

    Returns:
        The folder, and the files that were fetched and present.
    """
    dataset = datasets()[name]
    folder = Path(out) / name if out else dataset.cache
    with messages.progress(None, desc=name, unit="B", unit_scale=True) as bar:
        pulled_files = dataset.pull(folder, on_bytes=bar.update)
    if pulled_files.recorded:
        warn(
            f"{name}: no checksum was known for {', '.join(pulled_files.recorded)}; that of what "
            f"came is recorded in {folder / SUMS}"
        )
    return {
        "folder": str(folder),
        "fetched": pulled_files.fetched,
        "present": pulled_files.present,
    }


def run_score(args: argparse.Namespace) -> None:
    """Scores the language pairs one by one with shared models, and prints what was written."""
    # All texts are read, and the files to write are checked, before the first pair is scored, so
    # that a mistake does not cost an hour. Models are loaded later, for one pair at a time.
    available_pairs = lang_pairs(args.folder)
    wanted_pairs = []
    for pair in args.pairs:
        wanted_pairs += names_of_pair(pair, available_pairs) or [pair]
    spec = options.single_metric(args)
    jobs = []
    for pair in dict.fromkeys(wanted_pairs or available_pairs):
        eval_set = EvalSet.read(args.folder, pair)
        jobs.append((eval_set, *_reference_and_side(args.reference, spec, eval_set)))
    for eval_set, reference, _ in jobs:
        eval_set.metric_files(args.name, reference, overwrite=args.overwrite)
    pool = options.model_pool(args)
    documents = []
    for eval_set, reference, side in messages.progress(jobs, desc="scoring", unit=" pairs"):
        scorer = spec.having(against=side).load(pool, eval_set.lang_pair)
        results = scorer.score_systems(
            eval_set.scored_systems(reference),
            sources=eval_set.sources,
            references=eval_set.references.get(reference, []),
        )
        scores = {system: result.segments.tolist() for system, result in results.items()}
        files = eval_set.write_metric_scores(args.name, reference, scores, overwrite=args.overwrite)
        document = {
            "lang_pair": eval_set.lang_pair,
            "files": [str(path) for path in files.values()],
            "signature": scorer.signature,
            "systems": {system: result.system for system, result in results.items()},
        }
        documents.append(document)
    print_json(documents)


def _reference_and_side(
    reference_name: str | None, spec: MetricSpec, eval_set: EvalSet
) -> tuple[str, Side]:
    """Returns what the metric compares with: mt-metrics-eval's name for it, and the side.

    Args:
        reference_name: the reference that the user names.
        spec: the metric.
        eval_set: the test set.

    Raises:
        InputError: the user names a reference, but the metric compares with the sources.
    """
    metric = find_metric(spec.metric)
    reference = eval_set.reference(reference_name)
    columns = ["sources", *([] if reference is None else ["references"])]
    side = metric.resolve_side(spec.preset, dict(spec.options), columns)
    if side != "source":
        return str(reference), side
    if reference_name is not None:
        raise InputError(
            f"--reference {reference_name}: {metric.name} compares with the sources here"
        )
    return SOURCES_ONLY, side
