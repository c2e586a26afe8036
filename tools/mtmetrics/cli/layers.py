"""How well a metric agrees with people at each layer of its encoder, for ``mtmetrics evaluate --layers``
and for figures of papers."""

import argparse
import dataclasses
from collections.abc import Sequence

from mtmetrics.cli import messages, options
from mtmetrics.errors import InputError
from mtmetrics.judgements.judged import Judged
from mtmetrics.reports.agreement import Measure, MetricTable, judge_entries
from mtmetrics.reports.agreement_report import chosen_layers, layer_curves, mean_intervals
from mtmetrics.reports.figures import save_figure
from mtmetrics.reports.metric_runs import Entry
from mtmetrics.reports.plots import draw_curves
from mtmetrics.reports.recipes import Recipe, judge_recipe


def layer_studies(
    args: argparse.Namespace,
    entry: Entry,
    files: Sequence[Judged],
    measure: Measure,
    *,
    intervals: bool,
    recipe: Recipe | None = None,
) -> dict[int, MetricTable]:
    """Judges a metric at those layers of its encoder that the arguments name.

    Args:
        args: parsed arguments.
        entry: the metric, as a row of a table.
        files: judged data.
        measure: of the agreement.
        intervals: whether correlations have intervals.
        recipe: the figure of a paper that the row belongs to.

    Returns:
        Layer -> a table of this row, and of its parts where the arguments ask for these.

    Raises:
        InputError: the row has no metric, or its encoder no such layer.
    """
    spec = entry.metric
    if spec is None:
        raise InputError(f"{entry.title}: {entry.why_not}")
    pool = options.model_pool(args)
    layers = chosen_layers(args.layers, spec.load(pool, files[0].lang_pair).encoder_depth)
    studies = {}
    for layer in messages.progress(layers, desc="layers", unit="layer"):
        row = dataclasses.replace(entry, metric=spec.having(layer=layer))
        if recipe is not None:
            _, table = judge_recipe(recipe, [row], files, pool, measure, intervals=intervals)
        else:
            _, table = judge_entries(
                [row],
                files,
                pool,
                measure,
                parts=args.parts,
                titled_by_part=True,
                intervals=intervals,
            )
        studies[layer] = table
    return studies


def save_layers(path: str, studies: dict[int, MetricTable], title: str) -> None:
    """Draws the mean correlation of the score, and of each part, against the layer, with its 95 %
    intervals.

    Args:
        path: of the picture.
        studies: layer -> its table.
        title: begins the title of the picture.
    """
    mean_of_layer = {
        part: {layer: correlations[-1].value for layer, correlations in layers.items()}
        for part, layers in layer_curves(studies).items()
    }
    table = next(iter(studies.values()))
    files = f"mean of {len(table.labels)} files" if len(table.labels) > 1 else table.labels[0]
    figure = draw_curves(
        mean_of_layer,
        title=f"{title}: {files}, 95 % intervals",
        intervals=mean_intervals(studies),
        x_label="layer",
        y_label=f"{table.measure.label} with human judgements",
    )
    save_figure(figure, path)
