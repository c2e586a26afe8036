"""``mtmetrics explain``: which words a score comes from, as JSON and as heatmaps."""

import argparse
import itertools
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mtmetrics.cli.io import input_rows
from mtmetrics.cli.options import add_metric_options, add_row_options, metric_options, model_pool, progress, scoring
from mtmetrics.errors import InputError, MTMetricsError

if TYPE_CHECKING:
    from mtmetrics.scorers.base import MetricResult, Scorer

_ALL = range(1, sys.maxsize)
_UNASKED_PLOTS = 100
_ALIGNED_AT_ONCE = 64


class Segment(NamedTuple):
    """A row of the input with its number, counted from 1; `other` is the source or the reference."""

    number: int
    other: str
    prediction: str


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "explain",
        help="show which words were matched with which",
        description="Prints, for every segment, its score, the parts of the score, and the alignment behind it: the "
        "words of both sides, how much of the mass moves from word to word (flow), and how far (cost). Only the chosen "
        "segments are scored.",
    )
    add_row_options(parser)
    add_metric_options(parser)
    output = parser.add_argument_group("output")
    text = "numbers and ranges, counted from 1, such as 1,4-6 (default: all)"
    output.add_argument("--segments", metavar="LIST", help=text)
    text = "json, or a line per segment and one at the end (default: %(default)s)"
    output.add_argument("--format", choices=("json", "jsonl"), default="json", help=text)
    output.add_argument(
        "--plot",
        metavar="DIR",
        help=f"also draw heatmaps, DIR/segment-0001.png and so on; more than {_UNASKED_PLOTS} only where --segments "
        "asks for them",
    )
    output.add_argument("--overwrite", action="store_true", help="replace heatmaps that exist already")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Scores, aligns, draws and prints."""
    takes = "-t: explain takes the translations of one system", "-r: explain takes one reference per segment"
    for given, one in zip((args.predictions, args.references), takes, strict=True):
        if given and len(given) > 1:
            raise InputError(f"{one}, got {len(given)} files")
    ranges = _ranges(args.segments)
    [name], rows, compared = input_rows(args)
    segments = list(_choose(rows, ranges, name))
    plots = _plots(args, segments)
    from mtmetrics.scorers.registry import load_scorer

    options = metric_options(args) | compared
    scorer = load_scorer(options.pop("metric"), pool=model_pool(args), **options)
    with scoring(len(segments)):
        result = scorer.score([segment.other for segment in segments], [segment.prediction for segment in segments])
    explained = _explain(scorer, segments, result, plots)
    explained = progress(explained, total=len(segments), desc="explaining", unit=" segments")
    lines = (json.dumps(segment, ensure_ascii=False) for segment in explained)
    about = {"signature": result.signature, "report": result.report.as_dict()}
    if args.format == "jsonl":
        for line in lines:
            print(line)
        print(json.dumps(about, ensure_ascii=False))
    else:
        # A segment per line: spread out, the matrices would take a line per number.
        head = json.dumps(about, ensure_ascii=False, indent=1).removesuffix("\n}")
        print(f'{head},\n "segments": [\n  ' + ",\n  ".join(lines) + "\n ]\n}")
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
            raise InputError(f"--segments {text!r}: {item!r} is no number or range from 1 up, such as 3 or 4-6")
        ranges.append(range(first, last + 1))
    return ranges


def _choose(rows: Iterator[list[str]], ranges: Sequence[range], name: str) -> Iterator[Segment]:
    """Reads as far as the last segment that is wanted."""
    last = max(wanted.stop for wanted in ranges) - 1
    number = 0
    for number, (other, prediction) in enumerate(itertools.islice(rows, last), 1):
        if any(number in wanted for wanted in ranges):
            yield Segment(number, other, prediction)
    if number < last != _ALL.stop - 1:
        raise InputError(f"--segments: there is no segment {last}; {name} ends after {number}")


def _plots(args: argparse.Namespace, segments: Sequence[Segment]) -> list[Path]:
    """The files to draw, one per segment, or none; whatever stands against it is said before any model is loaded."""
    if args.plot is None:
        return []
    from mtmetrics.errors import require_extra

    require_extra("plot", "--plot")
    if args.segments is None and len(segments) > _UNASKED_PLOTS:
        advice = f"choose some with --segments, such as 1-{_UNASKED_PLOTS}"
        raise InputError(f"--plot: {len(segments)} segments are many heatmaps; {advice}")
    folder = Path(args.plot)
    paths = [folder / f"segment-{segment.number:04d}.png" for segment in segments]
    existing = next((path for path in paths if path.exists()), None)
    if existing is not None and not args.overwrite:
        raise InputError(f"{existing} exists already; pass --overwrite or another --plot folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MTMetricsError(f"cannot write {folder}: {error.strerror or error}") from error
    return paths


def _explain(
    scorer: "Scorer", segments: Sequence[Segment], result: "MetricResult", plots: Sequence[Path]
) -> Iterator[dict[str, Any]]:
    from mtmetrics.scorers.base import chunked

    blocks = chunked((segment[1:] for segment in segments), _ALIGNED_AT_ONCE)
    alignments = (alignment for others, predictions in blocks for alignment in scorer.align(others, predictions))
    for index, (segment, alignment) in enumerate(zip(segments, alignments, strict=True)):
        score = result.segments[index].item()
        if plots:
            from mtmetrics.evaluation.figures import save_figure
            from mtmetrics.evaluation.heatmap import draw_alignment

            save_figure(draw_alignment(alignment, f"Segment {segment.number}: score {score:.4f}"), plots[index])
        yield {
            "segment": segment.number,
            scorer.compares.removesuffix("s"): segment.other,
            "prediction": segment.prediction,
            "score": score,
            "parts": {name: values[index].item() for name, values in result.parts.items()},
            "alignment": alignment.as_dict(),
        }
