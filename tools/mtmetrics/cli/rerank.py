"""``mtmetrics rerank``: takes the best of several translations of each source."""

import argparse
import itertools
import math
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mtmetrics.checks import positive
from mtmetrics.cli import messages, options
from mtmetrics.cli.output import check_target, opened, write_report
from mtmetrics.errors import InputError
from mtmetrics.io.lines import iter_lines, iter_parallel, json_line
from mtmetrics.io.nbest import read_candidates
from mtmetrics.io.tables import is_json, jsonl_rows

if TYPE_CHECKING:
    from mtmetrics.choosing.reranking import NBest

# Name of the translation model's score where the input gives it none.
_MODEL = "model"


_Rows = Iterator[
    tuple[dict[str, Any], "NBest"]
]  # what the output keeps of the input, and candidates


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Chooses among the candidate translations of each source: by a metric, by a weighted "
        "sum of metrics and of the translation model's own scores, or by expected utility "
        "(--mbr). A blank candidate is chosen only where all are blank; of equal scores the "
        "first candidate wins. Writes a row per source with translation, index (from 0), score, "
        "and the scores of all candidates (null for blank ones)."
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help=(
            "JSON Lines with candidates (a list), and where there are any source, references (a "
            "list), scores (a list, called model, or an object of lists; higher is better); - "
            "reads it from standard input"
        ),
    )
    options.add_sources(parser)
    parser.add_argument(
        "-t",
        "--predictions",
        metavar="FILE",
        nargs="+",
        action="extend",
        default=[],
        help=(
            "instead of FILE: --nbest lines per source, or lines as Moses and Marian write them "
            "(NUMBER ||| TEXT ||| FEATURES ||| SCORE); of several files each gives candidates of "
            "the same sources"
        ),
    )
    parser.add_argument(
        "--nbest",
        metavar="N",
        type=int,
        help="lines per source in each file of -t (default: 1 where there are several files)",
    )
    options.add_lang_pair(parser)
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="write there instead of to standard output; appears when all is done",
    )
    parser.add_argument(
        "--format",
        choices=("jsonl", "text"),
        help=(
            "jsonl, or text: the chosen translations alone (default: jsonl, or text where --out "
            "does not end in .jsonl)"
        ),
    )
    parser.add_argument(
        "--report", metavar="FILE", help="write counts, weights and signatures there as JSON"
    )
    parser.add_argument(
        "--mbr",
        action="store_true",
        help=(
            "minimum Bayes risk: the candidate that is on average most like all candidates, by "
            "metrics that compare with references (--metric; default: chrf)"
        ),
    )
    options.add_metric_options(parser, is_repeatable=True)
    options.add_mix_option(parser, ", or of a model score (default: 0)")
    parser.add_argument(
        "--tune",
        metavar="FILE",
        help=(
            "choose the weights on this development set first: JSON Lines as FILE, with human "
            "(judgements of all candidates) or references"
        ),
    )
    parser.add_argument(
        "--objective",
        metavar="NAME[:PRESET[:OPTION=VALUE,...]]",
        default="chrf",
        help=(
            "metric that tuning makes high where the set has references but no judgements "
            "(default: %(default)s)"
        ),
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    specs = options.metric_specs(args, usual=["chrf"] if args.mbr else ["xmoverscore"])
    weights = options.mix_weights(args)
    if args.tune and weights:
        raise InputError("--tune and --mix: the weights are either given or chosen; leave one out")
    check_target(args.out, "--out")
    check_target(args.report, "--report")
    rows = _rows(args)
    first = next(rows, None)
    if first is None:
        raise InputError(
            f"{args.file or args.predictions[0]}: empty; there is nothing to choose from"
        )
    development = [item for _, item in _jsonl(args.tune)] if args.tune else []
    from mtmetrics.choosing.mixture import load_scorers
    from mtmetrics.choosing.reranking import Reranker

    columns = {"sources": first[1].source, "references": first[1].references}
    columns_given = [name for name, value in columns.items() if value is not None]
    pool = options.model_pool(args, dtype="auto")
    scorers = load_scorers(specs, columns_given, pool, args.lp, args.mbr)
    reranker = Reranker(scorers, weights, mbr=args.mbr, model_scores=first[1].scores)
    report: dict[str, Any] = {}
    if args.tune:
        from mtmetrics.reports.metric_runs import MetricSpec

        judged = all(item.human is not None for item in development)
        spec = MetricSpec.parse(args.objective).filled(args.preset, {})
        objective = None if judged else spec.load_for(["references"], pool, args.lp)
        reranker.tune(development, objective)
        by = "human" if objective is None else objective.signature
        report["tuned_on"] = {"file": args.tune, "lists": len(development), "objective": by}
    rows = itertools.chain([first], messages.progress(rows, unit=" lists", desc="choosing"))
    of_name = args.out is not None and not args.out.removesuffix(".gz").endswith(".jsonl")
    plain = args.format == "text" or (args.format is None and of_name)
    with opened(args.out) as stream:
        kept, lists = itertools.tee(rows)
        for (row, _), choice in zip(kept, reranker.choose(item for _, item in lists), strict=True):
            score, *scores = (
                None if math.isnan(score) else score for score in (choice.score, *choice.scores)
            )
            row |= {
                "translation": choice.text,
                "index": choice.index,
                "score": score,
                "scores": scores,
            }
            stream.write(choice.text + "\n" if plain else json_line(row))
    counts, mixture = reranker.counts, reranker.mixture
    report |= {**counts, "mbr": args.mbr, "weights": mixture.weights, "metrics": mixture.about()}
    write_report(args.report, report)
    unusual = "".join(f", {counts[name]} {name}" for name in ("blank", "repeated") if counts[name])
    text = (
        f"{counts['sources']} sources with {counts['candidates']} candidates{unusual}; "
        f"{counts['changed']} times not "
    )
    text += f"the first one is chosen, {counts['tied']} times several are best"
    weighed = ", ".join(f"{name}={weight:g}" for name, weight in mixture.weights.items())
    print(f"mtmetrics: {text}; weights {weighed}", file=sys.stderr)


def _rows(args: argparse.Namespace) -> _Rows:
    """For each source what its row of the output keeps of the input, and its candidates."""
    if (args.file is None) == (not args.predictions) or (
        args.file and (args.sources or args.nbest)
    ):
        raise InputError(
            "nothing to choose from: pass one FILE of JSON Lines (or -), or -t with -s and --nbest"
        )
    if args.file is not None:
        return _jsonl(args.file)
    numbered = len(args.predictions) == 1 and args.nbest is None
    count = 1 if args.nbest is None else positive("--nbest", args.nbest)
    lists = _numbered(args.predictions[0]) if numbered else _by_lines(args.predictions, count)
    return lists if args.sources is None else _with_sources(lists, args)


def _jsonl(path: str) -> _Rows:
    from mtmetrics.choosing.reranking import NBest

    if path != "-" and not is_json(path):
        raise InputError(
            f"{path}: JSON Lines are needed (.jsonl or .json); files of lines are passed with -t"
        )
    for where, row in jsonl_rows(path):
        if not isinstance(row.get("candidates"), list):
            raise InputError(f"{where}: 'candidates' must be a list of strings")
        scores = row.get("scores") or {}
        named = scores if isinstance(scores, dict) else {_MODEL: scores}
        try:
            item = NBest(
                row["candidates"], row.get("source"), row.get("references"), named, row.get("human")
            )
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        yield {name: value for name, value in row.items() if name != "candidates"}, item


def _by_lines(paths: list[str], count: int) -> _Rows:
    """Every `count` lines of each of parallel files."""
    from mtmetrics.choosing.reranking import NBest

    lines = iter_parallel(paths)
    for number in itertools.count(1):
        block = list(itertools.islice(lines, count))
        if not block:
            return
        if len(block) < count:
            raise InputError(
                f"{paths[0]}: its lines are not a multiple of --nbest {count}; source {number} "
                f"has {len(block)}"
            )
        yield {}, NBest([text for column in zip(*block, strict=True) for text in column])


def _numbered(path: str) -> _Rows:
    """Lines with the number of their source, and the model's score."""
    from mtmetrics.choosing.reranking import NBest

    for candidates in read_candidates(path):
        scores = {_MODEL: [candidate.score for candidate in candidates]}
        yield {}, NBest([candidate.text for candidate in candidates], scores=scores)


def _with_sources(lists: _Rows, args: argparse.Namespace) -> _Rows:
    for number, (source, candidates) in enumerate(
        itertools.zip_longest(iter_lines(args.sources, "segments"), lists), 1
    ):
        if source is None or candidates is None:
            shorter, longer = (args.sources, args.predictions[0])[:: 1 if source is None else -1]
            raise InputError(f"{shorter} ends after {number - 1} sources, but {longer} goes on")
        candidates[1].source = source
        yield {"source": source}, candidates[1]
