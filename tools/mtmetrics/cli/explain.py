"""``mtmetrics explain``: which words a score comes from, as text, JSON and heatmaps.

`run` reads the chosen segments, scores all of them, and explains those that are shown, a block at a
time: `_explain` finds the words, `_draw` makes heatmaps on the way, `_print` writes the rest."""

import argparse
import itertools
import json
import os
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mtmetrics.checks import positive
from mtmetrics.cli import messages, options
from mtmetrics.cli.output import Document, check_new, machine_output, rounded
from mtmetrics.cli.rows import TextRow, open_rows
from mtmetrics.errors import InputError
from mtmetrics.io.atomic import make_folder
from mtmetrics.io.lines import json_line
from mtmetrics.scorers.side import FIELD_OF_COLUMN, Column

if TYPE_CHECKING:
    from mtmetrics.matching.plan import Alignment
    from mtmetrics.matching.word_errors import Fault
    from mtmetrics.scorers.base import Scorer
    from mtmetrics.scorers.results import MetricResult
    from mtmetrics.scorers.words import WordScorer

_ALL_SEGMENTS = range(1, sys.maxsize)
# More heatmaps than this are drawn only where the user chooses segments.
_MOST_HEATMAPS = 100
_BLOCK_SEGMENTS = 64
_PICTURE_SUFFIXES = (".png", ".svg", ".pdf")
# Marks before and behind a word that seems right, doubtful or wrong.
_PLAIN_MARKS = (("", ""), ("[", "]"), ("[[", "]]"))
# Colours in their place: yellow and red.
_COLOURED_MARKS = (("", ""), ("\x1b[30;43m", "\x1b[0m"), ("\x1b[97;41m", "\x1b[0m"))
_MOST_WORST_WORDS = 5
_LABEL_WIDTH = 15


class Segment(NamedTuple):
    """A row of the input.

    Attributes:
        number: of the row, from 1.
        compared: column -> the text that the prediction is compared with.
        prediction: the translation.
    """

    number: int
    compared: dict[Column, str]
    prediction: str

    @property
    def compared_fields(self) -> dict[str, str]:
        """The texts that the prediction is compared with, by the names of their fields."""
        return {FIELD_OF_COLUMN[column]: text for column, text in self.compared.items()}


class Explained(NamedTuple):
    """A segment, its score, and the words that the score comes from.

    Attributes:
        segment: the texts.
        score: of the segment.
        parts: name of a part of the score -> its value.
        alignment: which words were matched; None where the metric matches none.
        faults: words at fault; None where the metric blames none.
    """

    segment: Segment
    score: float
    parts: dict[str, float]
    alignment: "Alignment | None"
    faults: "list[Fault] | None"

    @property
    def title(self) -> str:
        from mtmetrics.reports.heatmap import segment_title

        return segment_title(self.segment.number, self.score, self.parts)


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
    format_help = (
        "text, JSON, or a line of JSON per segment and one at the end (default: text on a "
        "terminal, else json)"
    )
    output = options.add_output_options(parser, ("text", "json", "jsonl"), format_help=format_help)
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
            f"are several; more than {_MOST_HEATMAPS} only where --segments or --worst asks for "
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


def run(args: argparse.Namespace) -> None:
    """Scores, aligns, draws and prints."""
    _require_single_texts(args)
    ranges = _read_ranges(args.segments)
    if args.worst is not None:
        positive("--worst", args.worst)
    loader = options.single_metric_options(args)
    inputs = open_rows(args, [loader])
    [system], [side] = inputs.systems, inputs.sides
    segments = list(_chosen_segments(inputs.rows, ranges, system, side.columns))
    heatmap_paths = _heatmap_paths(args, segments)
    from mtmetrics.scorers.registry import load_scorer
    from mtmetrics.scorers.words import can_blame_words, require_word_scorer

    scorer = load_scorer(pool=options.model_pool(args), **loader | {"against": side})
    if heatmap_paths or not can_blame_words(scorer):
        # Raises an error where no words are matched, before anything is scored or drawn.
        _ = require_word_scorer(scorer).cells
    if heatmap_paths:
        make_folder(heatmap_paths[0].parent)  # all are in one folder
    with messages.scoring(len(segments)):
        result = scorer.score([segment.prediction for segment in segments], **_columns(segments))
    places = range(len(segments))
    if args.worst:
        places = result.segments.argsort(kind="stable")[: args.worst].tolist()
    explained = messages.progress(
        _explain(require_word_scorer(scorer), segments, result, places),
        total=len(places),
        desc="explaining",
        unit=" segments",
    )
    if heatmap_paths:
        paths = [heatmap_paths[place] for place in places]
        explained = _draw(explained, paths, scorer, special_tokens=args.plot_special_tokens)
    _print(explained, scorer, result, args)


def _require_single_texts(args: argparse.Namespace) -> None:
    """Refuses several systems, and several references per segment."""
    refusals = {
        "-t: explain takes the translations of one system": args.predictions,
        "-r: explain takes one reference per segment": args.references,
    }
    for refusal, paths in refusals.items():
        if len(paths) > 1:
            raise InputError(f"{refusal}, got {len(paths)} files")


def _read_ranges(text: str | None) -> list[range]:
    """Reads numbers and ranges of segments from 1 up, such as ``1,4-6``; None chooses all."""
    if text is None:
        return [_ALL_SEGMENTS]
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


def _chosen_segments(
    rows: Iterator[TextRow], ranges: Sequence[range], system: str, columns: Sequence[Column]
) -> Iterator[Segment]:
    """Yields the segments whose numbers are in one of the ranges. Reads no further than the last.

    Raises:
        InputError: the rows of the system end before the last of these segments.
    """
    last = max(numbers.stop for numbers in ranges) - 1
    number = 0
    for number, (*compared, prediction) in enumerate(itertools.islice(rows, last), 1):
        if any(number in numbers for numbers in ranges):
            yield Segment(number, dict(zip(columns, compared, strict=True)), prediction)
    has_last = last != _ALL_SEGMENTS.stop - 1
    if has_last and number < last:
        raise InputError(f"--segments: there is no segment {last}; {system} ends after {number}")


def _columns(segments: Sequence[Segment]) -> dict[Column, list[str]]:
    """Returns the texts that segments are compared with, by column."""
    return {
        column: [segment.compared[column] for segment in segments]
        for column in segments[0].compared
    }


def _heatmap_paths(args: argparse.Namespace, segments: Sequence[Segment]) -> list[Path]:
    """Returns the file of each segment's heatmap; none without --plot.

    Raises:
        InputError: there are too many, or a file exists already.
    """
    if args.plot is None:
        return []
    from mtmetrics.errors import require_extra

    require_extra("plot", "--plot")
    if args.segments is None and args.worst is None and len(segments) > _MOST_HEATMAPS:
        advice = f"choose some with --segments, such as 1-{_MOST_HEATMAPS}, or with --worst"
        raise InputError(f"--plot: {len(segments)} segments are many heatmaps; {advice}")
    path = Path(args.plot)
    heatmaps = min(args.worst or len(segments), len(segments))
    if path.suffix.lower() not in _PICTURE_SUFFIXES:
        paths = [path / f"segment-{segment.number:04d}.png" for segment in segments]
    elif heatmaps == 1:
        paths = [path] * len(segments)
    else:
        paths = [path.with_stem(f"{path.stem}-{segment.number:04d}") for segment in segments]
    check_new(paths, "--plot", overwrite=args.overwrite)
    return paths


def _explain(
    scorer: "WordScorer", segments: Sequence[Segment], result: "MetricResult", places: Sequence[int]
) -> Iterator[Explained]:
    """Explains some of the segments, a block at a time.

    Args:
        scorer: of the metric.
        segments: all that were scored.
        result: the scores of `segments`.
        places: index of each segment to explain.
    """
    for first in range(0, len(places), _BLOCK_SEGMENTS):
        block_places = places[first : first + _BLOCK_SEGMENTS]
        block = [segments[place] for place in block_places]
        predictions, columns = [segment.prediction for segment in block], _columns(block)
        alignments: Sequence[Alignment | None] = [None] * len(block)
        faults: Sequence[list[Fault] | None] = [None] * len(block)
        if scorer.can_align:
            alignments = scorer.align(predictions, **columns)
        if scorer.can_align and scorer.can_blame:
            faults = scorer.faults(predictions, alignments)
        elif scorer.can_blame:
            faults = scorer.blame(predictions, **columns)
        for place, alignment, segment_faults in zip(block_places, alignments, faults, strict=True):
            yield Explained(
                segments[place],
                score=result.segments[place].item(),
                parts={name: values[place].item() for name, values in result.parts.items()},
                alignment=alignment,
                faults=segment_faults,
            )


def _draw(
    explained: Iterator[Explained], paths: Sequence[Path], scorer: "Scorer", *, special_tokens: bool
) -> Iterator[Explained]:
    """Draws the heatmap of each segment, and passes the segment on."""
    from mtmetrics.reports.figures import save_figure
    from mtmetrics.reports.heatmap import draw_alignment

    names = scorer.side.fields[-1], "translation"
    for item, path in zip(explained, paths, strict=True):
        if item.alignment is not None:
            figure = draw_alignment(
                item.alignment, item.title, names=names, special_tokens=special_tokens
            )
            save_figure(figure, path)
        yield item


def _print(
    explained: Iterator[Explained],
    scorer: "Scorer",
    result: "MetricResult",
    args: argparse.Namespace,
) -> None:
    """Prints the segments as --format says, with the signature of the scores."""
    from mtmetrics.scorers.words import can_blame_words

    form = args.format or ("text" if sys.stdout.isatty() else "json")
    if form == "text":
        for item in explained:
            print(_text(item) + "\n")
        if can_blame_words(scorer):
            print(_legend())
        print(result.signature)
        return
    output = machine_output()
    documents = (rounded(_document(item), full=args.full_precision) for item in explained)
    lines = map(json_line, documents)
    about = {"signature": result.signature, "report": result.report.as_dict()}
    if form == "jsonl":
        output.writelines(itertools.chain(lines, [json_line(about)]))
    else:
        # A segment per line: spread out, the matrices would take a line per number.
        head = json.dumps(about, ensure_ascii=False, indent=1).removesuffix("\n}")
        print(f'{head},\n "segments": [\n  ' + ",\n  ".join(map(str.rstrip, lines)) + "\n ]\n}")


def _document(item: Explained) -> Document:
    """Returns an explained segment as an object of JSON."""
    from mtmetrics.matching.word_errors import faults_as_dicts

    document = {
        "segment": item.segment.number,
        **item.segment.compared_fields,
        "prediction": item.segment.prediction,
        "score": item.score,
        "parts": item.parts,
    }
    if item.alignment is not None:
        document["alignment"] = item.alignment.as_dict()
    if item.faults is not None:
        document["faults"] = faults_as_dicts(item.segment.prediction, item.faults)
    return document


def _text(item: Explained) -> str:
    """Returns an explained segment for a terminal: its texts with the words at fault marked, what
    words were matched with, and the worst words."""
    texts = item.segment.compared_fields
    texts["translation"] = _marked_prediction(item)
    if item.alignment is not None:
        texts[item.alignment.cells] = _matched_words(item.alignment)
    lines = [item.title]
    for name, text in texts.items():
        wrapped_lines = textwrap.wrap(
            text,
            100,
            initial_indent=f"{name:<{_LABEL_WIDTH}}",
            subsequent_indent=" " * _LABEL_WIDTH,
        )
        lines += wrapped_lines or [name]
    worst_faults = sorted(item.faults or (), key=lambda fault: -fault.share)[:_MOST_WORST_WORDS]
    if worst_faults:
        words = []
        for fault in worst_faults:
            word = item.segment.prediction[fault.start : fault.end]
            words.append(f"{word} {fault.severity:.2f} ({fault.share:.0%})")
        lines.append(f"{'most at fault':<{_LABEL_WIDTH}}" + ", ".join(words))
    return "\n".join(lines)


def _matched_words(alignment: "Alignment") -> str:
    """Returns each word of a translation with the word that it was matched with."""
    from mtmetrics.reports.styles import decimals

    matches = []
    for word, partner, value in alignment.without_special_tokens().partners():
        match = f"{partner} {decimals(value, 2)}" if partner else "–"
        matches.append(f"{word} ← {match}")
    return ", ".join(matches)


def _legend() -> str:
    """Returns what the marks and numbers of words at fault mean."""
    from mtmetrics.matching.word_errors import LEVELS

    levels = []
    for bound, name, (before, behind) in zip(
        LEVELS, ("doubtful", "wrong"), _marks()[1:], strict=True
    ):
        levels.append(f"{before}{name}{behind} from {bound:g}")
    return (
        "Most at fault: severity (0 to 1), share of all that the words take away from the "
        f"score; {' and '.join(levels)}."
    )


def _marks() -> tuple[tuple[str, str], ...]:
    """Returns the marks around words: in colour on a terminal."""
    has_colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return _COLOURED_MARKS if has_colour else _PLAIN_MARKS


def _marked_prediction(item: Explained) -> str:
    """Returns the translation with its words at fault between marks."""
    from mtmetrics.matching.word_errors import level

    prediction, pieces, end = item.segment.prediction, [], 0
    marks = _marks()
    for fault in item.faults or ():
        before, behind = marks[level(fault.severity)]
        pieces += [prediction[end : fault.start], before, prediction[fault.start : fault.end]]
        pieces.append(behind)
        end = fault.end
    return "".join(pieces) + prediction[end:]
