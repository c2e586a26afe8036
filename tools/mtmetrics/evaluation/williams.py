"""Williams' test: is the correlation of one metric with people higher than that of another?"""

import numpy as np

from mtmetrics.errors import InputError
from mtmetrics.evaluation.columns import Numbers, complete
from mtmetrics.evaluation.correlation import pearson, why_undefined
from mtmetrics.evaluation.significance import PValue
from mtmetrics.inputs import positive

# Correlations this close to a bound differ from it by rounding alone.
_ROUNDING = 1e-12


def williams(r12: float, r13: float, r23: float, n: int) -> PValue:
    """Williams' test (1959) of r12 > r13, for correlations that share a variable, as in Graham and Baldwin (2014).

    t = (r12 - r13) sqrt((n - 1) (1 + r23)) / sqrt(2 K (n - 1) / (n - 3) + (r12 + r13)^2 (1 - r23)^3 / 4),
    K = 1 - r12^2 - r13^2 - r23^2 + 2 r12 r13 r23, follows Student's t with n - 3 degrees of freedom if the correlations
    are equal.

    Args:
        r12: Pearson's r of people and metric A.
        r13: of people and metric B.
        r23: of both metrics.
        n: number of segments.

    Returns:
        One-sided p; 0.5 for metrics that agree fully, and NaN with its reason where n < 4 or the metrics are exact
        opposites.

    Raises:
        InputError: a correlation outside of [-1, 1], or three that cannot occur together.

    Example:
        >>> round(williams(0.6, 0.4, 0.5, 100).value, 4)
        0.0081
    """
    for name, value in (("r12", r12), ("r13", r13), ("r23", r23)):
        if not -1 <= value <= 1:
            raise InputError(f"{name} {value!r}: a correlation must lie between -1 and 1")
    determinant = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    if determinant < -1e-6:
        raise InputError(f"r12 {r12!r}, r13 {r13!r} and r23 {r23!r} cannot occur together")
    if positive("n", n) < 4:
        return PValue(np.nan, f"Williams' test needs at least 4 segments, there are {n}")
    if 1 - r23 <= _ROUNDING:
        return PValue(0.5)
    if 1 + r23 <= _ROUNDING:
        return PValue(np.nan, "the metrics are exact opposites, for which Williams' statistic is 0 / 0")
    from scipy.special import stdtr

    spread = 2 * max(determinant, 0.0) * (n - 1) / (n - 3) + (r12 + r13) ** 2 / 4 * (1 - r23) ** 3
    with np.errstate(divide="ignore"):  # nothing but the difference of the metrics may explain the judgements
        t = (r12 - r13) * np.sqrt(np.divide((n - 1) * (1 + r23), spread))
    return PValue(float(stdtr(n - 3, -t)))


def williams_test(scores_a: Numbers, scores_b: Numbers, human: Numbers) -> PValue:
    """Williams' test on the scores: is metric A's Pearson correlation with people higher than metric B's?

    Args:
        scores_a: (n,) scores of metric A; None leaves the segment out.
        scores_b: (n,) scores of metric B; None leaves the segment out.
        human: (n,) human judgements; None leaves the segment out.

    Returns:
        One-sided p; NaN with its reason where a correlation is not defined, or see `williams`.

    Raises:
        InputError: the columns are not vectors of numbers of one length.
    """
    columns = complete({"scores of A": scores_a, "scores of B": scores_b, "human judgements": human})
    if reason := why_undefined(columns):
        return PValue(np.nan, reason, columns.left_out)
    a, b, people = columns.values.values()
    found = williams(pearson(people, a).value, pearson(people, b).value, pearson(a, b).value, len(people))
    return found._replace(left_out=columns.left_out)
