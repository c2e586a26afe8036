"""Scores of the bundled metrics here, and those that they gave where the cards were measured."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mtmetrics.artifacts.presets import preset_names, preset_toml
from mtmetrics.models.pool import ModelPool
from mtmetrics.reports.example import example
from mtmetrics.reports.human_agreement import bare_signature
from mtmetrics.scorers.metric import METRICS
from mtmetrics.scorers.registry import load_scorer

_STORED = Path(__file__).with_name("reproduction.toml")
_SYSTEM = "literal"
_MINI = "mini"


class Scores(NamedTuple):
    """The scores of a system of the bundled example, and the signature without number format and
    version."""

    signature: str
    scores: list[float]


class Reproduced(NamedTuple):
    """A preset and what it compares with; the largest difference from the stored scores, and
    whether the metric is the one that gave those."""

    name: str
    difference: float
    same: bool


def measured(pool: ModelPool) -> Iterator[tuple[str, Scores]]:
    """The scores of every bundled preset, by ``metric/preset against side``."""
    texts = example()
    columns = {"sources": texts.sources, "references": texts.references}
    predictions = texts.systems[_SYSTEM]
    for metric in METRICS.values():
        if metric.usual_preset() is None or _MINI not in preset_names(metric.name):
            continue
        for side in metric.side_choice.sides_of_preset(
            metric.scorer_class().tables_of_preset(_MINI, {})
        ):
            options = {"against": side} if len(metric.sides) > 1 else {}
            scorer = load_scorer(
                metric.name,
                _MINI,
                lang_pair=texts.lang_pair,
                pool=pool,
                **options,
            )
            result = scorer.score(predictions, **columns)
            scores = [float(f"{score:.9g}") for score in result.segments]
            name = f"{metric.name}/{_MINI} against {side}"
            yield name, Scores(bare_signature(scorer.signature), scores)


def reproduced(pool: ModelPool) -> Iterator[Reproduced]:
    """Every bundled preset beside what is stored of it."""
    stored = tomllib.loads(_STORED.read_text(encoding="utf-8"))
    for name, (signature, scores) in measured(pool):
        entry: dict[str, Any] = stored.get(name, {})
        same = entry.get("signature") == signature
        difference = float(np.abs(np.subtract(scores, entry["scores"])).max()) if same else np.nan
        yield Reproduced(name, difference, same)


def store(pool: ModelPool) -> None:
    """Writes the scores that are measured here into the package, for a release whose scores
    changed."""
    tables = {json.dumps(name): scores._asdict() for name, scores in measured(pool)}
    _STORED.write_text(preset_toml({}, tables).lstrip(), encoding="utf-8")


if __name__ == "__main__":
    store(ModelPool(local_files_only=True, device="cpu"))
