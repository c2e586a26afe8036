"""Filtering of parallel text on a cluster.

A `FilterWorker` checks and scores the pairs of a block on the cluster. `choose` then selects pairs
by the scores of all blocks, in this process. `merged` joins the reports of the blocks.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mtmetrics.checks import InputReport
from mtmetrics.choosing.parallel_text import EXAMPLES, Checks, Filtering, add_example, scan
from mtmetrics.cluster.block_folder import BlockFolder
from mtmetrics.io.lines import JsonObject
from mtmetrics.models.pool import ModelPool

if TYPE_CHECKING:
    import pyarrow

_REPEATED = "repeated"  # name of the check for near duplicates
# Columns of scored rows, which are dropped from the kept rows.
_KEY, _TOKENS = "_key", "_tokens"


class FilterWorker:
    """Scores the pairs of a block that pass the checks of single pairs.

    Near duplicates are found later, by `choose`, since they may lie in different blocks.

    Args:
        filtering: checks, metrics and selection.
        columns: of the sources and the targets.
        pool: keywords of `mtmetrics.models.pool.ModelPool`.
    """

    def __init__(self, filtering: Filtering, columns: tuple[str, str], pool: JsonObject) -> None:
        self.filtering, self.columns = filtering, columns
        self.checks = filtering.checks(_REPEATED)
        self.mixture = filtering.mixture(ModelPool(**pool))

    def __call__(self, table: "pyarrow.Table") -> "tuple[pyarrow.Table, JsonObject]":
        """Filters the rows of a block.

        Returns:
            The rows that pass, with columns of scores; and the report of `scan`, with ``metrics``.
        """
        source_column, target_column = self.columns
        sources, targets = table[source_column].to_pylist(), table[target_column].to_pylist()
        pairs = list(zip(sources, targets, strict=True))
        self.mixture.reports = {name: InputReport() for name in self.mixture.scorers}
        counts_tokens = self.filtering.selection.tokens is not None
        result = scan(pairs, self.checks, self.mixture, count_tokens=counts_tokens)
        # Examples name the row in the block; their place in the input is wanted.
        files, segments = table["file"], table["segment"]
        for entry in result.report["removed"].values():
            for example in entry["examples"]:
                row = example["row"] - 1
                example |= {"file": files[row].as_py(), "row": segments[row].as_py()}
        keys = [int.from_bytes(Checks.near_key(*pairs[row]), signed=True) for row in result.rows]
        table = table.take(result.rows)
        for name, values in zip(
            self.filtering.added_columns, [result.scores, *result.values], strict=False
        ):
            table = table.append_column(name, [values])
        table = table.append_column(_KEY, [np.array(keys, dtype=np.int64)])
        table = table.append_column(_TOKENS, [result.tokens])
        return table, result.report | {"metrics": self.mixture.about()}


class Choice(NamedTuple):
    """Pairs that `choose` kept and left out.

    Attributes:
        scores: of the kept pairs.
        repeated: entry of the report for near duplicates.
        below: entry of the report for pairs whose score is too low.
        tokens: number of tokens of the kept pairs.
    """

    scores: np.ndarray
    repeated: JsonObject
    below: JsonObject
    tokens: int


def choose(scored: str, out: str, filtering: Filtering, columns: tuple[str, str]) -> Choice:
    """Selects rows of the folder `scored`, and writes them to the folder `out`, in files of the same
    names.

    Of near duplicates the first one is kept, unless that check is skipped. `columns` are those of
    the sources and the targets.
    """
    scored_folder, kept_folder = BlockFolder(scored), BlockFolder(out)
    scores = scored_folder.column(filtering.column)
    tokens = scored_folder.column(_TOKENS)
    is_first = np.ones(len(scores), dtype=bool)
    if _REPEATED not in filtering.skip:
        _, first_rows = np.unique(scored_folder.column(_KEY), return_index=True)
        is_first[:] = False
        is_first[first_rows] = True
    is_kept = np.zeros(len(scores), dtype=bool)
    is_kept[is_first] = filtering.selection.mask(scores[is_first], tokens[is_first])
    is_below = is_first & ~is_kept
    repeated = {"pairs": int((~is_first).sum()), "examples": []}
    below = {"pairs": int(is_below.sum()), "examples": []}
    source_column, target_column = columns
    begin = 0
    for name, table in scored_folder.tables():
        rows = slice(begin, begin + len(table))
        begin = rows.stop
        for row in _examples(table, ~is_first[rows]):
            texts = row[source_column], row[target_column]
            add_example(repeated, row["segment"], *texts, file=row["file"])
        for row in _examples(table, is_below[rows]):
            texts = row[source_column], row[target_column]
            score = row[filtering.column]
            add_example(below, row["segment"], *texts, file=row["file"], score=score)
        kept_folder.write(name, table.filter(is_kept[rows]).drop_columns([_KEY, _TOKENS]))
    return Choice(scores[is_kept], repeated, below, int(tokens[is_kept].sum()))


def _examples(table: "pyarrow.Table", mask: np.ndarray) -> list[JsonObject]:
    """Returns the first rows of a table where the mask is true."""
    rows: list[JsonObject] = table.take(np.flatnonzero(mask)[:EXAMPLES]).to_pylist()
    return rows


def merged(blocks: list[JsonObject]) -> JsonObject:
    """Joins the reports of all blocks."""
    ordered = sorted(blocks, key=lambda block: (block["file"], block["first"]))
    removed: dict[str, JsonObject] = {}
    reports: dict[str, InputReport] = {}
    for block in ordered:
        for name, entry in block["removed"].items():
            total = removed.setdefault(name, {"pairs": 0, "examples": []})
            total["pairs"] += entry["pairs"]
            total["examples"] = (total["examples"] + entry["examples"])[:EXAMPLES]
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
