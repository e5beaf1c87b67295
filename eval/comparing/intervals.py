"""How sure a mean or a difference is: intervals from resampling, a judge's noise, and what may be said.

Everything is seeded: the same rows give the same intervals.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from scipy import stats

from ..data.records import Estimate, Finding

RESAMPLES = 4_000
CONFIDENCE = 0.95
SEED = 20240115
FEWEST = 6
"""Rows that must differ before a difference can mean anything: five that all point one way happen by chance
once in sixteen times (two-sided sign test), six once in thirty-two."""

_SAME = 1e-9
_ALL_SIGNS = 12


def estimate(values: Sequence[float]) -> Estimate:
    """The mean with its interval; no interval below two values.

    Yes-or-no values get Wilson's interval, which is honest where all are alike; others a bootstrap.
    """
    if len(values) < 2:
        return Estimate(mean=_rounded(values[0]) if values else None)
    mean = statistics.fmean(values)
    if set(values) <= {0.0, 1.0}:
        test = stats.binomtest(round(sum(values)), len(values))
        low, high = test.proportion_ci(CONFIDENCE, method="wilson")
    else:
        low, high = bootstrap(values)
    return Estimate(mean=_rounded(mean), low=_rounded(low), high=_rounded(high))


def paired(baseline: Mapping[str, float], system: Mapping[str, float]) -> tuple[Estimate, int, float]:
    """System minus baseline over the rows that both were scored on; the pairs; its probability by chance."""
    differences = [system[key] - baseline[key] for key in sorted(baseline.keys() & system.keys())]
    if not differences:
        return Estimate(mean=None), 0, 1.0
    by_chance = chance(differences)
    mean = _rounded(statistics.fmean(differences))
    if len(differences) < 2:
        return Estimate(mean=mean), 1, by_chance
    low, high = bootstrap(differences)
    return Estimate(mean=mean, low=_rounded(low), high=_rounded(high)), len(differences), by_chance


def chance(differences: Sequence[float]) -> float:
    """How likely a mean as far from 0 is if each difference could as well have the other sign.

    Fisher's randomisation test for pairs, two-sided; exact for few values and for those of one size (the sign
    test), else from random signs. For few rows that differ it is stricter than the interval.
    """
    moved = np.asarray([one for one in differences if abs(one) > _SAME])
    if not len(moved):
        return 1.0
    sizes = np.abs(moved)
    if np.ptp(sizes) <= _SAME:
        return float(stats.binomtest(int((moved > 0).sum()), len(moved)).pvalue)
    as_far = np.abs(_signs(len(moved)) @ moved) >= abs(moved.sum()) - _SAME
    return float(as_far.mean())


def bootstrap(values: Sequence[float]) -> tuple[float, float]:
    """The interval of a mean from resampling the values; percentiles widened for small samples.

    Plain percentiles are too narrow for few values; Hesterberg (2015, "What Teachers Should Know About the
    Bootstrap", The American Statistician 69) widens them to the size of a t interval.
    """
    n = len(values)
    means = _weights(n) @ np.asarray(values, dtype=float)
    t = stats.t.ppf((1 - CONFIDENCE) / 2, n - 1)
    tail = float(stats.norm.cdf(math.sqrt(n / (n - 1)) * t))
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


@lru_cache(maxsize=64)
def _signs(n: int) -> "np.ndarray":
    """Shape [draws, n] of 1 and -1: all there are for few values, else random ones after the true signs."""
    if n <= _ALL_SIGNS:
        return 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
    drawn = np.random.default_rng([SEED, n]).integers(0, 2, size=(RESAMPLES, n))
    return 1 - 2 * np.vstack([np.zeros((1, n), dtype=drawn.dtype), drawn])


@lru_cache(maxsize=64)
def _weights(n: int) -> "np.ndarray":
    """Shape [RESAMPLES, n]: how often each of n values is drawn, as a share."""
    random = np.random.default_rng([SEED, n])
    return random.multinomial(n, np.full(n, 1 / n), size=RESAMPLES) / n


def noise(repeats: Sequence[Sequence[float]]) -> float | None:
    """Mean standard deviation between the repeats of one row; None where no row was judged twice."""
    spreads = [statistics.stdev(row) for row in repeats if len(row) > 1]
    return _rounded(statistics.fmean(spreads)) if spreads else None


def finding(
    difference: Estimate, pairs: int, chance: float, noise: float | None, higher_is_better: bool | None
) -> Finding:
    """What may be said of a difference: it must be more than chance and more than the judge's noise.

    Chance is excluded by the interval and, at the same level, by `chance`.
    """
    if difference.mean is None or difference.low is None or difference.high is None or pairs < 2:
        return "not comparable"
    by_chance = difference.low <= 0 <= difference.high or chance > 1 - CONFIDENCE
    if by_chance or abs(difference.mean) <= (noise or 0.0):
        return "within noise"
    if higher_is_better is None:
        return "different"
    return "better" if (difference.mean > 0) is higher_is_better else "worse"


def _rounded(value: float) -> float:
    return round(float(value), 6)
