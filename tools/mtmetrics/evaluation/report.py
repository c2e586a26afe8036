"""Prints how well one metric agrees with people, a row per file: JSON with full precision, tables with three
decimals."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mtmetrics.evaluation.agreement import Agreement, mean_agreement
from mtmetrics.evaluation.correlation import Correlation
from mtmetrics.evaluation.scored import SCORE
from mtmetrics.evaluation.table_styles import STYLES, rounded


def render(
    agreements: Sequence[Agreement],
    about: Mapping[str, str],
    style: str,
    *,
    parts: bool = False,
    coefficient: str = "pearson",
) -> str:
    """The agreement on each file and the mean over the files, without a final line end.

    Args:
        agreements: one or more files.
        about: what was judged and how (metric, preset, ...), for JSON alone.
        style: ``json``, or one of the styles of tables; a correlation that is not defined is null in JSON, beside its
            reason, ``nan`` in tables.
        parts: show the parts of the score too.
        coefficient: what the numbers are, for JSON alone.
    """
    if style == "json":
        return json.dumps(
            _as_json(agreements, about, parts, coefficient), indent=2, ensure_ascii=False, allow_nan=False
        )
    table = _table(agreements, parts)
    return STYLES[style](table, range(2, len(table[0]) - 1))


def undefined(agreements: Sequence[Agreement], *, parts: bool = False) -> list[str]:
    """One line for each correlation that is shown and not defined, with its reason."""
    return [
        f"{agreement.file} ({agreement.lang_pair}): no correlation for {name}: {correlation.reason}"
        for agreement in agreements
        for name, correlation in shown(agreement.correlations, parts).items()
        if correlation.reason is not None
    ]


def shown(correlations: Mapping[str, Correlation], parts: bool) -> dict[str, Correlation]:
    """The correlation of the score, and those of its parts where wanted."""
    return {name: value for name, value in correlations.items() if parts or name == SCORE}


def _as_json(
    agreements: Sequence[Agreement], about: Mapping[str, str], parts: bool, coefficient: str
) -> dict[str, Any]:
    files = [
        {
            "file": agreement.file,
            "lp": agreement.lang_pair,
            "n": agreement.segments,
            **_numbers(agreement.correlations, parts, coefficient),
            "range": {name: bounds for name, bounds in agreement.ranges.items() if parts or name == SCORE},
            "signature": agreement.signature,
            "report": agreement.report.as_dict(),
        }
        for agreement in agreements
    ]
    return {**about, "files": files, "mean": _numbers(mean_agreement(agreements), parts, coefficient)}


def _numbers(correlations: Mapping[str, Correlation], parts: bool, coefficient: str) -> dict[str, Any]:
    wanted = shown(correlations, parts)
    reasons = {name: value.reason for name, value in wanted.items() if value.reason is not None}
    return {
        coefficient: {name: value.known for name, value in wanted.items()},
        **({"undefined": reasons} if reasons else {}),
    }


def _table(agreements: Sequence[Agreement], parts: bool) -> list[list[str]]:
    means = shown(mean_agreement(agreements), parts)
    rows = [["file", "lp", "n", *means, "signature"]]
    for agreement in agreements:
        values = [rounded(agreement.correlations.get(name)) for name in means]
        rows.append([agreement.file, agreement.lang_pair, str(agreement.segments), *values, agreement.signature])
    total = str(sum(agreement.segments for agreement in agreements))
    return [*rows, ["mean", "", total, *map(rounded, means.values()), ""]]
