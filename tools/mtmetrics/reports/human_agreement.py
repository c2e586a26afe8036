"""People's agreement with a metric: how often they prefer the system that the metric prefers, as a
function of the difference of the metric's means (Kocmi et al., 2024).

`fit_agreement` fits the curve to judged systems, `write_preset` keeps it in a preset, and
`known_agreement` reads it from there.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mtmetrics.artifacts.presets import extending, preset_toml
from mtmetrics.checks import names_of_pair
from mtmetrics.errors import ArtifactError, InputError
from mtmetrics.io.atomic import atomic_folder, write_atomic
from mtmetrics.judgements.judged import Judged
from mtmetrics.scorers.base import Scorer
from mtmetrics.scorers.registry import find_metric
from mtmetrics.scorers.spec import MetricSpec
from mtmetrics.statistics.correlation import SEED

# The table of a preset that holds the curve.
TABLE = "agreement"
# Its keys that hold a number for each difference.
_CURVES = ("difference", "agreement", "low", "high")
_LEAST_COMPARISONS = 30
# Of the bootstrap interval.
_RESAMPLES = 500
# Number of differences at which a curve is kept.
_GRID = 16
# The curve ends at this quantile of the differences: there are too few larger ones.
_RANGE = 0.95
# The values of the two numbers of a curve that are tried; scales in medians of the differences.
_CEILINGS = np.linspace(0.5, 1.0, 26)
_SCALES = np.geomspace(0.02, 20.0, 60)


class Share(NamedTuple):
    """A share of pairs of systems in which people agree, with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


class SystemMeans(NamedTuple):
    """The k systems of one language pair and year.

    Attributes:
        lang_pair: such as ``"de-en"``.
        metric: (k,) means of a metric.
        human: (k,) judgements of people.
    """

    lang_pair: str
    metric: np.ndarray
    human: np.ndarray

    @classmethod
    def of(cls, file: Judged, means: Sequence[float | None]) -> "SystemMeans":
        """The systems of a file; `means` has a mean for each, in its order."""
        metric = np.array(file.take(means), dtype=np.float64)
        return cls(file.lang_pair, metric, file.judgements["human"].to_numpy())


@dataclasses.dataclass(frozen=True)
class AgreementCurve:
    """How often people agree with a metric that one system is better than another.

    Attributes:
        pairs: the language pairs that it was fitted on, and holds for.
        comparisons: number of pairs of systems that it was fitted on.
        difference: (m,) differences of the metric's means, rising from 0.
        agreement: (m,) share of the pairs of systems in which people agree, at each difference.
        low: (m,) lower ends of its 95 % bootstrap interval.
        high: (m,) upper ends.
        isotonic: the mean distance from the isotonic fit, which assumes no form of the curve.
        data: a description of the judgements that it was fitted on.
        signature: of the scores, see `bare_signature`.
    """

    pairs: tuple[str, ...]
    comparisons: int
    difference: np.ndarray
    agreement: np.ndarray
    low: np.ndarray
    high: np.ndarray
    isotonic: float
    data: str
    signature: str

    @classmethod
    def from_table(cls, table: dict[str, Any]) -> "AgreementCurve":
        """Reads the table of a preset that `as_table` made.

        Raises:
            KeyError, TypeError, ValueError: a key lacks, or its value is of another type.
        """
        curves = {name: np.array(table[name], dtype=np.float64) for name in _CURVES}
        return cls(**table | curves | {"pairs": tuple(table["pairs"])})

    def as_table(self) -> dict[str, object]:
        """The table of a preset."""
        return {
            "signature": self.signature,
            "data": self.data,
            "pairs": list(self.pairs),
            "comparisons": self.comparisons,
            "isotonic": round(self.isotonic, 3),
            **{name: _four_digits(getattr(self, name)) for name in _CURVES},
        }

    def at(self, difference: float) -> Share | None:
        """The share for a difference of means of either sign; None above the differences of the
        curve."""
        size = abs(difference)
        if size > self.difference[-1]:
            return None
        curves = (self.agreement, self.low, self.high)
        return Share(*(float(np.interp(size, self.difference, curve)) for curve in curves))

    @property
    def about(self) -> str:
        """A line on the data that the curve was fitted on, and on its largest difference."""
        fitted = f"fitted on {self.comparisons} pairs of systems, {self.data}"
        return f"{fitted}, for differences up to {self.difference[-1]:.3g}; ? marks a larger one"


def _four_digits(values: np.ndarray) -> list[float]:
    """Values with four significant digits."""
    return [float(f"{value:.4g}") for value in values]


def fit_agreement(
    sets: Sequence[SystemMeans],
    *,
    data: str = "",
    signature: str = "",
) -> AgreementCurve:
    """Fits the share of agreement to pairs of systems, by maximum likelihood.

    The curve is ``1/2 + (c - 1/2) (2 / (1 + exp(-d / s)) - 1)`` for a difference ``d``: it begins at
    one half for no difference, and rises to the ceiling ``c`` on the scale ``s``. For the interval,
    sets are resampled and, within each, systems.

    Args:
        sets: the systems of each language pair and year.
        data: a description of the judgements.
        signature: of the scores, see `bare_signature`.

    Raises:
        InputError: fewer than 30 pairs of systems, or scores that do not differ.
    """
    differences, agreed = _compared_systems(sets)
    if len(differences) < _LEAST_COMPARISONS:
        raise InputError(
            f"{len(differences)} pairs of systems; at least {_LEAST_COMPARISONS} are needed to fit "
            "an agreement"
        )
    median = float(np.median(differences))
    if not median > 0:
        raise InputError("the systems' scores do not differ; there is no agreement to fit")
    # Denser where the curve is steep.
    grid = float(np.quantile(differences, _RANGE)) * np.linspace(0.0, 1.0, _GRID) ** 2
    curve = _curve(grid, *_likeliest(differences, agreed, median))
    low, high = _curve_interval(sets, grid, median)
    within = differences <= grid[-1]
    distances = np.abs(_isotonic(differences, agreed) - np.interp(differences, grid, curve))
    return AgreementCurve(
        pairs=tuple(sorted({systems.lang_pair for systems in sets})),
        comparisons=len(differences),
        difference=grid,
        agreement=curve,
        low=low,
        high=high,
        isotonic=float(distances[within].mean()),
        data=data,
        signature=signature,
    )


def _curve_interval(
    sets: Sequence[SystemMeans],
    grid: np.ndarray,
    median: float,
) -> tuple[np.ndarray, np.ndarray]:
    """(m,) lower and (m,) upper ends of the 95 % bootstrap interval of the curve, at the grid."""
    rng = np.random.default_rng(SEED)
    curves = []
    for _ in range(_RESAMPLES):
        chosen_sets = [sets[number] for number in rng.integers(len(sets), size=len(sets))]
        resampled = []
        for lang_pair, metric, human in chosen_sets:
            systems = rng.integers(len(metric), size=len(metric))
            resampled.append(SystemMeans(lang_pair, metric[systems], human[systems]))
        differences, agreed = _compared_systems(resampled)
        if len(differences):
            curves.append(_curve(grid, *_likeliest(differences, agreed, median)))
    low, high = np.quantile(curves, (0.025, 0.975), axis=0)
    return low, high


def _compared_systems(sets: Sequence[SystemMeans]) -> tuple[np.ndarray, np.ndarray]:
    """Compares every two systems of a set whose judgements differ.

    Returns:
        (m,) differences of the metric's means, at least 0; (m,) 1 where people agree, 0 where they
        do not, and 0.5 where the metric sees no difference.
    """
    differences, agreed = [], []
    for _, metric, human in sets:
        for i, j in itertools.combinations(range(len(metric)), 2):
            if human[i] == human[j]:
                continue
            difference = metric[i] - metric[j]
            is_agreed = (difference > 0) == (human[i] > human[j])
            differences.append(abs(difference))
            agreed.append(0.5 if difference == 0 else float(is_agreed))
    return np.array(differences), np.array(agreed)


def _curve(differences: np.ndarray, ceiling: float, scale: float) -> np.ndarray:
    """(m,) shares of agreement; the tangent is the logistic function of `fit_agreement`."""
    return 0.5 + (ceiling - 0.5) * np.tanh(differences / (2 * scale))


def _likeliest(differences: np.ndarray, agreed: np.ndarray, median: float) -> tuple[float, float]:
    """The ceiling and the scale of the highest likelihood.

    All values of a grid are tried, which is enough for two numbers.

    Args:
        differences: (m,) differences of pairs of systems.
        agreed: (m,) whether people agree, from 0 to 1.
        median: of the differences; scales are multiples of it.
    """
    scales = median * _SCALES
    rise = np.tanh(differences / (2 * scales[:, None]))  # (scales, m)
    shares = 0.5 + (_CEILINGS[:, None, None] - 0.5) * rise  # (ceilings, scales, m)
    shares = np.clip(shares, 1e-3, 1 - 1e-3)
    likelihoods = (agreed * np.log(shares) + (1 - agreed) * np.log(1 - shares)).sum(-1)
    ceiling, scale = np.unravel_index(int(likelihoods.argmax()), likelihoods.shape)
    return float(_CEILINGS[ceiling]), float(scales[scale])


def _isotonic(differences: np.ndarray, agreed: np.ndarray) -> np.ndarray:
    """(m,) isotonic fit: the values of the rising step function of the differences that is nearest
    to the agreement."""
    from scipy.optimize import isotonic_regression

    order = np.argsort(differences, kind="stable")
    fitted = np.empty(len(differences))
    fitted[order] = isotonic_regression(agreed[order]).x
    return fitted


def known_agreement(spec: MetricSpec, scorer: Scorer) -> AgreementCurve | str | None:
    """Reads people's agreement with the scores of a metric from its preset.

    Returns:
        The curve; or the reason why the curve of the preset does not hold for these scores; None
        where the preset has no curve.

    Raises:
        ArtifactError: the table of the preset is damaged.
    """
    preset = spec.preset_of(scorer.lang_pair)
    table = scorer.tables_of_preset(preset, dict(spec.options)).get(TABLE, {}).get(scorer.side)
    if table is None:
        return None
    try:
        curve = AgreementCurve.from_table(table)
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"preset {preset}: the table [{TABLE}] cannot be read ({error!r})", option="preset"
        ) from error
    if curve.signature != bare_signature(scorer.signature):
        return "not calibrated for these options"
    if scorer.lang_pair is None or not names_of_pair(scorer.lang_pair, curve.pairs):
        return f"not calibrated for this pair of languages ({' '.join(curve.pairs)})"
    return curve


def bare_signature(signature: str) -> str:
    """A signature without language pair, number format and version: people's agreement is kept for
    all of them."""
    dropped = ("lp:", "dtype:", "lmdtype:", "v:")
    return "|".join(field for field in signature.split("|") if not field.startswith(dropped))


def write_preset(curve: AgreementCurve, spec: MetricSpec, folder: str | Path) -> None:
    """Writes a preset that extends the preset of a metric by people's agreement.

    Args:
        curve: the agreement.
        spec: the metric.
        folder: the folder to make.

    Raises:
        InputError: there is such a folder already.
    """
    options = dict(spec.options)
    side = find_metric(spec.metric).resolve_side(spec.preset, options)
    head = extending(spec.metric, str(spec.preset), f"{spec}, with people's agreement")
    plain_options = {
        name: value for name, value in options.items() if name not in ("against", "setting")
    }
    tables = {"options": plain_options} if plain_options else {}
    tables[f"{TABLE}.{side}"] = curve.as_table()
    with atomic_folder(folder) as new:
        write_atomic(new / "preset.toml", preset_toml(head, tables))
