"""Histograms of score differences, side by side (Fig. 3 of Zhao et al., 2020)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mtmetrics.evaluation.figures import COLOURS, INK, TITLE_SIZE, new_figure, plain_axes, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from mtmetrics.evaluation.preference import Preference

_BINS = 30


def draw_preferences(found: "Sequence[Preference]", *, title: str) -> "Figure":
    """A histogram of ``d`` for each modification, in a row of its own for each measure.

    Left of 0 stand the sentences where the reference is preferred, right of 0, in another colour, those where the
    modified one is; those where neither is are left out and counted above. The panels of a row share their axes.

    Args:
        found: one preference per modification and measure, see `mtmetrics.evaluation.preference.preferences`.
        title: over the plot.
    """
    measures = list(dict.fromkeys(preference.measure for preference in found))
    modifications = list(dict.fromkeys(preference.modification for preference in found))
    figure = new_figure(1.0 + 3.2 * len(modifications), 0.8 + 2.7 * len(measures))
    panels = figure.subplots(len(measures), len(modifications), sharex="row", sharey="row", squeeze=False)
    for measure, row in zip(measures, panels, strict=True):
        of_measure = [preference for preference in found if preference.measure == measure]
        edges = _edges(np.concatenate([preference.differences for preference in of_measure]))
        for preference, axes in zip(of_measure, row, strict=True):
            d = preference.differences
            axes.hist([d[d < 0], d[d > 0]], bins=edges, stacked=True, color=COLOURS[:2])
            axes.axvline(0.0, color=INK, linewidth=1.0)
            shares = f"{preference.preferred:.1%} preferred" + (
                f", {preference.equal:.1%} equal" if preference.equal else ""
            )
            axes.set_title(f"{preference.modification}\n{shares}", fontsize=TITLE_SIZE - 1, color=INK)
            axes.set_xlabel(f"d ({measure})")
            plain_axes(axes)
        row[0].set_ylabel("sentences")
    figure.suptitle(title, x=0.01, ha="left", fontsize=TITLE_SIZE, color=INK)
    return figure


def _edges(d: np.ndarray) -> np.ndarray:
    """Edges of the bins, among them 0."""
    low, high = min(d.min(), 0.0), max(d.max(), 0.0)
    if low == high:
        return np.array([-1.0, 0.0, 1.0])
    width = (high - low) / _BINS
    edges = width * np.arange(np.floor(low / width), np.ceil(high / width) + 1)
    # Rounding must not leave the extremes outside.
    edges[0], edges[-1] = min(edges[0], low), max(edges[-1], high)
    return edges


def save_preferences(found: "Sequence[Preference]", path: str | Path, *, title: str) -> None:
    """Writes the plot of `draw_preferences` as a PNG file, which is whole or absent.

    Raises:
        MTMetricsError: the file cannot be written.
    """
    save_figure(draw_preferences(found, title=title), path)
