"""What a segment's score comes from, for pages: the heatmap, and the words at fault."""

import base64
import html
import io
from collections.abc import Sequence

from mtmetrics.errors import InputError
from mtmetrics.evaluation.heatmap import draw_alignment
from mtmetrics.matching.faults import Fault, level
from mtmetrics.scorers.base import MetricResult, Scorer

_SEEMS = ("right", "doubtful", "wrong")


def heatmap(scorer: Scorer, other: str, prediction: str, title: str) -> str:
    """The alignment of a segment as a picture in HTML; a sentence where the metric, as it is set up, matches no words.

    Args:
        scorer: of the metric.
        other: source or reference.
        prediction: the translation.
        title: over the picture.
    """
    if cells(scorer) is None:
        return '<div class="mt-picture"><p>This metric compares whole texts, so no words are matched.</p></div>'
    [alignment] = scorer.align([other], [prediction])
    names = (scorer.compares.removesuffix("s"), "translation")
    figure = draw_alignment(alignment, title, names=names)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi="figure")
    width = round(figure.get_size_inches()[0] * figure.dpi / 1.5)
    data = base64.b64encode(stream.getvalue()).decode()
    alternative = html.escape(f"{title}: what was matched with what")
    return f'<div class="mt-picture"><img width="{width}" alt="{alternative}" src="data:image/png;base64,{data}"></div>'


def title(number: int, result: MetricResult) -> str:
    """Of the heatmap of a segment, numbered from 0 up."""
    return f"Segment {number + 1}: score {result.segments[number]:.4f}"


def cells(scorer: Scorer) -> str | None:
    """What the cells of its alignments hold; None where it matches no words."""
    try:
        return scorer.cells
    except InputError:
        return None


def coloured(scorer: Scorer, others: Sequence[str], predictions: Sequence[str]) -> list[str]:
    """The translations in HTML, with their doubtful and wrong words marked; none where the metric blames no words."""
    if cells(scorer) not in ("cost", "cosine"):
        return []
    found = scorer.faults(predictions, scorer.align(others, predictions))
    return [_marked(text, faults) for text, faults in zip(predictions, found, strict=True)]


def _marked(text: str, faults: Sequence[Fault]) -> str:
    parts, end = [], 0
    for fault in faults:
        seems = _SEEMS[level(fault.severity)]
        if seems == "right":
            continue
        word = html.escape(text[fault.start : fault.end])
        told = f"seems {seems}: {fault.severity:.2f} of 1"
        parts += [html.escape(text[end : fault.start]), f'<mark class="mt-{seems}" title="{told}">{word}</mark>']
        end = fault.end
    return "".join(parts) + html.escape(text[end:])
