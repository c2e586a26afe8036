"""``mtmetrics explain``: which words a score comes from, as text, JSON and heatmaps.

A word at fault is a word of the translation that lowers the score.

`run` reads and scores the chosen segments. Then three steps follow each other: `_explain` yields an
`Explanation` for each segment, `_draw` saves its heatmap and passes it on, and `_print` writes it."""

import argparse
import itertools
import json
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mtmetrics.checks import positive
from mtmetrics.cli import messages, options
from mtmetrics.cli.output import Document, check_new, rounded, utf8_output
from mtmetrics.cli.rows import TextRow, open_rows
from mtmetrics.errors import InputError, require_extra
from mtmetrics.io.atomic import make_folder
from mtmetrics.io.lines import json_line
from mtmetrics.matching.plan import Alignment
from mtmetrics.matching.word_errors import LEVELS, Fault, faults_as_dicts, level
from mtmetrics.reports.figures import save_figure
from mtmetrics.reports.heatmap import draw_alignment, segment_title
from mtmetrics.reports.styles import decimals
from mtmetrics.scorers.results import MetricResult
from mtmetrics.scorers.side import FIELD_OF_COLUMN, Column, Side
from mtmetrics.scorers.words import WordScorer, require_word_scorer

_ALL_SEGMENTS = range(1, sys.maxsize)
# Without --segments or --worst, explain refuses to draw more heatmaps than this.
_MAX_HEATMAPS = 100
# Segments that are aligned at a time.
_SEGMENTS_PER_BLOCK = 64
_IMAGE_SUFFIXES = (".png", ".svg", ".pdf")
# Marks before and after a word that seems right, doubtful or wrong, by its level; see
# `mtmetrics.matching.word_errors.level`.
_PLAIN_MARKS = (("", ""), ("[", "]"), ("[[", "]]"))
# Terminal colours of these marks: none, yellow and red.
_COLOURED_MARKS = (("", ""), ("\x1b[30;43m", "\x1b[0m"), ("\x1b[97;41m", "\x1b[0m"))
_WORST_WORDS_SHOWN = 5
_LABEL_WIDTH = 15


class Segment(NamedTuple):
    """A segment of the input: a translation, and the texts that it is compared with.

    Attributes:
        number: number of the segment, counted from 1.
        compared_texts: the texts that the metric compares with: "source" or "reference" -> text.
        prediction: the translation.
    """

    number: int
    compared_texts: dict[str, str]
    prediction: str


class Explanation(NamedTuple):
    """A segment, its score, and the words that the score comes from.

    Attributes:
        segment: number and texts of the segment.
        score: the score of the segment.
        parts: name of a part of the score -> its value.
        alignment: which words were matched; None if the metric does not match words.
        faults: words at fault; None if the metric does not look for them.
    """

    segment: Segment
    score: float
    parts: dict[str, float]
    alignment: Alignment | None
    faults: list[Fault] | None

    @property
    def title(self) -> str:
        return segment_title(self.segment.number, self.score, self.parts)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Shows, for every segment, its score, the parts of the score, the words at fault in the "
        "translation, and the alignment behind the score: which words were matched, at which "
        "cost, cosine or attention, and with how much of the words' weight. Metrics that predict "
        "error spans show only the spans. A word at fault has a severity from 0 to 1, and a share: "
        "the part of the whole loss in score that is due to this word. Only the chosen segments "
        "are scored; --worst scores all of them first."
    )
    options.add_row_options(parser)
    options.add_metric_options(parser)
    format_help = (
        "text, JSON, or JSON Lines with one line per segment and a last line with signature and "
        "report (default: text on a terminal, else json)"
    )
    output = options.add_output_options(parser, ("text", "json", "jsonl"), format_help=format_help)
    segments = output.add_mutually_exclusive_group()
    segments.add_argument(
        "--segments",
        metavar="LIST",
        help="numbers and ranges, counted from 1, such as 1,4-6; in the order of the input "
        "(default: all)",
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
            "also draw heatmaps as PATH/segment-0001.png and so on. If PATH ends in .png, .svg or "
            ".pdf, draw that file; with several heatmaps, the segment number is inserted before "
            f"this ending. More than {_MAX_HEATMAPS} heatmaps need --segments or --worst"
        ),
    )
    output.add_argument(
        "--plot-special-tokens",
        action="store_true",
        help="also show special tokens, such as [CLS], in the heatmaps",
    )
    output.add_argument(
        "--overwrite", action="store_true", help="replace heatmaps that exist already"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Explains the chosen segments, and draws and prints them."""
    _require_single_texts(args)
    ranges = _read_ranges(args.segments)
    if args.worst is not None:
        positive("--worst", args.worst)
    spec = options.single_metric(args)
    inputs = open_rows(args, [spec])
    [system], [side] = inputs.systems, inputs.sides
    segments = _read_segments(inputs.rows, ranges, system, side)
    heatmap_paths = _heatmap_paths(args, segments)
    scorer = require_word_scorer(spec.having(against=side).load(options.model_pool(args), args.lp))
    # A metric that predicts error spans has faults, but no alignment to draw.
    needs_alignment = heatmap_paths or not scorer.can_blame
    if needs_alignment:
        # Raises InputError, before anything is scored, if the metric does not match words.
        _ = scorer.cells
    if heatmap_paths:
        make_folder(heatmap_paths[0].parent)  # all are in one folder
    with messages.scoring(len(segments)):
        predictions = [segment.prediction for segment in segments]
        result = scorer.score(predictions, **_columns(segments, side))
    # Indices of the segments to explain.
    indices = list(range(len(segments)))
    if args.worst:
        indices = result.segments.argsort(kind="stable")[: args.worst].tolist()
    explanations = messages.progress(
        _explain(scorer, segments, result, indices),
        total=len(indices),
        desc="explaining",
        unit=" segments",
    )
    if heatmap_paths:
        paths = [heatmap_paths[index] for index in indices]
        explanations = _draw(explanations, paths, scorer, special_tokens=args.plot_special_tokens)
    _print(explanations, scorer, result, args)


def _require_single_texts(args: argparse.Namespace) -> None:
    """Raises InputError for several systems, and for several references per segment."""
    if len(args.predictions) > 1:
        raise InputError(
            f"-t: explain takes the translations of one system, got {len(args.predictions)} files"
        )
    if len(args.references) > 1:
        raise InputError(
            f"-r: explain takes one reference per segment, got {len(args.references)} files"
        )


def _read_ranges(text: str | None) -> list[range]:
    """Reads segment numbers and ranges of them, such as ``1,4-6``; None chooses all segments.

    Raises:
        InputError: a number is below 1, a range is empty, or an item is neither.
    """
    if text is None:
        return [_ALL_SEGMENTS]
    ranges = []
    for item in text.split(","):
        segment_range = range(0)
        match = re.fullmatch(r"\s*([0-9]{1,12})(?:-([0-9]{1,12}))?\s*", item)
        if match:
            first, last = match[1], match[2] or match[1]
            segment_range = range(int(first), int(last) + 1)
        is_empty = not segment_range
        if is_empty or segment_range.start < 1:
            raise InputError(
                f"--segments {text!r}: {item!r} is no number or range from 1 up, such as 3 or 4-6"
            )
        ranges.append(segment_range)
    return ranges


def _read_segments(
    rows: Iterator[TextRow], ranges: Sequence[range], system: str, side: Side
) -> list[Segment]:
    """Returns the segments whose numbers are in one of the ranges. Stops reading after the last one.

    Raises:
        InputError: the rows of the system end before the last of these segments.
    """
    last = max(segment_range.stop for segment_range in ranges) - 1
    segments = []
    number = 0
    for number, (*compared_texts, prediction) in enumerate(itertools.islice(rows, last), 1):
        if any(number in segment_range for segment_range in ranges):
            text_of_field = dict(zip(side.fields, compared_texts, strict=True))
            segments.append(Segment(number, text_of_field, prediction))
    is_bounded = _ALL_SEGMENTS not in ranges
    if is_bounded and number < last:
        raise InputError(f"--segments: there is no segment {last}; {system} ends after {number}")
    return segments


def _columns(segments: Sequence[Segment], side: Side) -> dict[Column, list[str]]:
    """Returns the texts that segments are compared with, by column."""
    return {
        column: [segment.compared_texts[FIELD_OF_COLUMN[column]] for segment in segments]
        for column in side.columns
    }


def _heatmap_paths(args: argparse.Namespace, segments: Sequence[Segment]) -> list[Path]:
    """Returns the file of each segment's heatmap; an empty list without --plot.

    With --worst these are the files of all segments, although few are drawn: scoring decides which.

    Raises:
        InputError: there are too many heatmaps, or a file exists already.
    """
    if args.plot is None:
        return []
    require_extra("plot", "--plot")
    if args.segments is None and args.worst is None and len(segments) > _MAX_HEATMAPS:
        advice = f"choose some with --segments, such as 1-{_MAX_HEATMAPS}, or with --worst"
        raise InputError(f"--plot: {len(segments)} segments are many heatmaps; {advice}")
    path = Path(args.plot)
    heatmap_count = min(args.worst or len(segments), len(segments))
    if path.suffix.lower() not in _IMAGE_SUFFIXES:
        paths = [path / f"segment-{segment.number:04d}.png" for segment in segments]
    elif heatmap_count == 1:
        # Scoring decides which segment --worst 1 draws.
        paths = [path] * len(segments)
    else:
        paths = [path.with_stem(f"{path.stem}-{segment.number:04d}") for segment in segments]
    check_new(paths, "--plot", overwrite=args.overwrite)
    return paths


def _explain(
    scorer: WordScorer,
    segments: Sequence[Segment],
    result: MetricResult,
    indices: Sequence[int],
) -> Iterator[Explanation]:
    """Explains some of the segments, a block at a time.

    Args:
        scorer: aligns words, or finds words at fault.
        segments: all segments that were scored.
        result: the scores of `segments`.
        indices: the indices of the segments to explain.
    """
    for first in range(0, len(indices), _SEGMENTS_PER_BLOCK):
        block_indices = indices[first : first + _SEGMENTS_PER_BLOCK]
        block = [segments[index] for index in block_indices]
        predictions = [segment.prediction for segment in block]
        alignments, faults = scorer.explain(predictions, **_columns(block, scorer.side))
        for index, alignment, segment_faults in zip(block_indices, alignments, faults, strict=True):
            yield Explanation(
                segments[index],
                score=result.segments[index].item(),
                parts={name: values[index].item() for name, values in result.parts.items()},
                alignment=alignment,
                faults=segment_faults,
            )


def _draw(
    explanations: Iterator[Explanation],
    paths: Sequence[Path],
    scorer: WordScorer,
    *,
    special_tokens: bool,
) -> Iterator[Explanation]:
    """Saves the heatmap of each explained segment, and yields the explanation unchanged."""
    # The last field is the reference for a metric that compares with both sides.
    axis_names = scorer.side.fields[-1], "translation"
    for explanation, path in zip(explanations, paths, strict=True):
        if explanation.alignment is not None:
            figure = draw_alignment(
                explanation.alignment,
                explanation.title,
                names=axis_names,
                special_tokens=special_tokens,
            )
            save_figure(figure, path)
        yield explanation


def _print(
    explanations: Iterator[Explanation],
    scorer: WordScorer,
    result: MetricResult,
    args: argparse.Namespace,
) -> None:
    """Prints the segments in the format of --format, with the signature of the scores."""
    output_format = args.format or ("text" if sys.stdout.isatty() else "json")
    if output_format == "text":
        for explanation in explanations:
            print(_text(explanation) + "\n")
        if scorer.can_blame:
            print(_legend())
        print(result.signature)
    else:
        segment_lines = (
            json_line(rounded(document, full_precision=args.full_precision))
            for document in map(_document, explanations)
        )
        summary = {"signature": result.signature, "report": result.report.as_dict()}
        _write_json(segment_lines, summary, output_format)


def _write_json(segment_lines: Iterable[str], summary: Document, output_format: str) -> None:
    """Writes segments and a summary to standard output.

    Args:
        segment_lines: each segment as a line of JSON.
        summary: signature and report.
        output_format: "jsonl" for JSON Lines, whose last line is the summary; "json" for one
            document.
    """
    output = utf8_output()
    if output_format == "jsonl":
        output.writelines(segment_lines)
        output.write(json_line(summary))
        return
    # Each segment stays on one line. `json.dump` with indents would write each number of a matrix
    # on a line of its own.
    opening = json.dumps(summary, ensure_ascii=False, indent=1).removesuffix("\n}")
    segments = ",\n  ".join(map(str.rstrip, segment_lines))
    output.write(f'{opening},\n "segments": [\n  {segments}\n ]\n}}\n')


def _document(explanation: Explanation) -> Document:
    """Returns an explained segment as a JSON object."""
    segment = explanation.segment
    document = {
        "segment": segment.number,
        **segment.compared_texts,
        "prediction": segment.prediction,
        "score": explanation.score,
        "parts": explanation.parts,
    }
    if explanation.alignment is not None:
        document["alignment"] = explanation.alignment.as_dict()
    if explanation.faults is not None:
        document["faults"] = faults_as_dicts(segment.prediction, explanation.faults)
    return document


def _text(explanation: Explanation) -> str:
    """Returns an explained segment for a terminal: its texts with the words at fault marked, the
    matched words, and the worst words."""
    texts = dict(explanation.segment.compared_texts)
    texts["translation"] = _marked_prediction(explanation)
    alignment = explanation.alignment
    if alignment is not None:
        # `cells` is the kind of number that matched words have: cost, cosine or attention.
        texts[alignment.cells] = _matched_words(alignment)
    lines = [explanation.title]
    for name, text in texts.items():
        wrapped_lines = textwrap.wrap(
            text,
            100,
            initial_indent=f"{name:<{_LABEL_WIDTH}}",
            subsequent_indent=" " * _LABEL_WIDTH,
        )
        lines += wrapped_lines or [name]  # an empty text has no lines
    faults = sorted(explanation.faults or (), key=lambda fault: -fault.share)
    worst_faults = faults[:_WORST_WORDS_SHOWN]
    if worst_faults:
        words = []
        for fault in worst_faults:
            word = explanation.segment.prediction[fault.start : fault.end]
            words.append(f"{word} {fault.severity:.2f} ({fault.share:.0%})")
        lines.append(f"{'most at fault':<{_LABEL_WIDTH}}" + ", ".join(words))
    return "\n".join(lines)


def _matched_words(alignment: Alignment) -> str:
    """Returns each word of a translation with the word that it was matched with, such as
    ``dog ← Hund 0.12``."""
    matches = []
    for word, partner, value in alignment.without_special_tokens().partners():
        match = f"{partner} {decimals(value, 2)}" if partner else "–"
        matches.append(f"{word} ← {match}")
    return ", ".join(matches)


def _legend() -> str:
    """Returns the legend for the marks and numbers of words at fault."""
    levels = []
    for bound, name, (before, after) in zip(
        LEVELS, ("doubtful", "wrong"), _marks()[1:], strict=True
    ):
        levels.append(f"{before}{name}{after} from {bound:g}")
    return (
        "Most at fault: severity (0 to 1), in brackets the share of the loss of score; "
        f"{' and '.join(levels)}."
    )


def _marks() -> tuple[tuple[str, str], ...]:
    """Returns the marks around words: in colour on a terminal."""
    has_colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return _COLOURED_MARKS if has_colour else _PLAIN_MARKS


def _marked_prediction(explanation: Explanation) -> str:
    """Returns the translation with marks around its words at fault."""
    prediction = explanation.segment.prediction
    marks = _marks()
    marked, end_before = "", 0
    for fault in explanation.faults or ():
        before, after = marks[level(fault.severity)]
        word = prediction[fault.start : fault.end]
        marked += prediction[end_before : fault.start] + before + word + after
        end_before = fault.end
    return marked + prediction[end_before:]
