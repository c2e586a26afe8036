"""``mtmetrics probe``: what a metric prefers, and whether it finds translations."""

import argparse
import functools
import json
import random
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mtmetrics.cli.options import add_metric_options, add_output_options, metric_options, model_pool, progress, scoring
from mtmetrics.cli.results import pick_format, print_text
from mtmetrics.errors import InputError
from mtmetrics.inputs import language_pair

if TYPE_CHECKING:
    from mtmetrics.scorers.base import MetricResult, Scorer
    from mtmetrics.scorers.pool import ModelPool


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "probe",
        help="test a metric on parallel text, without human judgements",
        description="Tests a metric on sentences and their human translations.",
    )
    probes = parser.add_subparsers(title="probes", metavar="PROBE", required=True)
    preference = probes.add_parser(
        "preference",
        help="does the metric prefer modified sentences to references?",
        description="Compares the scores of modified sentences with those of the references: words in random order, "
        "word-by-word translations, and files of your own (Sec. 5.1 of Zhao et al., 2020). Prints the share of "
        "modified sentences that the metric prefers, which for word-by-word translations is the W2W statistic, and "
        "the score differences d.",
    )
    _add_pair_options(preference, "reference")
    files: dict[str, Any] = {"metavar": "FILE", "nargs": "+", "default": []}
    text = "modified sentences of your own, one per line; needs -s and -r"
    preference.add_argument("-t", "--predictions", help=text, **files)
    literal = preference.add_argument_group("word-by-word translations, from either or both")
    literal.add_argument("--word-pairs", help="TSV of words and their translations", **files)
    text = "parallel text whose words are aligned: JSONL (source, target) or TSV"
    literal.add_argument("--parallel", help=text, **files)
    text = "encoder that aligns them (default: %(default)s)"
    literal.add_argument("--aligner", default="mini-encoder", metavar="MODEL", help=text)
    preference.set_defaults(run=_run_preference)
    matching = probes.add_parser(
        "matching",
        help="does the metric find the translation of a sentence among others?",
        description="For every source ranks its translation and other targets by their scores, and prints Precision@N: "
        "the share of sources whose translation is among the first N (Sec. 4.1 of Belouadi and Eger, 2023). A metric "
        "that compares with references is given the source in their place.",
    )
    _add_pair_options(matching, "target")
    text = "targets per source, the right one among them (default: %(default)s)"
    matching.add_argument("--candidates", type=int, default=100, metavar="K", help=text)
    text = "take the targets whose mean vectors in this encoder are nearest (default: random ones)"
    matching.add_argument("--nearest", metavar="MODEL", help=text)
    text = "each N of Precision@N (default: 1 5 10)"
    matching.add_argument("--at", type=int, nargs="+", default=[1, 5, 10], metavar="N", help=text)
    matching.set_defaults(run=_run_matching)
    for probe in (preference, matching):
        add_metric_options(probe)
        output = add_output_options(probe, ("table", "json", "markdown"))
        output.add_argument("--parts", action="store_true", help="show the parts of the score too")
        output.add_argument("--plot", metavar="FILE", help="also draw the result, as .png, .svg or .pdf")


def _add_pair_options(parser: argparse.ArgumentParser, other: str) -> None:
    text = f"sentence pairs: TSV, .jsonl or .parquet with source and {other}"
    group = parser.add_argument_group("input")
    group.add_argument("file", nargs="?", metavar="FILE", help=text)
    group.add_argument("-s", "--sources", metavar="FILE", help="one source segment per line")
    group.add_argument("-r", "--references", metavar="FILE", help="one human translation per line")
    group.add_argument("--lp", metavar="XX-YY", help="language pair, such as de-en")
    group.add_argument("--sentences", type=int, metavar="N", help="draw so many sentence pairs (default: all)")
    group.add_argument("--seed", type=int, default=1, help="of everything that is drawn (default: %(default)s)")


def _run_preference(args: argparse.Namespace) -> int:
    from mtmetrics.evaluation import figures, plots, probes
    from mtmetrics.evaluation.run import SCORE

    sources, references, *own = map(list, zip(*_drawn(_read(args, args.predictions), args), strict=True))
    modified = {"random order": [probes.random_order(text, args.seed) for text in references]}
    about = _about(args) | {"sentences": len(sources)}
    pool = model_pool(args)
    word_pairs = _word_pairs(args, pool)
    if word_pairs:
        dictionary = probes.Dictionary(word_pairs, references)
        literal = [dictionary.translate(text) for text in sources]
        modified["word by word"] = [translation.text for translation in literal]
        about["coverage"] = probes.coverage(literal)
        known = f"{about['coverage']:.1%} of the words of the sources have a translation"
        print(f"{known}; the others stay as they are", file=sys.stderr)
    modified |= zip(args.predictions, own, strict=True)
    scorer = _scorer(args, pool)
    with scoring((1 + len(modified)) * len(sources)):
        found, result = probes.preferences(scorer, sources, references, modified)
    found = [preference for preference in found if args.parts or preference.measure == SCORE]
    about["preferences"] = [preference.as_dict() for preference in found]
    _print(args, about, result, functools.partial(probes.preference_table, found))
    if args.plot is not None:
        title = f"{_name(about)}, {len(sources)} sentences: d > 0 where the modified one is preferred"
        figures.save_figure(plots.draw_preferences(found, title=title), args.plot)
    return 0


def _word_pairs(args: argparse.Namespace, pool: "ModelPool") -> list[tuple[str, str]]:
    from mtmetrics.evaluation.probes import bare_words, read_word_pairs

    found = [pair for path in args.word_pairs for pair in read_word_pairs(path)]
    if args.parallel:
        from mtmetrics.mining.words import words_from_sentences
        from mtmetrics.training.corpus import read_pairs

        rows, _ = read_pairs(args.parallel)
        sentences = [(bare_words(row.source), bare_words(row.target)) for row in rows]
        wrap = functools.partial(progress, desc="aligning", unit=" batches")
        found += words_from_sentences(sentences, pool.encoder(args.aligner), _languages(args), wrap=wrap)
    return found


def _languages(args: argparse.Namespace) -> tuple[str | None, str | None]:
    return language_pair(args.lp) if args.lp else (None, None)


def _run_matching(args: argparse.Namespace) -> int:
    from mtmetrics.evaluation import figures, plots, probes
    from mtmetrics.evaluation.run import SCORE

    sources, targets = map(list, zip(*_drawn(probes.distinct_pairs(_read(args)), args), strict=True))
    pool = model_pool(args)
    if args.nearest is None:
        candidates = probes.random_candidates(len(sources), args.candidates, args.seed)
    else:
        packed = [*map(pool.sentence_encoder(args.nearest).encode, (sources, targets), _languages(args))]
        candidates = probes.nearest_candidates(*(side.vectors[side.index] for side in packed), args.candidates)
    scorer = _scorer(args, pool)
    with scoring(candidates.size):
        precision, result = probes.match(scorer, sources, targets, candidates, sorted(set(args.at)))
    precision = {name: values for name, values in precision.items() if args.parts or name == SCORE}
    about = _about(args) | {"sentences": len(sources), "candidates": candidates.shape[1], "nearest": args.nearest}
    table = functools.partial(probes.matching_table, precision)
    _print(args, about | {"precision": precision}, result, table)
    result.report.warn()
    if args.plot is not None:
        title = f"{_name(about)}: {len(sources)} sentences, {candidates.shape[1]} candidates each"
        figures.save_figure(plots.draw_curves(precision, title=title, x_label="N", y_label="Precision@N"), args.plot)
    return 0


def _read(args: argparse.Namespace, modified: Sequence[str] = ()) -> list[Any]:
    """Distinct rows of a source, its translation, and the modified sentences of the user."""
    from mtmetrics.textio import iter_parallel, iter_table, table_keys

    if args.plot is not None:
        from mtmetrics.evaluation.figures import check_plot_file

        check_plot_file(args.plot, "--plot")
    given = [args.sources, args.references]
    if (args.file is None) != all(given) or (args.file is not None and (any(given) or modified)):
        latter = " (-t needs the latter)" if modified else ""
        raise InputError(f"pass either one FILE or -s SOURCES and -r REFERENCES{latter}")
    if args.file is None:
        rows = iter_parallel([*given, *modified])
    else:
        keys = table_keys(args.file)
        other = "target" if keys is not None and "reference" not in keys else "reference"
        rows = iter_table(args.file, ("source", other))
    # The sets of people's judgements have a row for each translation of a source.
    distinct = list(dict.fromkeys(map(tuple, rows)))
    if not distinct:
        raise InputError(f"{args.file or args.sources}: empty; there are no sentence pairs")
    return distinct


def _drawn(rows: list[Any], args: argparse.Namespace) -> list[Any]:
    from mtmetrics.inputs import positive

    if args.sentences is None or positive("--sentences", args.sentences) >= len(rows):
        return rows
    return random.Random(args.seed).sample(rows, args.sentences)


def _scorer(args: argparse.Namespace, pool: "ModelPool") -> "Scorer":
    """The metric, told to compare with the source where it can."""
    from mtmetrics.scorers.registry import find_metric, load_scorer

    options = metric_options(args)
    comparison = find_metric(options["metric"])
    asked = options.get(comparison.option or "")
    options |= comparison.choose(["sources"], asked)[1] if "sources" in comparison.values else {}
    return load_scorer(options.pop("metric"), pool=pool, **options)


def _about(args: argparse.Namespace) -> dict[str, Any]:
    from mtmetrics.scorers.registry import has_presets

    options = metric_options(args)
    preset = options["preset"] if has_presets(options["metric"]) else None
    return {"metric": options["metric"], "preset": preset, "seed": args.seed}


def _name(about: dict[str, Any]) -> str:
    return about["metric"] if about["preset"] is None else f"{about['metric']}, preset {about['preset']}"


def _print(
    args: argparse.Namespace, document: dict[str, Any], result: "MetricResult", table: Callable[[str], str]
) -> None:
    args.format = pick_format(args.format)
    if args.format == "json":
        pinned = {"signature": result.signature, "report": result.report.as_dict()}
        print_text(json.dumps(document | pinned, ensure_ascii=False, indent=1), args)
        return
    print(table(args.format))
    if args.format == "table":
        print(f"\n{result.signature}")
