"""Filters parallel text on a cluster: blocks are checked and scored there, and what is kept is
chosen here."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mtmetrics.checks import InputReport
from mtmetrics.choosing.parallel_text import EXAMPLES, Checks, Filtering, add_example, scan
from mtmetrics.cluster.block_folder import BlockFolder
from mtmetrics.models.pool import ModelPool

if TYPE_CHECKING:
    import pyarrow

_REPEATED = "repeated"
# Columns of the scored rows that the kept ones do not have.
_KEY, _TOKENS = "_key", "_tokens"


class FilterWorker:
    """Leaves the pairs of a block that pass the checks, with their scores; near duplicates are
    found later.

    Args:
        asked: for what.
        columns: of the sources and the targets.
        pool: of `mtmetrics.models.pool.ModelPool`.
    """

    def __init__(self, asked: Filtering, columns: tuple[str, str], pool: Mapping[str, Any]) -> None:
        self.asked, self.columns = asked, columns
        self.checks = asked.checks(_REPEATED)
        self.mixture = asked.mixture(ModelPool(**pool))

    def __call__(self, table: "pyarrow.Table") -> "tuple[pyarrow.Table, dict[str, Any]]":
        """The table with the columns of scores; the summary is a report as that of `scan`, with
        `metrics`."""
        pairs = list(zip(*(table[name].to_pylist() for name in self.columns), strict=True))
        self.mixture.reports = {name: InputReport() for name in self.mixture.scorers}
        result = scan(
            pairs, self.checks, self.mixture, count_tokens=self.asked.selection.tokens is not None
        )
        for entry in result.report["removed"].values():
            for example in entry["examples"]:
                place = (
                    table.slice(example["row"] - 1, 1).select(["file", "segment"]).to_pylist()[0]
                )
                example |= {"file": place["file"], "row": place["segment"]}
        table = table.take(result.rows)
        for name, values in zip(self.asked.names, [result.scores, *result.values], strict=False):
            table = table.append_column(name, [values])
        keys = [int.from_bytes(Checks.near_key(*pairs[row]), signed=True) for row in result.rows]
        table = table.append_column(_KEY, [np.array(keys, dtype=np.int64)]).append_column(
            _TOKENS, [result.tokens]
        )
        return table, result.report | {"metrics": self.mixture.about()}


def choose(
    scored: str, out: str, asked: Filtering, columns: tuple[str, str]
) -> tuple[np.ndarray, dict[str, Any], dict[str, Any], int]:
    """Writes the rows of the folder `scored` that are kept to the folder `out`, in files of the
    same names.

    Returns:
        The scores of the kept rows; the entries of the report for near duplicates, where these are
        looked for, and for pairs whose score is too low; and the number of tokens of the kept ones.
    """
    scored_folder, kept_folder = BlockFolder(scored), BlockFolder(out)
    scores = scored_folder.column(asked.column)
    keys = scored_folder.column(_KEY)
    tokens = scored_folder.column(_TOKENS)
    is_first = np.ones(len(scores), dtype=bool)
    if _REPEATED not in asked.skip:
        _, first_rows = np.unique(keys, return_index=True)
        is_first[:] = False
        is_first[first_rows] = True
    is_kept = np.zeros(len(scores), dtype=bool)
    is_kept[is_first] = asked.selection.mask(scores[is_first], tokens[is_first])
    is_below = is_first & ~is_kept
    repeated = {"pairs": int((~is_first).sum()), "examples": []}
    below = {"pairs": int(is_below.sum()), "examples": []}
    begin = 0
    for name, table in scored_folder.tables():
        rows = slice(begin, begin + len(table))
        begin = rows.stop
        for row in _examples(table, ~is_first[rows]):
            source, target = (row[column] for column in columns)
            add_example(repeated, row["segment"], source, target, file=row["file"])
        for row in _examples(table, is_below[rows]):
            source, target = (row[column] for column in columns)
            score = row[asked.column]
            add_example(below, row["segment"], source, target, file=row["file"], score=score)
        kept_folder.write(name, table.filter(is_kept[rows]).drop_columns([_KEY, _TOKENS]))
    return scores[is_kept], repeated, below, int(tokens[is_kept].sum())


def _examples(table: "pyarrow.Table", mask: np.ndarray) -> list[dict[str, Any]]:
    """Returns the first rows of a table where the mask is true."""
    rows: list[dict[str, Any]] = table.take(np.flatnonzero(mask)[:EXAMPLES]).to_pylist()
    return rows


def merged(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """The reports of all blocks as one."""
    ordered = sorted(blocks, key=lambda block: (block["file"], block["first"]))
    removed: dict[str, dict[str, Any]] = {}
    reports: dict[str, InputReport] = {}
    for block in ordered:
        for name, entry in block["removed"].items():
            sum_ = removed.setdefault(name, {"pairs": 0, "examples": []})
            sum_["pairs"] += entry["pairs"]
            sum_["examples"] = (sum_["examples"] + entry["examples"])[:EXAMPLES]
        for name, metric in block["metrics"].items():
            reports.setdefault(name, InputReport()).add(InputReport(**metric["report"]))
    metrics = {
        name: ordered[0]["metrics"][name] | {"report": report.as_dict()}
        for name, report in reports.items()
    }
    return {
        "pairs": sum(block["pairs"] for block in blocks),
        "bad": sum(block["bad"] for block in blocks),
        "removed": removed,
        "scored": sum(block["scored"] for block in blocks),
        "metrics": metrics,
    }
