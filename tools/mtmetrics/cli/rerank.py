"""``mtmetrics rerank``: takes the best of several translations of each source.

Three readers yield the candidates: from JSON Lines, from parallel files, and from a file with
numbered lines. `_with_sources` adds the sources to the latter two."""

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mtmetrics.checks import positive
from mtmetrics.choosing.mixture import load_scorers
from mtmetrics.choosing.reranking import NBest, Reranker
from mtmetrics.cli import messages, options
from mtmetrics.cli.output import Document, check_target, open_output, rounded, write_report
from mtmetrics.errors import InputError
from mtmetrics.io.lines import iter_lines, iter_parallel, json_line
from mtmetrics.io.nbest import read_candidates
from mtmetrics.io.tables import is_json, jsonl_rows
from mtmetrics.models.pool import ModelPool
from mtmetrics.scorers.spec import MetricSpec

# Name of the translation model's score if the input does not name it.
_MODEL_SCORE = "model"


class _InputItem(NamedTuple):
    """The candidates of one source.

    Attributes:
        fields: input fields that are copied to the output.
        candidates: the translations.
    """

    fields: Document
    candidates: NBest


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Chooses among the candidate translations of each source: by a metric, by a weighted "
        "sum of metrics and of the translation model's own scores, or by expected utility "
        "(--mbr). A blank candidate is chosen only if all are blank; of equal scores the "
        "first candidate wins. Writes a row per source with translation, index (from 0), score, "
        "and the scores of all candidates (null for blank ones)."
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help=(
            "JSON Lines with candidates (a list) and, optionally, source, references (a list) and "
            "scores (a list, called model, or an object of lists; higher is better); - reads "
            "standard input"
        ),
    )
    options.add_sources(parser)
    parser.add_argument(
        "-t",
        "--predictions",
        metavar="FILE",
        **options.REPEATABLE_LIST,
        help=(
            "instead of FILE: plain lines, --nbest of them per source; or, without --nbest, one "
            "file of lines as Moses and Marian write them (NUMBER ||| TEXT ||| FEATURES ||| "
            "SCORE); several files hold candidates for the same sources, as plain lines"
        ),
    )
    parser.add_argument(
        "--nbest",
        metavar="N",
        type=int,
        help="lines per source in each file of -t (default: 1 if there are several files)",
    )
    options.add_lang_pair(parser)
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="write to FILE instead of standard output; the file appears only when all is done",
    )
    parser.add_argument(
        "--format",
        choices=("jsonl", "text"),
        help=(
            "jsonl, or text: only the chosen translations (default: jsonl, or text if --out does "
            "not end in .jsonl)"
        ),
    )
    parser.add_argument(
        "--report",
        metavar="FILE",
        help="write counts, weights and signatures to this file, as JSON",
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
    options.add_mix_option(parser, extra_help=", or of a model score (default: 0)")
    parser.add_argument(
        "--tune",
        metavar="FILE",
        help=(
            "tune the weights on this development set first: JSON Lines like the input, with "
            "human (a judgement per candidate) or references"
        ),
    )
    parser.add_argument(
        "--objective",
        metavar="NAME[:PRESET[:OPTION=VALUE,...]]",
        default="chrf",
        help=(
            "metric to maximise in tuning, if the set has references but no judgements (default: "
            "%(default)s)"
        ),
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    specs = options.metric_specs(
        args, default_metrics=["chrf"] if args.mbr else [options.DEFAULT_METRIC]
    )
    weights = options.mix_weights(args)
    if args.tune and weights:
        raise InputError("--tune and --mix: the weights are either given or chosen; leave one out")
    check_target(args.out, "--out")
    check_target(args.report, "--report")
    items = _read_items(args)
    first_item = next(items, None)
    if first_item is None:
        raise InputError(
            f"{args.file or args.predictions[0]}: empty; there is nothing to choose from"
        )
    development = [item.candidates for item in _read_json_lines(args.tune)] if args.tune else []
    pool = options.model_pool(args, dtype="auto")
    reranker, report = _load_reranker(
        args, specs, weights, first_item.candidates, development, pool
    )
    remaining_items = messages.progress(items, unit=" lists", desc="choosing")
    _write_choices(args, reranker, itertools.chain([first_item], remaining_items))
    mixture = reranker.mixture
    report |= {
        **reranker.counts,
        "mbr": reranker.mbr,
        "weights": mixture.weights,
        "metrics": mixture.about(),
        **pool.about(),
    }
    write_report(args.report, report)
    print(f"mtmetrics: {_summary(reranker)}", file=sys.stderr)


def _load_reranker(
    args: argparse.Namespace,
    specs: dict[str, MetricSpec],
    weights: dict[str, float],
    first_candidates: NBest,
    development: list[NBest],
    pool: ModelPool,
) -> tuple[Reranker, Document]:
    """Loads the metrics, and tunes their weights if there is a development set.

    Args:
        args: parsed arguments.
        specs: the metrics by name.
        weights: name of a score -> its weight, as the user passes it.
        first_candidates: the first of the input; shows whether the input has sources, references
            and model scores.
        development: the development set; empty without --tune.
        pool: loads the models.

    Returns:
        The reranker, and the first fields of the report: how it was tuned.
    """
    texts = {"sources": first_candidates.source, "references": first_candidates.references}
    columns = [name for name, text in texts.items() if text is not None]
    scorers = load_scorers(specs, columns, pool, args.lp, args.mbr)
    reranker = Reranker(scorers, weights, mbr=args.mbr, model_scores=first_candidates.scores)
    if not args.tune:
        return reranker, {}
    # Reports a wrong --objective, even if judgements take its place.
    objective_spec = MetricSpec.parse(args.objective).filled(args.preset, {})
    objective = None
    if any(candidates.human is None for candidates in development):
        objective = objective_spec.load_for(["references"], pool, args.lp)
    reranker.tune(development, objective)
    tuned_on = {
        "file": args.tune,
        "lists": len(development),
        "objective": "human" if objective is None else objective.signature,
    }
    return reranker, {"tuned_on": tuned_on}


def _write_choices(
    args: argparse.Namespace, reranker: Reranker, items: Iterator[_InputItem]
) -> None:
    """Writes the chosen translation of each item, as a row or as plain text."""
    is_text_path = args.out is not None and not args.out.removesuffix(".gz").endswith(".jsonl")
    is_text = args.format == "text" or (args.format is None and is_text_path)
    with open_output(args.out) as stream:
        # The reranker reads a batch of items ahead of the choices that it yields.
        items_to_write, items_to_rerank = itertools.tee(items)
        choices = reranker.choose(item.candidates for item in items_to_rerank)
        for item, choice in zip(items_to_write, choices, strict=True):
            choice_fields = {
                "translation": choice.text,
                "index": choice.index,
                "score": choice.score,
                "scores": list(choice.scores),
            }
            # Scores of blank candidates are NaN, which becomes None. The new scores replace the
            # model's scores of the input, which are called "scores" too.
            row = item.fields | rounded(choice_fields, full_precision=True)
            stream.write(choice.text + "\n" if is_text else json_line(row))


def _summary(reranker: Reranker) -> str:
    """Returns counts and weights in one line."""
    counts = reranker.counts
    problem_counts = ""
    for name in ("blank", "repeated"):
        if counts[name]:
            problem_counts += f", {counts[name]} {name}"
    weights = ", ".join(f"{name}={value:g}" for name, value in reranker.mixture.weights.items())
    return (
        f"{counts['sources']} sources with {counts['candidates']} candidates{problem_counts}; "
        f"{counts['changed']} times not the first one is chosen, {counts['tied']} times several "
        f"are best; weights {weights}"
    )


def _read_items(args: argparse.Namespace) -> Iterator[_InputItem]:
    """Reads the input that the options name."""
    has_file = args.file is not None
    has_other_files = bool(args.predictions or args.sources or args.nbest)
    if has_file and has_other_files:
        raise InputError("pass either one FILE or -t, optionally with -s and --nbest, not both")
    if not has_file and not args.predictions:
        raise InputError(
            "nothing to choose from: pass one FILE of JSON Lines (or -), or -t, optionally with -s "
            "and --nbest"
        )
    if has_file:
        return _read_json_lines(args.file)
    if len(args.predictions) == 1 and args.nbest is None:
        items = _read_numbered(args.predictions[0])
    else:
        lines_per_source = 1 if args.nbest is None else positive("--nbest", args.nbest)
        items = _read_parallel(args.predictions, lines_per_source)
    if args.sources is None:
        return items
    return _with_sources(items, args.sources, args.predictions[0])


def _read_json_lines(path: str) -> Iterator[_InputItem]:
    if path != "-" and not is_json(path):
        raise InputError(
            f"{path}: JSON Lines are needed (.jsonl or .json); pass plain text files with -t"
        )
    for where, row in jsonl_rows(path):
        if not isinstance(row.get("candidates"), list):
            raise InputError(f"{where}: 'candidates' must be a list of strings")
        scores = row.get("scores") or {}
        scores_by_name = scores if isinstance(scores, dict) else {_MODEL_SCORE: scores}
        try:
            candidates = NBest(
                row["candidates"],
                source=row.get("source"),
                references=row.get("references"),
                scores=scores_by_name,
                human=row.get("human"),
            )
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        fields = {name: value for name, value in row.items() if name != "candidates"}
        yield _InputItem(fields, candidates)


def _read_parallel(paths: Sequence[str], lines_per_source: int) -> Iterator[_InputItem]:
    """Reads parallel files, each with `lines_per_source` lines for a source."""
    lines = iter_parallel(paths)
    for number in itertools.count(1):
        block = list(itertools.islice(lines, lines_per_source))
        if not block:
            return
        if len(block) < lines_per_source:
            raise InputError(
                f"{paths[0]}: its lines are not a multiple of --nbest {lines_per_source}; source "
                f"{number} has {len(block)}"
            )
        lines_per_file = zip(*block, strict=True)  # the candidates of a file stay together
        yield _InputItem({}, NBest(list(itertools.chain.from_iterable(lines_per_file))))


def _read_numbered(path: str) -> Iterator[_InputItem]:
    """Reads lines that begin with the number of their source, and end with the model's score."""
    for candidates in read_candidates(path):
        scores = {_MODEL_SCORE: [candidate.score for candidate in candidates]}
        texts = [candidate.text for candidate in candidates]
        yield _InputItem({}, NBest(texts, scores=scores))


def _with_sources(
    items: Iterator[_InputItem], source_path: str, candidates_path: str
) -> Iterator[_InputItem]:
    """Adds its source, a line of a file, to each item."""
    sources = iter_lines(source_path, "segments")
    for index, (source, item) in enumerate(itertools.zip_longest(sources, items)):
        if source is None:
            raise _length_error(source_path, candidates_path, index)
        if item is None:
            raise _length_error(candidates_path, source_path, index)
        item.candidates.source = source
        yield _InputItem({"source": source}, item.candidates)


def _length_error(shorter_path: str, longer_path: str, source_count: int) -> InputError:
    return InputError(
        f"{shorter_path} ends after {source_count} sources, but {longer_path} goes on"
    )
