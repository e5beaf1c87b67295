"""How sure a mean or a difference is: intervals from resampling, a judge's noise, and what may be said.

Everything is seeded: the same rows give the same intervals.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from scipy import stats

from .records import Estimate, Finding

RESAMPLES = 4_000
CONFIDENCE = 0.95
SEED = 20240115
FEWEST = 6
"""Rows that must differ before a difference can mean anything: five that all point one way happen by chance
once in sixteen times (two-sided sign test), six once in thirty-two."""


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


def paired(baseline: Mapping[str, float], system: Mapping[str, float]) -> tuple[Estimate, int, int]:
    """System minus baseline over the rows that both were scored on; the pairs; how many of them differ."""
    differences = [system[key] - baseline[key] for key in sorted(baseline.keys() & system.keys())]
    changed = sum(abs(difference) > 1e-9 for difference in differences)
    if not differences:
        return Estimate(mean=None), 0, 0
    mean = _rounded(statistics.fmean(differences))
    if len(differences) < 2:
        return Estimate(mean=mean), 1, changed
    low, high = bootstrap(differences)
    return Estimate(mean=mean, low=_rounded(low), high=_rounded(high)), len(differences), changed


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
def _weights(n: int) -> "np.ndarray":
    """Shape [RESAMPLES, n]: how often each of n values is drawn, as a share."""
    random = np.random.default_rng([SEED, n])
    return random.multinomial(n, np.full(n, 1 / n), size=RESAMPLES) / n


def noise(repeats: Sequence[Sequence[float]]) -> float | None:
    """Mean standard deviation between the repeats of one row; None where no row was judged twice."""
    spreads = [statistics.stdev(row) for row in repeats if len(row) > 1]
    return _rounded(statistics.fmean(spreads)) if spreads else None


def finding(
    difference: Estimate, pairs: int, changed: int, noise: float | None, higher_is_better: bool | None
) -> Finding:
    """What may be said of a difference: it must be more than chance and more than the judge's noise."""
    if difference.mean is None or difference.low is None or difference.high is None or pairs < 2:
        return "not comparable"
    by_chance = difference.low <= 0 <= difference.high or changed < FEWEST
    if by_chance or abs(difference.mean) <= (noise or 0.0):
        return "within noise"
    if higher_is_better is None:
        return "different"
    return "better" if (difference.mean > 0) is higher_is_better else "worse"


def _rounded(value: float) -> float:
    return round(float(value), 6)
