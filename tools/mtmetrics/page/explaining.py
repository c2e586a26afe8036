"""Explanations of a segment's score in HTML: the heatmap, and the translation with its wrong words
marked."""

import base64
import html
import io
from collections.abc import Mapping, Sequence

from mtmetrics.matching.word_errors import Fault, level
from mtmetrics.reports.figures import label_fonts
from mtmetrics.reports.heatmap import draw_alignment, segment_title
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.results import MetricResult
from mtmetrics.scorers.words import require_word_scorer

# Pixels of a picture for each pixel of the page, so that it is sharp on fine screens.
_DENSITY = 1.5
# Words for the levels of `mtmetrics.matching.word_errors.level`.
_LEVELS = ("right", "doubtful", "wrong")


def heatmap(
    scorer: Scorer,
    columns: Mapping[str, Sequence[str]],
    prediction: str,
    result: MetricResult,
    number: int,
) -> str:
    """Draws the alignment of a segment. For a metric that matches no words it says so instead.

    Args:
        scorer: scorer of the metric.
        columns: sources, references or both, as lists of one text; the scorer takes those that it
            compares with.
        prediction: the translation.
        result: scores of the system, by the metric.
        number: number of the segment in `result`, from 0.

    Returns:
        HTML.
    """
    if not scorer.can_align:
        return (
            '<div class="mt-picture"><p>By this metric no words are matched, so there is no '
            "heatmap.</p></div>"
        )
    parts = {name: float(values[number]) for name, values in result.parts.items()}
    title = segment_title(number + 1, float(result.segments[number]), parts)
    [alignment] = require_word_scorer(scorer).align([prediction], **columns)
    figure = draw_alignment(alignment, title, names=(scorer.side.fields[-1], "translation"))
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi="figure")
    width = round(figure.get_size_inches()[0] * figure.dpi / _DENSITY)
    data = base64.b64encode(stream.getvalue()).decode()
    compared = [text for name in scorer.side.columns for text in columns[name]]
    advice = html.escape(label_fonts([*compared, prediction]).advice)
    image = f'<img width="{width}" alt="{html.escape(title)}" src="data:image/png;base64,{data}">'
    note = f"<p>{advice}</p>" if advice else ""
    return f'<div class="mt-picture">{image}{note}</div>'


def mark_wrong_words(
    scorer: Scorer, columns: Mapping[str, Sequence[str]], predictions: Sequence[str]
) -> list[str]:
    """Returns translations in HTML, with their doubtful and wrong words marked; an empty list where
    the metric blames no words."""
    if not scorer.can_blame:
        return []
    faults_per_text = require_word_scorer(scorer).blame(predictions, **columns)
    return [
        _marked(text, faults) for text, faults in zip(predictions, faults_per_text, strict=True)
    ]


def _marked(text: str, faults: Sequence[Fault]) -> str:
    """Returns a text in HTML; its faults stand in reading order and do not overlap."""
    parts, end = [], 0
    for fault in faults:
        seems = _LEVELS[level(fault.severity)]
        if seems == "right":
            continue
        word = html.escape(text[fault.start : fault.end])
        tooltip = f"seems {seems}: {fault.severity:.2f} of 1"
        parts += [
            html.escape(text[end : fault.start]),
            f'<mark class="mt-{seems}" title="{tooltip}">{word}</mark>',
        ]
        end = fault.end
    return "".join(parts) + html.escape(text[end:])
