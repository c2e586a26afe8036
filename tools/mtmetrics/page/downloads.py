"""The files that the page gives to take away: tables, all scores, and the chart."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mtmetrics.io.atomic import write_json
from mtmetrics.io.row_writer import write_rows
from mtmetrics.page.charts import draw_means
from mtmetrics.page.comparing import ComparisonResult
from mtmetrics.reports.comparison import report_comparison
from mtmetrics.reports.figures import save_figure
from mtmetrics.reports.styles import Report

FILES = {
    "systems.csv": "Systems, CSV",
    "segments.csv": "Segments, CSV",
    "comparison.json": "All, JSON",
    "systems.tex": "Table, LaTeX",
    "means.svg": "Chart, SVG",
}


def comparison_document(comparison: ComparisonResult) -> dict[str, Any]:
    """All numbers of a comparison, as plain data of full precision."""
    report = _report(comparison)
    for document, metric in zip(report.document["metrics"], comparison.metrics, strict=True):
        document["anchors"] = metric.anchors and metric.anchors._asdict()
        document["scores"] = {
            name: result.segments.tolist() for name, result in metric.results.items()
        }
    return {"lang_pair": comparison.texts.lang_pair, **report.document}


def _report(comparison: ComparisonResult) -> Report:
    comparisons = {metric.offer.key: metric.comparison for metric in comparison.metrics}
    results = {metric.offer.key: metric.results for metric in comparison.metrics}
    return report_comparison(comparisons, results)


def write_files(comparison: ComparisonResult, folder: Path) -> None:
    """Writes `FILES`; numbers have full precision in JSON and in the table of segments."""
    report = _report(comparison)
    for name, style in (("systems.csv", "csv"), ("systems.tex", "latex")):
        (folder / name).write_text(report.render(style) + "\n", encoding="utf-8")
    write_json(folder / "comparison.json", comparison_document(comparison))
    _write_segments(comparison, folder / "segments.csv")
    save_figure(draw_means(comparison, range(len(comparison.metrics))), folder / "means.svg")


def _write_segments(comparison: ComparisonResult, path: Path) -> None:
    texts = comparison.texts
    columns: dict[str, Sequence[object]] = {"segment": range(1, texts.segments + 1)}
    for column, segments in texts.columns.items():
        columns[column.removesuffix("s")] = segments
    for name, translations in texts.systems.items():
        columns[name] = translations
        for metric in comparison.metrics:
            columns[f"{name} {metric.offer.key}"] = metric.results[name].segments.tolist()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    write_rows(path, rows, "csv")


def command(comparison: ComparisonResult) -> str:
    """The command that gives the same numbers in the shell."""
    texts = comparison.texts
    words = ["mtmetrics", "compare", "--lp", texts.lang_pair]
    for column, flag in (("sources", "-s"), ("references", "-r")):
        words += [flag, f"{column}.txt"] if column in texts.columns else []
    words += ["-t", *texts.systems]
    for metric in comparison.metrics:
        words += ["--metric", metric.offer.key]
    return shlex.join(words)
