"""Prints the bounds of a preset of SentSim: the lowest and highest values of its parts on judged
segments, as the tables ``[bounds.*]`` of the preset hold them.

    python tests/benchmarks/sentsim_bounds.py mini FILE ...

Cosines end at 1 and distances begin at 0, whatever the files hold."""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mtmetrics.judgements.judged import read_judged_segments
from mtmetrics.models.pool import ModelPool
from mtmetrics.reports.metric_runs import score_together
from mtmetrics.scorers.registry import load_scorer
from mtmetrics.scorers.sentsim import PARTS

_TABLES = {"source": "src-mt", "reference": "mt-ref"}


def bounds(preset: str, side: str, paths: Sequence[Path]) -> dict[str, tuple[float, float]]:
    """The lowest and the highest value of each part of SentSim.

    Args:
        preset: name or folder of the preset.
        side: ``source`` or ``reference``, what the translations are compared with.
        paths: files of judged segments.
    """
    pool = ModelPool(local_files_only=True, device="cpu")
    values: dict[str, list[np.ndarray]] = {part: [] for part in PARTS}
    for path in paths:
        segments = read_judged_segments(path)
        scorer = load_scorer(
            "sentsim",
            preset,
            lang_pair=segments.lang_pair,
            pool=pool,
            against=side,
            combine="+".join(PARTS),
            normalize="batch",
        )
        [[result]] = score_together([scorer], segments)
        for part in PARTS:
            values[part].append(result.parts[part])
    extremes = {}
    for part, of_files in values.items():
        together = np.concatenate(of_files)
        is_distance = part in ("wmd", "smd")
        low = 0.0 if is_distance else float(together.min())
        high = float(together.max()) if is_distance else 1.0
        extremes[part] = (low, high)
    return extremes


if __name__ == "__main__":
    for compared, table in _TABLES.items():
        print(f"[bounds.{table}]")
        for name, (lowest, highest) in bounds(
            sys.argv[1], compared, [Path(path) for path in sys.argv[2:]]
        ).items():
            print(f"{name} = [{round(lowest, 3)}, {round(highest, 3)}]")
