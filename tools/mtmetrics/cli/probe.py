"""``mtmetrics probe``: tests whether a metric prefers modified sentences, finds translations, and
notices errors.

Each probe reads sentences with their human translations, scores them with a metric, and prints a
table. The metric compares with the sources if it supports that."""

import argparse
import functools
import sys
from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

from mtmetrics.checks import language_pair, positive
from mtmetrics.cli import messages, options
from mtmetrics.cli.output import Document, print_report
from mtmetrics.cli.rows import sample_rows
from mtmetrics.errors import InputError
from mtmetrics.io.lines import iter_parallel
from mtmetrics.io.tables import needed_text_columns, open_table, read_word_pairs
from mtmetrics.mining.word_level import words_from_sentences
from mtmetrics.models.pool import ModelPool
from mtmetrics.probes import probing
from mtmetrics.probes.probing import bare_words
from mtmetrics.probes.robustness import CHANGES, robustness, robustness_table
from mtmetrics.reports import figures, plots
from mtmetrics.reports.figures import check_plot_file
from mtmetrics.reports.metric_runs import SCORE
from mtmetrics.reports.styles import Grid, Report
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.registry import find_metric
from mtmetrics.scorers.results import MetricResult
from mtmetrics.scorers.spec import MetricSpec
from mtmetrics.training.corpus import read_pairs

T = TypeVar("T")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Tests a metric on sentences and their human translations."
    probes = parser.add_subparsers(title="probes", metavar="PROBE", required=True)
    _add_preference(probes)
    _add_matching(probes)
    _add_robustness(probes)


def _add_preference(probes: options.Subparsers) -> None:
    parser = probes.add_parser(
        "preference",
        help="does the metric prefer modified sentences to references?",
        description=(
            "Compares the scores of modified sentences with those of the references: words in "
            "random order, word-by-word translations, and files of your own (Sec. 5.1 of Zhao et "
            "al., 2020). Prints the share of modified sentences that the metric prefers, which "
            "for word-by-word translations is the W2W statistic, and the score differences d: "
            "modified minus reference."
        ),
    )
    parser.add_argument(
        "-t",
        "--predictions",
        metavar="FILE",
        **options.REPEATABLE_LIST,
        help="modified sentences of your own, one per line; needs -s and -r",
    )
    _add_pairs(parser, "reference")
    words = parser.add_argument_group("dictionary of word-by-word translations (one or both)")
    words.add_argument(
        "--word-pairs",
        metavar="FILE",
        **options.REPEATABLE_LIST,
        help="TSV of words and their translations",
    )
    words.add_argument(
        "--parallel",
        metavar="FILE",
        **options.REPEATABLE_LIST,
        help="parallel text whose words are aligned: JSONL (source, target) or TSV",
    )
    words.add_argument(
        "--aligner",
        metavar="MODEL",
        default="mini-encoder",
        help="encoder that aligns the words of --parallel (default: %(default)s)",
    )
    options.add_metric_options(parser)
    _add_output(parser, plot=True)
    parser.set_defaults(run=_run_preference)


def _add_matching(probes: options.Subparsers) -> None:
    parser = probes.add_parser(
        "matching",
        help="does the metric find the translation of a sentence among others?",
        description=(
            "Ranks, for every source, its translation among other targets by their scores, and "
            "prints Precision@N: the share of sources whose translation is among the first N "
            "(Sec. 4.1 of Belouadi and Eger, 2023). A metric that needs references gets the "
            "source as reference."
        ),
    )
    parser.add_argument(
        "--candidates",
        metavar="K",
        type=int,
        default=100,
        help="targets per source, the right one among them, as far as there are so many (default: "
        "%(default)s)",
    )
    parser.add_argument(
        "--nearest",
        metavar="MODEL",
        help="use the targets nearest to the source, by mean vectors of this encoder (default: "
        "random targets)",
    )
    parser.add_argument(
        "--at",
        metavar="N",
        type=int,
        **options.REPEATABLE_LIST,
        help="each N of Precision@N, below the number of candidates (default: 1 5 10)",
    )
    _add_pairs(parser, "target")
    options.add_metric_options(parser)
    _add_output(parser, plot=True)
    parser.set_defaults(run=_run_matching)


def _add_robustness(probes: options.Subparsers) -> None:
    parser = probes.add_parser(
        "robustness",
        help="does the metric notice a small error?",
        description=(
            "Changes each human translation in one place: another number, name or word, a "
            "negation or a word added or removed (negations in English and German), two words swapped. "
            "Prints how often a metric that compares with sources gives the changed text the "
            "lower score, with a 95 % bootstrap interval."
        ),
    )
    _add_pairs(parser, "reference")
    options.add_metric_options(parser)
    _add_output(parser, plot=False)
    parser.set_defaults(run=_run_robustness)


def _add_pairs(parser: argparse.ArgumentParser, second: str) -> None:
    """Adds the sentence pairs to read; `second` names the second column of a file of pairs."""
    group = parser.add_argument_group("input")
    group.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help=f"sentence pairs: TSV, CSV, .jsonl or .parquet with source and {second}",
    )
    options.add_sources(group)
    group.add_argument("-r", "--references", metavar="FILE", help="one human translation per line")
    options.add_lang_pair(group)
    group.add_argument(
        "--sentences",
        metavar="N",
        type=int,
        help="number of sentence pairs to sample (default: all)",
    )
    options.add_seed(group, "all random choices")


def _add_output(parser: argparse.ArgumentParser, *, plot: bool) -> None:
    group = options.add_output_options(parser, ("table", "json", "markdown"))
    group.add_argument("--parts", action="store_true", help="show the parts of the score too")
    if plot:
        group.add_argument(
            "--plot", metavar="FILE", help="also draw the result, as .png, .svg or .pdf"
        )


def _run_preference(args: argparse.Namespace) -> None:
    rows = _sample(_read_rows(args, args.predictions), args)
    sources, references, *user_texts = map(list, zip(*rows, strict=True))
    modified = {"random order": [probing.random_order(text, args.seed) for text in references]}
    pool = options.model_pool(args)
    spec, scorer = _load_metric(args, pool)
    document = _describe(spec, args, len(sources))
    word_pairs = _word_pairs(args, pool)
    if word_pairs:
        dictionary = probing.Dictionary(word_pairs, references)
        translations = [dictionary.translate(text) for text in sources]
        modified["word by word"] = [translation.text for translation in translations]
        coverage = probing.coverage(translations)
        document["coverage"] = coverage
        note = f"{coverage:.1%} of the words of the sources have a translation"
        print(f"{note}; the others stay as they are", file=sys.stderr)
    modified |= zip(args.predictions, user_texts, strict=True)
    with messages.scoring((1 + len(modified)) * len(sources)):
        preferences, scored = probing.preferences(scorer, sources, references, modified)
    if not args.parts:
        preferences = [item for item in preferences if item.measure == SCORE]
    document["preferences"] = [item.as_dict() for item in preferences]
    _print(args, document, scored, probing.preference_table(preferences))
    if args.plot is not None:
        title = f"{_title(spec)}, {len(sources)} sentences"
        title += ": d > 0 where the modified one is preferred"
        figures.save_figure(probing.draw_preferences(preferences, title=title), args.plot)


def _word_pairs(args: argparse.Namespace, pool: ModelPool) -> list[tuple[str, str]]:
    """Returns words and their translations, from lists and from parallel text."""
    word_pairs = [pair for path in args.word_pairs for pair in read_word_pairs(path)]
    if args.parallel:
        rows, _ = read_pairs(args.parallel)
        word_pairs += words_from_sentences(
            [(bare_words(row.source), bare_words(row.target)) for row in rows],
            pool.encoder(args.aligner),
            _languages(args),
            wrap=functools.partial(messages.progress, desc="aligning", unit=" batches"),
        )
    return word_pairs


def _languages(args: argparse.Namespace) -> tuple[str | None, str | None]:
    return language_pair(args.lp) if args.lp else (None, None)


def _run_matching(args: argparse.Namespace) -> None:
    pairs = _sample(probing.distinct_pairs(_read_rows(args)), args)
    sources, targets = map(list, zip(*pairs, strict=True))
    pool = options.model_pool(args)
    candidates = _candidates(args, sources, targets, pool)
    spec, scorer = _load_metric(args, pool)
    cutoffs = sorted(set(args.at or [1, 5, 10]))
    with messages.scoring(candidates.size):
        precision_of_measure, scored = probing.match(scorer, sources, targets, candidates, cutoffs)
    if not args.parts:
        precision_of_measure = {SCORE: precision_of_measure[SCORE]}
    document = _describe(spec, args, len(sources))
    document["candidates"] = candidates.shape[1]
    document["nearest"] = args.nearest
    document["precision"] = precision_of_measure
    _print(args, document, scored, probing.matching_table(precision_of_measure))
    if args.plot is not None:
        title = f"{_title(spec)}: {len(sources)} sentences, {candidates.shape[1]} candidates each"
        figure = plots.draw_curves(
            precision_of_measure, title=title, x_label="N", y_label="Precision@N"
        )
        figures.save_figure(figure, args.plot)


def _candidates(
    args: argparse.Namespace, sources: list[str], targets: list[str], pool: ModelPool
) -> np.ndarray:
    """Returns an (n, k) array: for each source the indices of k targets, which include its
    translation."""
    if args.nearest is None:
        return probing.random_candidates(len(sources), args.candidates, args.seed)
    encoder = pool.sentence_encoder(args.nearest)
    vectors = []
    for texts, language in zip((sources, targets), _languages(args), strict=True):
        encoded = encoder.encode(texts, language)
        vectors.append(encoded.vectors[encoded.index])
    return probing.nearest_candidates(*vectors, args.candidates)


def _run_robustness(args: argparse.Namespace) -> None:
    sources, references = map(list, zip(*_sample(_read_rows(args), args), strict=True))
    spec, scorer = _load_metric(args, options.model_pool(args))
    target_language = _languages(args)[1] or "en"
    with messages.scoring((1 + len(CHANGES)) * len(sources)):
        changes, scored = robustness(scorer, sources, references, target_language, args.seed)
    if not args.parts:
        changes = [change for change in changes if change.measure == SCORE]
    document = _describe(spec, args, len(sources))
    document["changes"] = [change.as_dict() for change in changes]
    _print(args, document, scored, robustness_table(changes))


def _read_rows(
    args: argparse.Namespace, modified_paths: Sequence[str] = ()
) -> list[tuple[str, ...]]:
    """Reads the distinct rows: a source, its translation, and the user's modified sentences.

    Args:
        args: parsed arguments.
        modified_paths: files of modified sentences.

    Raises:
        InputError: there are no rows, or options contradict each other.
    """
    if getattr(args, "plot", None) is not None:
        check_plot_file(args.plot, "--plot")
    paths = [args.sources, args.references]
    has_file = args.file is not None
    has_other_files = any(paths) or bool(modified_paths)
    if (has_file and has_other_files) or (not has_file and not all(paths)):
        hint = " (-t needs the latter)" if modified_paths else ""
        raise InputError(f"pass either one FILE or -s SOURCES and -r REFERENCES{hint}")
    parallel_paths = [*paths, *modified_paths]
    rows = _read_sentence_pairs(args.file) if has_file else iter_parallel(parallel_paths)
    # Judged data repeats a source and its reference for each translation.
    distinct_rows = list(dict.fromkeys(map(tuple, rows)))
    if not distinct_rows:
        raise InputError(f"{args.file or args.sources}: empty; there are no sentence pairs")
    return distinct_rows


def _read_sentence_pairs(path: str) -> Iterator[list[str]]:
    """Yields the source and the human translation of each row: the column reference, or translation
    in a file without it."""
    table = open_table(path, ("source", "reference"))
    if table is None:
        return iter(())
    if not table.has_names:
        return table.texts(table.names[:2])
    names = needed_text_columns(table, [("source",), ("reference", "translation")])
    return table.texts(names)


def _sample(rows: list[T], args: argparse.Namespace) -> list[T]:
    """Samples --sentences rows; returns all rows if the user does not pass it."""
    if args.sentences is None:
        return rows
    return sample_rows(rows, positive("--sentences", args.sentences), args.seed)


def _load_metric(args: argparse.Namespace, pool: ModelPool) -> tuple[MetricSpec, Scorer]:
    """Loads the metric. It compares with the source if it supports that."""
    spec = options.single_metric(args)
    metric = find_metric(spec.metric)
    if "source" in metric.sides:
        side = metric.resolve_side_without_preset(dict(spec.options), ["sources"])
        spec = spec.having(against=side)
    return spec, spec.load(pool, args.lp)


def _title(spec: MetricSpec) -> str:
    return spec.metric if spec.preset is None else f"{spec.metric}, preset {spec.preset}"


def _describe(spec: MetricSpec, args: argparse.Namespace, sentence_count: int) -> Document:
    """Returns the fields that the JSON documents of all probes share."""
    return {
        "metric": spec.metric,
        "preset": spec.preset,
        "seed": args.seed,
        "sentences": sentence_count,
    }


def _print(args: argparse.Namespace, document: Document, scored: MetricResult, table: Grid) -> None:
    """Prints a JSON document or a table, with the signature of the scores.

    `scored` has the scores of the texts of the probe."""
    document |= {"signature": scored.signature, "report": scored.report.as_dict()}
    print_report(Report(document, [table], [table, scored.signature]), args)
