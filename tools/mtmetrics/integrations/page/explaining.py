"""What a segment's score comes from, for pages: the heatmap, and the words at fault."""

import base64
import html
import io

from mtmetrics.errors import InputError
from mtmetrics.evaluation.heatmap import draw_alignment
from mtmetrics.scorers.base import MetricResult, Scorer


def heatmap(scorer: Scorer, other: str, prediction: str, title: str) -> str:
    """The alignment of a segment as a picture in HTML; a sentence where the metric, as it is set up, matches no words.

    Args:
        scorer: of the metric.
        other: source or reference.
        prediction: the translation.
        title: over the picture.
    """
    try:
        [alignment] = scorer.align([other], [prediction])
    except InputError:
        # The texts were scored, so this says that there is nothing to align.
        return '<div class="mt-picture"><p>This metric compares whole texts, so no words are matched.</p></div>'
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
