"""What a difference means: how often people prefer the system that a metric prefers, as a function
of the difference of the metric's means (Kocmi et al., 2024)."""

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mtmetrics.artifacts.presets import extending, preset_toml
from mtmetrics.checks import names_of_pair
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.io.atomic import new_folder, write_atomic
from mtmetrics.judgements.judged import Judged
from mtmetrics.models.pool import ModelPool
from mtmetrics.reports.metric_runs import MetricSpec
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.metric import COLUMNS
from mtmetrics.scorers.registry import find_metric
from mtmetrics.statistics.correlation import SEED

TABLE, ANCHORS = "agreement", ("random", "human")
_LEAST_COMPARISONS = 30
_RESAMPLES = 500
_GRID = 16
# Differences above this share of those seen say too little.
_RANGE = 0.95
_CEILINGS = np.linspace(0.5, 1.0, 26)
_SCALES = np.geomspace(0.02, 20.0, 60)  # in medians of the differences


class Share(NamedTuple):
    """How often people agree, with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


class Anchor(NamedTuple):
    """A mean score, or a place from 0 to 100, and its standard error."""

    mean: float
    error: float

    @classmethod
    def of(cls, sets: Sequence[np.ndarray]) -> "Anchor":
        """The mean of sets of segment scores, each counting alike; its error is that between sets,
        or in a single one that between segments."""
        values = np.array([scores.mean() for scores in sets]) if len(sets) > 1 else sets[0]
        return cls(float(values.mean()), float(values.std(ddof=1) / len(values) ** 0.5))


class SystemMeans(NamedTuple):
    """The systems of one language pair and year: (k,) means of a metric, and (k,) judgements of
    people."""

    lang_pair: str
    metric: np.ndarray
    human: np.ndarray

    @classmethod
    def of(cls, file: Judged, means: Sequence[float | None]) -> "SystemMeans":
        """Those of judged systems, with a mean for each."""
        return cls(
            file.lang_pair,
            np.array(file.take(means), dtype=np.float64),
            file.judgements["human"].to_numpy(),
        )


@dataclasses.dataclass(frozen=True)
class AgreementCurve:
    """How often people agree with a metric that one system is better than another.

    Attributes:
        pairs: the language pairs that it was fitted on; it says nothing of others.
        comparisons: of how many pairs of systems.
        difference: (m,) differences of the metric's means, from 0 up to the highest that it knows.
        agreement, low, high: (m,) share of the pairs in which people agree, and its 95 % bootstrap
            interval.
        isotonic: the mean distance from the isotonic fit, which assumes no form.
        data: what it was fitted on, in words.
        signature: of the scores, without language pair, number format and version.
        random, human: the scores of random pairs and of human translations; None where there is no
            scale to 100.
    """

    pairs: tuple[str, ...]
    comparisons: int
    difference: np.ndarray
    agreement: np.ndarray
    low: np.ndarray
    high: np.ndarray
    isotonic: float
    data: str = ""
    signature: str = ""
    random: Anchor | None = None
    human: Anchor | None = None

    def of_100(self, mean: float) -> Anchor | None:
        """Where a mean stands on a straight line from random pairs, 0, to human translations, 100,
        and how far the errors of the two move that; what lies beyond counts as 0 or 100. None where
        there is no such scale."""
        if self.random is None or self.human is None:
            return None
        width = self.human.mean - self.random.mean
        share = min(max((mean - self.random.mean) / width, 0.0), 1.0)
        error = np.hypot((1 - share) * self.random.error, share * self.human.error) / width
        return Anchor(100 * share, 100 * float(error))

    def anchored(self, sets: Sequence[tuple[np.ndarray, np.ndarray]]) -> "AgreementCurve":
        """The same with a scale to 100, from `anchor_scores` of each set; as it is where people do
        not score higher."""
        if not sets:
            return self
        random, human = map(Anchor.of, zip(*sets, strict=True))
        return (
            dataclasses.replace(self, random=random, human=human)
            if human.mean > random.mean
            else self
        )

    def at(self, difference: float) -> Share | None:
        """The share for a difference of means, whatever its sign; None above the differences that
        were seen."""
        size = abs(difference)
        if size > self.difference[-1]:
            return None
        return Share(
            *(
                float(np.interp(size, self.difference, y))
                for y in (self.agreement, self.low, self.high)
            )
        )

    @property
    def about(self) -> str:
        """What it was fitted on and how far it goes, in a line."""
        fitted = f"fitted on {self.comparisons} pairs of systems, {self.data}"
        return f"{fitted}; differences up to {self.difference[-1]:.3g}, ? is a larger one"

    def as_table(self) -> dict[str, Any]:
        """As it stands in a preset."""
        lines = ("difference", "agreement", "low", "high")
        curves = {name: [float(f"{value:.4g}") for value in getattr(self, name)] for name in lines}
        about = {"signature": self.signature, "data": self.data, "pairs": [*self.pairs]}
        about |= {"comparisons": self.comparisons, "isotonic": round(self.isotonic, 3)}
        ends = {name: end for name in ANCHORS if (end := getattr(self, name)) is not None}
        return (
            about
            | curves
            | {name: [float(f"{value:.4g}") for value in end] for name, end in ends.items()}
        )


def fit_agreement(
    sets: Sequence[SystemMeans], *, data: str = "", signature: str = ""
) -> AgreementCurve:
    """Fits the share of agreement, ``1/2 + (c - 1/2) (2 / (1 + exp(-d / s)) - 1)``, to pairs of
    systems: a logistic curve through one half at a difference of 0, which rises to ``c``, by
    maximum likelihood.

    The interval is of resampled sets and, within each, resampled systems.

    Raises:
        InputError: fewer than 30 pairs of systems, or scores that do not differ.
    """
    d, y = _compared(sets)
    if len(d) < _LEAST_COMPARISONS:
        raise InputError(
            f"{len(d)} pairs of systems; at least {_LEAST_COMPARISONS} are needed to fit an "
            "agreement"
        )
    middle = float(np.median(d))
    if not middle > 0:
        raise InputError("the systems' scores do not differ; there is no agreement to fit")
    # Denser where the curve is steep.
    grid = float(np.quantile(d, _RANGE)) * np.linspace(0.0, 1.0, _GRID) ** 2
    curve = _curve(grid, *_likeliest(d, y, middle))
    rng = np.random.default_rng(SEED)
    curves = []
    for _ in range(_RESAMPLES):
        chosen = [sets[number] for number in rng.integers(len(sets), size=len(sets))]
        resampled = []
        for pair, metric, human in chosen:
            rows = rng.integers(len(metric), size=len(metric))
            resampled.append(SystemMeans(pair, metric[rows], human[rows]))
        other_d, other_y = _compared(resampled)
        if len(other_d):
            curves.append(_curve(grid, *_likeliest(other_d, other_y, middle)))
    low, high = np.quantile(curves, (0.025, 0.975), axis=0)
    within = d <= grid[-1]
    distance = np.abs(_isotonic(d, y) - np.interp(d, grid, curve))[within].mean()
    pairs = tuple(sorted({one.lang_pair for one in sets}))
    return AgreementCurve(pairs, len(d), grid, curve, low, high, float(distance), data, signature)


def anchor_scores(
    scorer: Scorer, others: Sequence[Any], human: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """(n,) scores of human translations that are paired with other segments than their own, and
    (n,) of the same with their own."""
    moved = max(1, (len(human) - 1) // 2)
    found = scorer.score_systems(
        others, {"random": [*human[moved:], *human[:moved]], "human": list(human)}
    )
    return found["random"].segments, found["human"].segments


def anchors_of(
    spec: MetricSpec, file: Judged, pool: ModelPool
) -> tuple[np.ndarray, np.ndarray] | None:
    """`anchor_scores` of the references of judged systems; None where there are none, or the metric
    sees references, which are human translations of no one but themselves."""
    rows = next(iter(file.outputs().values()))
    sources, references = rows["source"].tolist(), rows["reference"].tolist()
    scorer = spec.load(pool, file.lang_pair)
    return (
        None
        if None in references or "references" in scorer.compares
        else anchor_scores(scorer, sources, references)
    )


def _compared(sets: Sequence[SystemMeans]) -> tuple[np.ndarray, np.ndarray]:
    """(m,) differences of a metric, at least 0, between every two systems of a set that differ for
    people or the metric, and (m,) whether people agree; half where the metric sees no
    difference."""
    differences, agreed = [], []
    for _, metric, human in sets:
        for i, j in itertools.combinations(range(len(metric)), 2):
            if human[i] == human[j]:
                continue
            difference = metric[i] - metric[j]
            differences.append(abs(difference))
            agreed.append(
                0.5 if difference == 0 else float((difference > 0) == (human[i] > human[j]))
            )
    return np.array(differences), np.array(agreed)


def _curve(d: np.ndarray, ceiling: float, scale: float) -> np.ndarray:
    return 0.5 + (ceiling - 0.5) * np.tanh(d / (2 * scale))


def _likeliest(d: np.ndarray, y: np.ndarray, middle: float) -> tuple[float, float]:
    """Ceiling and scale of the highest likelihood, on a grid: two numbers need no search."""
    scales = middle * _SCALES
    rise = np.tanh(d / (2 * scales[:, None]))
    p = 0.5 + (_CEILINGS[:, None, None] - 0.5) * rise
    p = np.clip(p, 1e-3, 1 - 1e-3)
    likelihood = (y * np.log(p) + (1 - y) * np.log(1 - p)).sum(-1)
    ceiling, scale = np.unravel_index(int(likelihood.argmax()), likelihood.shape)
    return float(_CEILINGS[ceiling]), float(scales[scale])


def _isotonic(d: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(m,) the rising step function of `d` that is nearest to `y`, at `d`."""
    from scipy.optimize import isotonic_regression

    order = np.argsort(d, kind="stable")
    fitted = np.empty(len(d))
    fitted[order] = isotonic_regression(y[order]).x
    return fitted


def known_agreement(spec: MetricSpec, scorer: Scorer) -> AgreementCurve | str | None:
    """What the preset of a metric says of people's agreement; why it says nothing of these scores;
    or None where it says nothing at all.

    Raises:
        ArtifactError: the table of the preset is damaged.
    """
    preset = spec.preset_of(scorer.lang_pair)
    table = scorer.preset_settings(preset, dict(spec.options)).get(TABLE, {}).get(side_of(scorer))
    if table is None:
        return None
    try:
        lines = {
            name: np.array(table[name], dtype=np.float64)
            for name in ("difference", "agreement", "low", "high")
        }
        about = {name: table[name] for name in ("comparisons", "isotonic", "data", "signature")}
        ends = {name: Anchor(*map(float, table[name])) for name in ANCHORS if name in table}
        curve = AgreementCurve(tuple(table["pairs"]), **about, **lines, **ends)
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"preset {preset}: the table [{TABLE}] cannot be read ({error!r})", option="preset"
        ) from error
    if curve.signature != bare_signature(scorer.signature):
        return "not calibrated for these options"
    if scorer.lang_pair is None or not names_of_pair(scorer.lang_pair, curve.pairs):
        return f"not calibrated for this pair of languages ({' '.join(curve.pairs)})"
    return curve


def side_of(scorer: Scorer) -> str:
    """What a scorer compares with: ``"source"``, ``"reference"`` or ``"both"``."""
    return next(side for side, columns in COLUMNS.items() if columns == scorer.compares)


def bare_signature(signature: str) -> str:
    """A signature without language pair, number format and version, on which agreement does not
    depend."""
    return "|".join(
        field
        for field in signature.split("|")
        if not field.startswith(("lp:", "dtype:", "lmdtype:", "v:"))
    )


def write_preset(curve: AgreementCurve, spec: MetricSpec, folder: str | Path) -> None:
    """Writes a preset that extends that of a metric by what people's agreement is.

    Raises:
        InputError: there is such a folder already.
    """
    options = dict(spec.options)
    side = find_metric(spec.metric).side_of_preset(spec.preset, options)
    head = extending(spec.metric, str(spec.preset), f"{spec}, with people's agreement")
    own = {name: value for name, value in options.items() if name not in ("against", "setting")}
    tables = ({"options": own} if own else {}) | {f"{TABLE}.{side}": curve.as_table()}
    with new_folder(folder) as new:
        write_atomic(new / "preset.toml", preset_toml(head, tables))
