"""``mtmetrics explain``: which words a score comes from, as text, JSON and heatmaps."""

import argparse
import itertools
import json
import os
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mtmetrics.checks import positive
from mtmetrics.cli import options
from mtmetrics.cli.output import check_new, machine_output, rounded
from mtmetrics.cli.rows import input_rows
from mtmetrics.errors import InputError
from mtmetrics.io.atomic import make_folder
from mtmetrics.io.lines import json_line
from mtmetrics.scorers.side import FIELDS, Column, Side

if TYPE_CHECKING:
    from mtmetrics.matching.plan import Alignment
    from mtmetrics.matching.word_errors import Fault
    from mtmetrics.scorers.base import Scorer
    from mtmetrics.scorers.results import MetricResult
    from mtmetrics.scorers.words import WordScorer

_ALL = range(1, sys.maxsize)
_UNASKED_PLOTS = 100
_ALIGNED_AT_ONCE = 64
_PLOTS = (".png", ".svg", ".pdf")
# What stands before and behind a word that seems right, doubtful, wrong: without and with colour
# (yellow, red).
_PLAIN = (("", ""), ("[", "]"), ("[[", "]]"))
_COLOURED = (("", ""), ("\x1b[30;43m", "\x1b[0m"), ("\x1b[97;41m", "\x1b[0m"))
_WORST_WORDS = 5


class Segment(NamedTuple):
    """A row of the input with its number, counted from 1, and the texts that it is compared with:
    source, reference or both."""

    number: int
    compared: dict[Column, str]
    prediction: str


class Explained(NamedTuple):
    """A segment, what it scored, what was matched, and its words at fault; None where the metric
    matches or blames none."""

    segment: Segment
    score: float
    parts: dict[str, float]
    alignment: "Alignment | None"
    faults: "list[Fault] | None"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Shows, for every segment, its score, the parts of the score, the words of the "
        "translation that it suffers from, and the alignment behind it: what was matched with "
        "what, at which cost, cosine or attention, and with how much of the mass. Metrics that "
        "look for errors themselves give those alone. Words at fault have a severity from 0 to "
        "1 and their share of all that the words take away from the score. Only the chosen "
        "segments are scored, with --worst all."
    )
    options.add_row_options(parser)
    options.add_metric_options(parser)
    text = (
        "text, JSON, or a line of JSON per segment and one at the end (default: text on a "
        "terminal, else json)"
    )
    output = options.add_output_options(parser, ("text", "json", "jsonl"), text=text)
    segments = output.add_mutually_exclusive_group()
    segments.add_argument(
        "--segments",
        metavar="LIST",
        help="numbers and ranges, counted from 1, such as 1,4-6 (default: all)",
    )
    segments.add_argument(
        "--worst",
        metavar="N",
        type=int,
        help="the N lowest-scored segments of the input, the lowest first",
    )
    output.add_argument(
        "--plot",
        metavar="PATH",
        help=(
            "also draw heatmaps: PATH/segment-0001.png and so on; or, where PATH ends in .png, "
            ".svg or .pdf, that file, with the number of the segment before the ending if there "
            f"are several; more than {_UNASKED_PLOTS} only where --segments or --worst asks for "
            "them"
        ),
    )
    output.add_argument(
        "--plot-special-tokens", action="store_true", help="such as [CLS] in the heatmaps too"
    )
    output.add_argument(
        "--overwrite", action="store_true", help="replace heatmaps that exist already"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Scores, aligns, draws and prints."""
    takes = (
        "-t: explain takes the translations of one system",
        "-r: explain takes one reference per segment",
    )
    for given, one in zip((args.predictions, args.references), takes, strict=True):
        if given and len(given) > 1:
            raise InputError(f"{one}, got {len(given)} files")
    ranges = _ranges(args.segments)
    if args.worst is not None:
        positive("--worst", args.worst)
    [name], rows, asked = input_rows(args)
    segments = list(_choose(rows, ranges, name, Side(asked["against"]).columns))
    plots = _plots(args, segments, min(args.worst or len(segments), len(segments)))
    from mtmetrics.scorers.registry import load_scorer
    from mtmetrics.scorers.words import blames_words, word_scorer

    scorer = load_scorer(asked.pop("metric"), pool=options.model_pool(args), **asked)
    if not blames_words(scorer) or plots:
        _ = word_scorer(
            scorer
        ).cells  # says that nothing is aligned, before anything is scored or made
    for path in plots[:1]:  # all are in one folder
        make_folder(path.parent)
    with options.scoring(len(segments)):
        result = scorer.score([segment.prediction for segment in segments], **_columns(segments))
    places = (
        result.segments.argsort(kind="stable")[: args.worst].tolist()
        if args.worst
        else range(len(segments))
    )
    plots = [plots[place] for place in places] if plots else []
    found = _explain(word_scorer(scorer), segments, result, places)
    found = options.progress(found, total=len(places), desc="explaining", unit=" segments")
    if plots:
        found = _drawn(found, plots, scorer, special_tokens=args.plot_special_tokens)
    _print(found, scorer, result, args)
    return 0


def _ranges(text: str | None) -> list[range]:
    """Numbers and ranges from 1 up, such as ``1,4-6``; None chooses all."""
    if text is None:
        return [_ALL]
    ranges = []
    for item in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,12})(?:-([0-9]{1,12}))?\s*", item)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
        if not 1 <= first <= last:
            raise InputError(
                f"--segments {text!r}: {item!r} is no number or range from 1 up, such as 3 or 4-6"
            )
        ranges.append(range(first, last + 1))
    return ranges


def _columns(segments: Sequence[Segment]) -> dict[str, list[str]]:
    """The texts that segments are compared with, by column."""
    return {
        column: [segment.compared[column] for segment in segments]
        for column in segments[0].compared
    }


def _choose(
    rows: Iterator[list[str]], ranges: Sequence[range], name: str, columns: Sequence[Column]
) -> Iterator[Segment]:
    """Reads as far as the last segment that is wanted."""
    last = max(wanted.stop for wanted in ranges) - 1
    number = 0
    for number, (*others, prediction) in enumerate(itertools.islice(rows, last), 1):
        if any(number in wanted for wanted in ranges):
            yield Segment(number, dict(zip(columns, others, strict=True)), prediction)
    if number < last != _ALL.stop - 1:
        raise InputError(f"--segments: there is no segment {last}; {name} ends after {number}")


def _plots(args: argparse.Namespace, segments: Sequence[Segment], drawn: int) -> list[Path]:
    """The file of each segment's picture, so many of which will be `drawn`; or none. Whatever
    stands against one of them is said before a model is loaded."""
    if args.plot is None:
        return []
    from mtmetrics.errors import require_extra

    require_extra("plot", "--plot")
    if args.segments is None and args.worst is None and len(segments) > _UNASKED_PLOTS:
        advice = f"choose some with --segments, such as 1-{_UNASKED_PLOTS}, or with --worst"
        raise InputError(f"--plot: {len(segments)} segments are many heatmaps; {advice}")
    path = Path(args.plot)
    if path.suffix.lower() not in _PLOTS:
        paths = [path / f"segment-{segment.number:04d}.png" for segment in segments]
    elif drawn == 1:
        paths = [path] * len(segments)
    else:
        paths = [path.with_stem(f"{path.stem}-{segment.number:04d}") for segment in segments]
    check_new(paths, "--plot", overwrite=args.overwrite)
    return paths


def _explain(
    scorer: "WordScorer", segments: Sequence[Segment], result: "MetricResult", places: Sequence[int]
) -> Iterator[Explained]:
    """Those of the segments that stand at some places, a block at a time."""
    for block in (
        places[first : first + _ALIGNED_AT_ONCE]
        for first in range(0, len(places), _ALIGNED_AT_ONCE)
    ):
        chosen = [segments[place] for place in block]
        predictions, columns = [segment.prediction for segment in chosen], _columns(chosen)
        alignments: Sequence[Any] = [None] * len(block)
        faults: Sequence[Any] = [None] * len(block)
        if scorer.aligns:
            alignments = scorer.align(predictions, **columns)
        if scorer.aligns and scorer.blames:
            faults = scorer.faults(predictions, alignments)
        elif scorer.blames:
            faults = scorer.blame(predictions, **columns)
        for place, alignment, words in zip(block, alignments, faults, strict=True):
            parts = {name: values[place].item() for name, values in result.parts.items()}
            yield Explained(segments[place], result.segments[place].item(), parts, alignment, words)


def _drawn(
    explained: Iterator[Explained], plots: Sequence[Path], scorer: "Scorer", *, special_tokens: bool
) -> Iterator[Explained]:
    """Draws each on its way."""
    from mtmetrics.reports.figures import save_figure
    from mtmetrics.reports.heatmap import draw_alignment, segment_title

    names = scorer.side.fields[-1], "translation"
    for found, path in zip(explained, plots, strict=True):
        title = segment_title(found.segment.number, found.score, found.parts)
        if found.alignment is not None:
            save_figure(
                draw_alignment(found.alignment, title, names=names, special_tokens=special_tokens),
                path,
            )
        yield found


def _print(
    explained: Iterator[Explained],
    scorer: "Scorer",
    result: "MetricResult",
    args: argparse.Namespace,
) -> None:
    from mtmetrics.scorers.words import blames_words

    form = args.format or ("text" if sys.stdout.isatty() else "json")
    if form == "text":
        for found in explained:
            print(_text(found) + "\n")
        if blames_words(scorer):
            print(_legend())
        print(result.signature)
        return
    output = machine_output()
    documents = (rounded(_document(found), full=args.full_precision) for found in explained)
    lines = map(json_line, documents)
    about = {"signature": result.signature, "report": result.report.as_dict()}
    if form == "jsonl":
        output.writelines(itertools.chain(lines, [json_line(about)]))
    else:
        # A segment per line: spread out, the matrices would take a line per number.
        head = json.dumps(about, ensure_ascii=False, indent=1).removesuffix("\n}")
        print(f'{head},\n "segments": [\n  ' + ",\n  ".join(map(str.rstrip, lines)) + "\n ]\n}")


def _document(found: Explained) -> dict[str, Any]:
    from mtmetrics.matching.word_errors import faults_as_dicts

    document = {
        "segment": found.segment.number,
        **_compared(found),
        "prediction": found.segment.prediction,
        "score": found.score,
        "parts": found.parts,
    }
    if found.alignment is not None:
        document["alignment"] = found.alignment.as_dict()
    if found.faults is not None:
        document["faults"] = faults_as_dicts(found.segment.prediction, found.faults)
    return document


def _text(found: Explained) -> str:
    """For a terminal: both texts, the words at fault marked, what they were matched with, and the
    worst of them."""
    from mtmetrics.reports.heatmap import segment_title
    from mtmetrics.reports.styles import decimals

    lines = [segment_title(found.segment.number, found.score, found.parts)]
    indent = " " * 15
    named = _compared(found) | {"translation": _marked(found)}
    if found.alignment is not None:
        named[found.alignment.cells] = ", ".join(
            f"{word} ← {f'{partner} {decimals(value, 2)}' if partner else '–'}"
            for word, partner, value in found.alignment.without_special_tokens().partners()
        )
    for name, text in named.items():
        lines += textwrap.wrap(
            text, 100, initial_indent=f"{name:<15}", subsequent_indent=indent
        ) or [name]
    worst = sorted(found.faults or (), key=lambda fault: -fault.share)[:_WORST_WORDS]
    if worst:
        words = (
            (
                f"{found.segment.prediction[fault.start : fault.end]} {fault.severity:.2f} "
                f"({fault.share:.0%})"
            )
            for fault in worst
        )
        lines.append(f"{'most at fault':<15}" + ", ".join(words))
    return "\n".join(lines)


def _legend() -> str:
    from mtmetrics.matching.word_errors import LEVELS

    named = zip(LEVELS, ("doubtful", "wrong"), _marks()[1:], strict=True)
    levels = " and ".join(
        f"{before}{name}{behind} from {bound:g}" for bound, name, (before, behind) in named
    )
    return (
        "Most at fault: severity (0 to 1), share of all that the words take away from the "
        f"score; {levels}."
    )


def _marks() -> tuple[tuple[str, str], ...]:
    return _COLOURED if sys.stdout.isatty() and "NO_COLOR" not in os.environ else _PLAIN


def _marked(found: Explained) -> str:
    from mtmetrics.matching.word_errors import level

    text, end, parts = found.segment.prediction, 0, []
    marks = _marks()
    for fault in found.faults or ():
        before, behind = marks[level(fault.severity)]
        parts += [text[end : fault.start], before, text[fault.start : fault.end], behind]
        end = fault.end
    return "".join(parts) + text[end:]


def _compared(found: Explained) -> dict[str, str]:
    """The texts that the translation was compared with, by the names of fields."""
    return {FIELDS[column]: text for column, text in found.segment.compared.items()}
