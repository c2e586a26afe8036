"""The result of a comparison as HTML. Texts of a visitor are escaped here, but for the marked
translations and the picture of a heatmap, which are HTML already."""

import html
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mtmetrics.errors import MTMetricsError
from mtmetrics.page.charts import colour, draw_histograms, draw_means, inline, themed
from mtmetrics.page.comparing import Anchors, ComparisonResult, Progress, ScoredMetric
from mtmetrics.reports.styles import decimals
from mtmetrics.statistics.significance import ALPHA, FEWEST_FOR_INTERVAL, NO_INTERVAL

SEGMENTS_PER_PAGE = 10
# Keywords of Python -> the labels of the boxes that hold their values.
LABELS = {
    "lang_pair": "From / Into",
    "sources": "Source",
    "references": "References",
    "predictions": "Systems",
}
_ANCHORS = (("human", "a human translation"), ("random", "random pairs"))


class OpenHeatmap(NamedTuple):
    """The heatmap that is shown: the index of its segment, the index of its system, and the picture
    as HTML."""

    segment: int
    system: int
    picture: str

    def is_of(self, segment: int, system: int) -> bool:
        """Whether it is the heatmap of this segment of this system."""
        return (self.segment, self.system) == (segment, system)


def four_decimals(value: float) -> str:
    """Four decimals, with a real minus."""
    return decimals(value, 4).replace("-", "\N{MINUS SIGN}")


def error_problem(error: MTMetricsError) -> str:
    """Returns the message of an error, in which options are called as the page labels them."""
    return problem(error.worded(lambda keyword, value: LABELS.get(keyword)))


def problem(message: str) -> str:
    """Returns a message that something went wrong."""
    return (
        '<div class="mt-problem" role="alert"><b>That did not work.</b> '
        f"{html.escape(message)}</div>"
    )


def progress(state: Progress) -> str:
    """Returns a bar, the present activity, and how much is left if that is known."""
    share = state.done / state.total
    if state.left is None:
        count = ""
    else:
        count = (
            f"{state.done:,} of {state.total:,} translations · about {duration(state.left)} left"
        )
    return (
        f'<div class="mt-progress" role="status"><div class="mt-bar"><i style="width:{100 * share:.1f}%"></i></div>'
        f"<span>{html.escape(state.what)}</span><span>{count}</span></div>"
    )


def duration(seconds: float) -> str:
    """Whole seconds below two minutes, else minutes, else hours.

    Example:
        >>> duration(0.2), duration(119), duration(400), duration(8000)
        ('1 s', '119 s', '7 min', '2.2 h')
    """
    if seconds < 120:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def overview(comparison: ComparisonResult) -> str:
    """The verdict, the table of systems and metrics, and the pictures."""
    notes = [
        f"{name}, {metric.offer.title}: {result.report.note}"
        for metric in comparison.metrics
        for name, result in metric.results.items()
        if result.report.note
    ]
    noted = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    figures = ""
    for number, metric in enumerate(comparison.metrics):
        means = inline(draw_means(comparison, [number]), f"Means by {metric.offer.title}")
        histograms = inline(draw_histograms(comparison, number), f"Scores by {metric.offer.title}")
        figures += f"<figure>{means}{histograms}</figure>"
    return (
        f'<p class="mt-verdict">{verdict(comparison)}</p>{table(comparison)}'
        + (f'<ul class="mt-notes">{noted}</ul>' if noted else "")
        + f'<h3>Means and segments</h3><p class="mt-quiet">Above: means with 95 % intervals, on an axis that is '
        f"at least a tenth as long as the distance between random pairs and people. Below: the scores of all segments."
        f'</p><div class="mt-figures">{figures}</div>'
    )


def verdict(comparison: ComparisonResult) -> str:
    """The best systems by each metric, in a sentence or two."""
    if len(comparison.texts.systems) == 1:
        return "One system: there is nothing to compare it with but the anchors below the table."
    if not comparison.tested:
        return "One segment says nothing about systems: give more."
    titles_by_verdict: dict[str, list[str]] = {}
    for metric in comparison.metrics:
        best = [system.name for system in metric.comparison.systems if system.cluster == 1]
        names = [f"<b>{html.escape(name)}</b>" for name in best]
        # Systems of one cluster may differ, with others between them that do not.
        all_in_cluster = len(best) == len(comparison.texts.systems)
        if all_in_cluster and not (metric.comparison.p_values < ALPHA).any():
            statement = "the systems cannot be told apart"
        elif len(best) == 1:
            statement = f"{names[0]} is the best"
        else:
            statement = f"{_listed(names)} share the lead"
        titles_by_verdict.setdefault(statement, []).append(html.escape(metric.offer.title))
    if len(titles_by_verdict) == 1 and len(comparison.metrics) > 1:
        text = f"{next(iter(titles_by_verdict))} by all {len(comparison.metrics)} metrics"
    else:
        statements = [f"{text} by {_listed(titles)}" for text, titles in titles_by_verdict.items()]
        text = "; ".join(statements)
    return text[0].upper() + text[1:] + f" (p&nbsp;&lt;&nbsp;{ALPHA}, paired permutation test)."


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def table(comparison: ComparisonResult) -> str:
    """Systems in rows, in the order of the first metric; metrics in columns; the anchors below."""
    head = "".join(
        (
            f'<th scope="col">{html.escape(metric.offer.title)}<small>against the '
            f"{metric.offer.side.label}</small></th>"
        )
        for metric in comparison.metrics
    )
    body = []
    for system in comparison.metrics[0].comparison.systems:
        cells = "".join(_cell(metric, system.name, comparison) for metric in comparison.metrics)
        body.append(
            "<tr><th "
            f'scope="row">{_dot(comparison, system.name)}{html.escape(system.name)}</th>{cells}</tr>'
        )
    foot = []
    for name, label in _ANCHORS:
        cells = "".join(
            f'<td data-metric="{html.escape(metric.offer.title)}"><span class="mt-mean">'
            f"{four_decimals(getattr(metric.anchors, name)) if metric.anchors else '–'}</span></td>"
            for metric in comparison.metrics
        )
        foot.append(f'<tr><th scope="row">{label}<small>bundled example</small></th>{cells}</tr>')
    note = ""
    if comparison.tested:
        intervals = "with 95 % bootstrap intervals"
        if comparison.texts.segments < FEWEST_FOR_INTERVAL:
            intervals = f"({NO_INTERVAL})"
        note = (
            f"Means of {comparison.texts.segments:,} segments {intervals}; higher is better. "
            "A cluster ends where each system above is significantly better than each system below. "
            "The bar runs from random pairs (left) "
            "to a human translation (right) of the bundled example."
        )
        if any(metric.comparison.calibrated for metric in comparison.metrics):
            note += (
                " People agree: how often they, too, preferred the better one of two systems of "
                "WMT as far apart."
            )
    return (
        f'<div class="mt-scroll"><table class="mt-systems"><thead><tr><th scope="col">System</th>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody><tfoot>{''.join(foot)}</tfoot></table></div>"
        f'<p class="mt-quiet">{note}</p>'
    )


def _cell(metric: ScoredMetric, name: str, comparison: ComparisonResult) -> str:
    system = next(system for system in metric.comparison.systems if system.name == name)
    best = " mt-best" if system.rank == 1 and len(comparison.texts.systems) > 1 else ""
    parts = [f'<span class="mt-mean{best}">{four_decimals(system.mean)}</span>']
    if comparison.tested:
        parts.append(
            f'<span class="mt-cluster" title="cluster {system.cluster}">{system.cluster}</span>'
        )
    if system.interval is not None:
        between = f"{four_decimals(system.interval.low)} to {four_decimals(system.interval.high)}"
        parts.append(f'<span class="mt-interval">{between}</span>')
    agreement = None
    if comparison.tested and system.rank > 1:
        agreement = metric.comparison.agreement(0, metric.comparison.systems.index(system))
    if agreement is not None:
        value, low, high = (f"{100 * share:.0f}" for share in agreement)
        parts.append(
            f'<span class="mt-interval">behind the best: people agree, {value} % ({low} to '
            f"{high})</span>"
        )
    if metric.anchors:
        parts.append(_track(system.mean, metric.anchors))
    return f'<td data-metric="{html.escape(metric.offer.title)}">{"".join(parts)}</td>'


def _track(mean: float, anchors: Anchors) -> str:
    """A bar with the place of a mean between random pairs and a human translation."""
    width = anchors.human - anchors.random
    share = min(max((mean - anchors.random) / width, 0.0), 1.0) if width else 0.5
    return f'<span class="mt-track"><i style="left:{100 * share:.1f}%"></i></span>'


def _dot(comparison: ComparisonResult, name: str) -> str:
    place = list(comparison.texts.systems).index(name)
    return f'<i class="mt-dot" style="--c:{themed(colour(place))}"></i>'


def segments(
    comparison: ComparisonResult,
    metric: int,
    rows: Sequence[int],
    marked: Mapping[tuple[int, int], str],
    open_heatmap: OpenHeatmap | None,
) -> str:
    """Returns some segments as HTML, the systems side by side.

    Args:
        comparison: the result.
        metric: number of the metric, from 0, whose scores are highlighted and whose words are
            marked.
        rows: numbers of the segments, from 0.
        marked: (number of a segment, number of a system) -> its translation as HTML, with wrong
            words marked; empty if the metric finds no wrong words.
        open_heatmap: the heatmap that is shown.
    """
    legend = "This metric blames no words."
    if marked:
        legend = (
            'Marked are words that seem <mark class="mt-doubtful">doubtful</mark> or <mark '
            'class="mt-wrong">wrong</mark>.'
        )
    legend = f'<p class="mt-legend">A click on a translation shows what was matched. {legend}</p>'
    return legend + "".join(_segment(comparison, metric, row, marked, open_heatmap) for row in rows)


def _segment(
    comparison: ComparisonResult,
    metric: int,
    row: int,
    marked: Mapping[tuple[int, int], str],
    open_heatmap: OpenHeatmap | None,
) -> str:
    compared_texts = ""
    for column, texts in comparison.texts.columns.items():
        label, text = column.removesuffix("s"), html.escape(texts[row])
        compared_texts += f'<p class="mt-other" dir="auto"><span>{label}</span>{text}</p>'
    outputs = []
    for place, (name, texts) in enumerate(comparison.texts.systems.items()):
        is_open = open_heatmap is not None and open_heatmap.is_of(row, place)
        scores = ""
        for number, scored in enumerate(comparison.metrics):
            style = "mt-chosen" if number == metric else ""
            title = html.escape(scored.offer.title)
            score = four_decimals(scored.results[name].segments[row])
            scores += f'<span class="{style}"><small>{title}</small><b>{score}</b></span>'
        flags_by_kind = comparison.metrics[metric].results[name].unusual
        unusual = [kind for kind, flags in flags_by_kind.items() if flags[row]]
        note = f'<span class="mt-unusual">unusual: {", ".join(unusual)}</span>' if unusual else ""
        text = marked.get((row, place)) or html.escape(texts[row])
        label = f"{_dot(comparison, name)}{html.escape(name)}"
        outputs.append(
            f'<button type="button" class="mt-output" data-segment="{row}" data-system="{place}" '
            f'aria-expanded="{str(is_open).lower()}"><span class="mt-name">{label}</span><span '
            f'class="mt-text" dir="auto">{text}</span>{note}<span '
            f'class="mt-scores">{scores}</span></button>'
        )
    picture = (
        open_heatmap.picture if open_heatmap is not None and open_heatmap.segment == row else ""
    )
    return (
        '<article class="mt-segment"><header><span '
        f'class="mt-number">{row + 1}</span><div>{compared_texts}</div></header><div '
        f'class="mt-outputs">{"".join(outputs)}</div>{picture}</article>'
    )
