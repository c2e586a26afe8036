"""``mtmetrics probe``: whether a metric prefers modified sentences, finds translations, and notices
errors.

Each probe reads sentences with their human translations, scores them with a metric that compares
with sources, and prints a table."""

import argparse
import functools
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from mtmetrics.checks import language_pair, positive
from mtmetrics.cli import messages, options
from mtmetrics.cli.output import Document, print_report
from mtmetrics.cli.rows import draw_rows
from mtmetrics.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from mtmetrics.models.pool import ModelPool
    from mtmetrics.reports.styles import Grid
    from mtmetrics.scorers.base import Scorer
    from mtmetrics.scorers.results import MetricResult

T = TypeVar("T")


class _ProbedMetric(NamedTuple):
    """A metric under test.

    Attributes:
        scorer: of the metric.
        name: of the metric.
        preset: None where the metric has none.
    """

    scorer: "Scorer"
    name: str
    preset: str | None

    @property
    def title(self) -> str:
        return self.name if self.preset is None else f"{self.name}, preset {self.preset}"


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
            "for word-by-word translations is the W2W statistic, and the score differences d."
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
    words = parser.add_argument_group("word-by-word translations, from either or both")
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
        help="encoder that aligns them (default: %(default)s)",
    )
    options.add_metric_options(parser)
    _add_output(parser, plot=True)
    parser.set_defaults(run=_run_preference)


def _add_matching(probes: options.Subparsers) -> None:
    parser = probes.add_parser(
        "matching",
        help="does the metric find the translation of a sentence among others?",
        description=(
            "For every source ranks its translation and other targets by their scores, and "
            "prints Precision@N: the share of sources whose translation is among the first N "
            "(Sec. 4.1 of Belouadi and Eger, 2023). A metric that compares with references is "
            "given the source in their place."
        ),
    )
    parser.add_argument(
        "--candidates",
        metavar="K",
        type=int,
        default=100,
        help="targets per source, the right one among them (default: %(default)s)",
    )
    parser.add_argument(
        "--nearest",
        metavar="MODEL",
        help="take the targets whose mean vectors in this encoder are nearest (default: random "
        "ones)",
    )
    parser.add_argument(
        "--at",
        metavar="N",
        type=int,
        **options.REPEATABLE_LIST,
        help="each N of Precision@N (default: 1 5 10)",
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
            "negation more or less (English and German), a word less or more, two words swapped. "
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
        help="draw so many sentence pairs (default: all)",
    )
    options.add_seed(group, "everything that is drawn")


def _add_output(parser: argparse.ArgumentParser, *, plot: bool) -> None:
    group = options.add_output_options(parser, ("table", "json", "markdown"))
    group.add_argument("--parts", action="store_true", help="show the parts of the score too")
    if plot:
        group.add_argument(
            "--plot", metavar="FILE", help="also draw the result, as .png, .svg or .pdf"
        )


def _run_preference(args: argparse.Namespace) -> None:
    from mtmetrics.probes import probing as probes
    from mtmetrics.reports import figures, plots
    from mtmetrics.reports.metric_runs import SCORE

    rows = _drawn(_read_rows(args, args.predictions), args)
    sources, references, *user_texts = map(list, zip(*rows, strict=True))
    modified = {"random order": [probes.random_order(text, args.seed) for text in references]}
    pool = options.model_pool(args)
    metric = _load_metric(args, pool)
    document = _describe(metric, args, len(sources))
    word_pairs = _word_pairs(args, pool)
    if word_pairs:
        dictionary = probes.Dictionary(word_pairs, references)
        translations = [dictionary.translate(text) for text in sources]
        modified["word by word"] = [translation.text for translation in translations]
        coverage = probes.coverage(translations)
        document["coverage"] = coverage
        share = f"{coverage:.1%} of the words of the sources have a translation"
        print(f"{share}; the others stay as they are", file=sys.stderr)
    modified |= zip(args.predictions, user_texts, strict=True)
    with messages.scoring((1 + len(modified)) * len(sources)):
        preferences, result = probes.preferences(metric.scorer, sources, references, modified)
    if not args.parts:
        preferences = [item for item in preferences if item.measure == SCORE]
    document["preferences"] = [item.as_dict() for item in preferences]
    _print(args, document, result, probes.preference_table(preferences))
    if args.plot is not None:
        sentences = f"{len(sources)} sentences"
        title = f"{metric.title}, {sentences}: d > 0 where the modified one is preferred"
        figures.save_figure(plots.draw_preferences(preferences, title=title), args.plot)


def _word_pairs(args: argparse.Namespace, pool: "ModelPool") -> list[tuple[str, str]]:
    """Returns words and their translations, from lists and from parallel text."""
    from mtmetrics.io.tables import read_word_pairs
    from mtmetrics.probes.probing import bare_words

    word_pairs = [pair for path in args.word_pairs for pair in read_word_pairs(path)]
    if args.parallel:
        from mtmetrics.mining.word_level import words_from_sentences
        from mtmetrics.training.corpus import read_pairs

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
    from mtmetrics.probes import probing as probes
    from mtmetrics.reports import figures, plots
    from mtmetrics.reports.metric_runs import SCORE

    pairs = _drawn(probes.distinct_pairs(_read_rows(args)), args)
    sources, targets = map(list, zip(*pairs, strict=True))
    pool = options.model_pool(args)
    candidates = _candidates(args, sources, targets, pool)
    metric = _load_metric(args, pool)
    cutoffs = sorted(set(args.at or [1, 5, 10]))
    with messages.scoring(candidates.size):
        precision, result = probes.match(metric.scorer, sources, targets, candidates, cutoffs)
    if not args.parts:
        precision = {SCORE: precision[SCORE]}
    document = _describe(metric, args, len(sources))
    document |= {"candidates": candidates.shape[1], "nearest": args.nearest, "precision": precision}
    _print(args, document, result, probes.matching_table(precision))
    result.report.warn()
    if args.plot is not None:
        title = f"{metric.title}: {len(sources)} sentences, {candidates.shape[1]} candidates each"
        figure = plots.draw_curves(precision, title=title, x_label="N", y_label="Precision@N")
        figures.save_figure(figure, args.plot)


def _candidates(
    args: argparse.Namespace, sources: list[str], targets: list[str], pool: "ModelPool"
) -> "np.ndarray":
    """Returns an (n, k) array: for each source the indices of k targets, the right one among
    them."""
    from mtmetrics.probes import probing as probes

    if args.nearest is None:
        return probes.random_candidates(len(sources), args.candidates, args.seed)
    encoder = pool.sentence_encoder(args.nearest)
    vectors = []
    for texts, language in zip((sources, targets), _languages(args), strict=True):
        encoded = encoder.encode(texts, language)
        vectors.append(encoded.vectors[encoded.index])
    return probes.nearest_candidates(*vectors, args.candidates)


def _run_robustness(args: argparse.Namespace) -> None:
    from mtmetrics.probes import robustness as probes
    from mtmetrics.reports.metric_runs import SCORE

    sources, references = map(list, zip(*_drawn(_read_rows(args), args), strict=True))
    metric = _load_metric(args, options.model_pool(args))
    target_language = _languages(args)[1] or "en"
    with messages.scoring((1 + len(probes.CHANGES)) * len(sources)):
        changes, result = probes.robustness(
            metric.scorer, sources, references, target_language, args.seed
        )
    if not args.parts:
        changes = [change for change in changes if change.measure == SCORE]
    document = _describe(metric, args, len(sources))
    document["changes"] = [change.as_dict() for change in changes]
    _print(args, document, result, probes.robustness_table(changes))


def _read_rows(
    args: argparse.Namespace, modified_paths: Sequence[str] = ()
) -> list[tuple[str, ...]]:
    """Reads different rows: a source, its translation, and the user's modified sentences.

    Args:
        args: parsed arguments.
        modified_paths: files of modified sentences.

    Raises:
        InputError: there are no rows, or options contradict each other.
    """
    from mtmetrics.io.lines import iter_parallel

    if getattr(args, "plot", None) is not None:
        from mtmetrics.reports.figures import check_plot_file

        check_plot_file(args.plot, "--plot")
    paths = [args.sources, args.references]
    has_file = args.file is not None
    if has_file == all(paths) or (has_file and (any(paths) or modified_paths)):
        latter = " (-t needs the latter)" if modified_paths else ""
        raise InputError(f"pass either one FILE or -s SOURCES and -r REFERENCES{latter}")
    parallel_paths = [*paths, *modified_paths]
    rows = _read_sentence_pairs(args.file) if has_file else iter_parallel(parallel_paths)
    # The sets of people's judgements have a row for each translation of a source.
    distinct_rows = list(dict.fromkeys(map(tuple, rows)))
    if not distinct_rows:
        raise InputError(f"{args.file or args.sources}: empty; there are no sentence pairs")
    return distinct_rows


def _read_sentence_pairs(path: str) -> Iterator[list[str]]:
    """Returns source and human translation of each row. The latter is the reference, or where there
    is none the translation."""
    from mtmetrics.io.tables import open_table, required_columns

    table = open_table(path, ("source", "reference"))
    if table is None:
        return iter(())
    if not table.is_named:
        return table.texts(table.names[:2])
    names = required_columns(table, [("source",), ("reference", "translation")])
    return table.texts(names)


def _drawn(rows: list[T], args: argparse.Namespace) -> list[T]:
    """Draws as many rows as --sentences says."""
    if args.sentences is None:
        return rows
    return draw_rows(rows, positive("--sentences", args.sentences), args.seed)


def _load_metric(args: argparse.Namespace, pool: "ModelPool") -> _ProbedMetric:
    """Loads the metric, to compare with the source where it can."""
    from mtmetrics.scorers.registry import find_metric, load_scorer

    loader = options.single_metric_options(args)
    metric = find_metric(loader["metric"])
    if "source" in metric.sides:
        loader["against"] = metric.resolve_side_without_preset(loader, ["sources"])
    preset = loader["preset"] if metric.takes_presets else None
    return _ProbedMetric(load_scorer(pool=pool, **loader), metric.name, preset)


def _describe(metric: _ProbedMetric, args: argparse.Namespace, sentences: int) -> Document:
    """Returns the beginning of a document about a probe."""
    return {
        "metric": metric.name,
        "preset": metric.preset,
        "seed": args.seed,
        "sentences": sentences,
    }


def _print(
    args: argparse.Namespace, document: Document, result: "MetricResult", table: "Grid"
) -> None:
    """Prints a document or a table, with the signature of the scores."""
    from mtmetrics.reports.styles import Report

    document |= {"signature": result.signature, "report": result.report.as_dict()}
    print_report(Report(document, [table], [table, result.signature]), args)
