"""Judged segments and systems of a test set in the folder layout of mt-metrics-eval, see
`mtmetrics.evaluation.eval_set`."""

from pathlib import Path

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.evaluation.eval_set import EvalSet, Level, Scores, lang_pairs
from mtmetrics.evaluation.judged import JudgedSegments, JudgedSystems

# What the metrics tasks of WMT since 2019 judge by, most wanted first; where both are there, raw values for segments,
# z-scores for systems.
_STANDARD: dict[Level, tuple[str, ...]] = {
    "seg": ("mqm", "esa", "da-sqm", "wmt", "wmt-appraise", "wmt-raw", "wmt-z"),
    "sys": ("mqm", "esa", "da-sqm", "wmt", "wmt-appraise", "wmt-z", "wmt-raw"),
}
_RAW = "wmt-raw"


def read_segments(root: str | Path, *, lang_pair: str | None = None) -> list[JudgedSegments]:
    """Reads the segments of every system with human scores, systems one after the other.

    Translations by people are left out, as in the metrics tasks. The reference is that of `EvalSet.reference`, the item
    is the number of the segment, and the scores of metrics are the columns.

    Args:
        root: folder of the test set.
        lang_pair: read this pair only; otherwise pairs without human scores are left out.

    Raises:
        InputError: no such pair, no human scores, or as `EvalSet`.
    """
    return [_segments(pair, name) for pair, name in _judged(root, lang_pair, "seg")]


def read_systems(root: str | Path, *, lang_pair: str | None = None) -> list[JudgedSystems]:
    """Reads the outputs of every system with a human score; translations by people are left out.

    Args:
        root: folder of the test set.
        lang_pair: as `read_segments`.

    Raises:
        InputError: as `read_segments`.
    """
    return [_systems(pair, name) for pair, name in _judged(root, lang_pair, "sys")]


def _judged(root: str | Path, lang_pair: str | None, level: Level) -> list[tuple[EvalSet, str]]:
    """The language pairs that have human scores, each with the name of the scores."""
    pairs = [EvalSet.read(root, pair) for pair in ([lang_pair] if lang_pair else lang_pairs(root))]
    named = [(pair, _standard(pair, level)) for pair in pairs]
    found = [(pair, name) for pair, name in named if name is not None]
    if not found:
        raise InputError(
            f"{root}: no human-scores/{lang_pair or 'XX-YY'}.NAME.{level}.score; there is nothing to judge"
        )
    return found


def _standard(pair: EvalSet, level: Level) -> str | None:
    names = pair.human_names(level)
    known = [name for name in _STANDARD[level] if name in names]
    if names and not known and len(names) > 1:
        raise InputError(
            f"{pair.root / 'human-scores'}: {pair.lang_pair} has the scores {', '.join(names)}; one of them must be called "
            f"{', '.join(_STANDARD[level])}"
        )
    return next(iter(known or names), None)


def _segments(pair: EvalSet, name: str) -> JudgedSegments:
    human = _by_systems(pair, pair.human_scores(name, "seg"))
    raw = pair.human_scores(_RAW, "seg") if _RAW in pair.human_names("seg") else None
    reference = pair.reference()
    count, systems = len(pair.sources), list(human)
    return JudgedSegments(
        file=str(pair.root),
        lang_pair=pair.lang_pair,
        sources=pair.sources * len(systems),
        predictions=[text for system in systems for text in pair.outputs[system]],
        references=(pair.references[reference] if reference else [None] * count) * len(systems),
        systems=[system for system in systems for _ in range(count)],
        human=_array(human, systems, count),
        items=[str(number) for number in range(1, count + 1)] * len(systems),
        raw_human=None if raw is None else _array(raw, systems, count),
        columns={metric: _column(scores, systems, count) for metric, scores in pair.metric_scores().items()},
    )


def _systems(pair: EvalSet, name: str) -> JudgedSystems:
    human = {system: values[0] for system, values in _by_systems(pair, pair.human_scores(name, "sys")).items()}
    judged = {system: value for system, value in human.items() if value is not None}
    reference = pair.reference()
    references = [*pair.references[reference]] if reference else [None] * len(pair.sources)
    outputs = {system: pair.outputs[system] for system in judged}
    return JudgedSystems(str(pair.root), pair.lang_pair, pair.sources, references, outputs, judged)


def _by_systems(pair: EvalSet, scores: Scores) -> Scores:
    return {system: values for system, values in scores.items() if system not in pair.references}


def _column(scores: Scores, systems: list[str], count: int) -> list[float | None]:
    return [value for system in systems for value in scores.get(system, [None] * count)]


def _array(scores: Scores, systems: list[str], count: int) -> np.ndarray:
    return np.array(_column(scores, systems, count), dtype=np.float64)
