"""A gate for continuous integration: metrics that must not be too low, or lower than they were."""

import math
from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from crag.base.errors import CragError, SettingsError
from crag.base.wording import meant

from ..data.differences import differences
from ..data.records import Metric, MetricResult, Provenance, Result

_SLACK = 1e-9  # a limit that is met exactly is met


@dataclass(frozen=True)
class Limit:
    """A bound on one metric of one system, over all questions."""

    system: str
    metric: str
    value: float


class OtherOriginError(CragError):
    """A baseline that was made from something else and proves nothing here."""


def parse_limit(text: str, flag: str, systems: Sequence[str], metrics: Sequence[Metric]) -> Limit:
    """`METRIC=V` (of the last system) or `SYSTEM.METRIC=V`. Raises SettingsError for what cannot be held."""
    left, equals, right = text.rpartition("=")
    system, dot, metric = left.rpartition(".")
    try:
        value = float(right)
    except ValueError:
        value = math.nan
    # Every metric lies in [0, 1]: a limit beyond, such as 2 for two per cent, would never close the gate.
    if not equals or not 0 <= value <= 1:
        raise SettingsError(
            f"{flag} {text}: give METRIC=NUMBER or SYSTEM.METRIC=NUMBER with a number from 0 to 1, "
            "as in answer_match=0.8"
        )
    names = [known.name for known in metrics]
    if metric not in names:
        hint = meant(metric, names, f"there are {', '.join(names)}")
        raise SettingsError(f"{flag} {text}: {metric} is not measured here; {hint}")
    if dot and system not in systems:
        raise SettingsError(f"{flag} {text}: no system {system} is asked; there are {', '.join(systems)}")
    return Limit(system if dot else systems[-1], metric, value)


def read_baseline(path: Path) -> Result:
    """An earlier result.json. Raises SettingsError when it is none."""
    try:
        return Result.model_validate_json(path.read_bytes().removeprefix(BOM_UTF8))
    except OSError as error:
        raise SettingsError(f"--baseline {path}: {error.strerror}; give the result.json of a run") from None
    except ValidationError:
        raise SettingsError(f"--baseline {path} is not the result.json of a benchmark") from None


def check_baseline(baseline: Result, now: Provenance, *, judged: bool = False) -> None:
    """Raises OtherOriginError unless both were asked the same of the same documents and web.

    `judged`: a limit is on a metric of the judge, who must then be the same as well.
    """
    fields = ("dataset_sha256", "corpus", "web", *(("judge",) if judged else ()))
    what = differences(baseline.provenance, now, fields)
    if baseline.provenance.questions != now.questions:
        what.append(f"the number of questions ({baseline.provenance.questions}, now {now.questions})")
    if what:
        raise OtherOriginError(
            f"the baseline was made from something else ({', '.join(what)} changed), so they "
            "cannot be compared; make a new baseline"
        )


def failures(
    result: Result, floors: Sequence[Limit], baseline: Result | None = None, drops: Sequence[Limit] = ()
) -> list[str]:
    """Why the gate does not open, a line each; [] when it does. What has no value never passes.

    A floor is the worst mean that is allowed, a drop the most by which a mean may be worse than in the
    baseline; for a metric of which less is better both are turned round.
    """
    reasons = []
    for limit in floors:
        name, sign = f"{limit.system}.{limit.metric}", _sign(result, limit.metric)
        mean = _mean(result, limit)
        if isinstance(mean, str):
            reasons.append(f"{name} {mean}; nothing is proved")
        elif sign * mean < sign * limit.value - _SLACK:
            side = "below" if sign > 0 else "above"
            reasons.append(f"{name} is {mean:.3f}, {side} the limit {limit.value:g}")
    for limit in drops:
        name, sign = f"{limit.system}.{limit.metric}", _sign(result, limit.metric)
        mean = _mean(result, limit)
        before = _mean(baseline, limit) if baseline else "has no baseline"
        if isinstance(mean, str) or isinstance(before, str):
            told = mean if isinstance(mean, str) else f"in the baseline {before}"
            reasons.append(f"{name} {told}; nothing is proved")
        elif sign * (before - mean) > limit.value + _SLACK:
            worse = sign * (before - mean)
            reasons.append(
                f"{name} is {mean:.3f}, was {before:.3f}: worse by {worse:.3f}, more than {limit.value:g}"
            )
    return reasons


def unequal(result: Result, baseline: Result, drops: Sequence[Limit]) -> list[str]:
    """Which means do not rest on as many rows as those of the baseline, a line each."""
    lines = []
    for limit in drops:
        now, before = _result(result, limit), _result(baseline, limit)
        if now and before and now.scored != before.scored:
            lines.append(
                f"{limit.system}.{limit.metric} rests on {now.scored} rows, in the baseline on "
                f"{before.scored}: part of the change may be theirs"
            )
    return lines


def _sign(result: Result, metric: str) -> int:
    known = next((m for m in result.metrics if m.name == metric), None)
    return -1 if known and known.higher_is_better is False else 1


def _mean(result: Result, limit: Limit) -> float | str:
    """The mean over all questions, or why there is none to be trusted."""
    found = _result(result, limit)
    if found is None:
        return "was not measured"
    unscored = sum(found.unscored.values())
    mean = found.value.mean
    # A file may have been edited: what no metric can be, or rests on nothing, proves nothing.
    if mean is None or not 0 <= mean <= 1 or not found.scored:
        return f"has no value ({unscored} rows unscored)"
    if unscored > found.scored:
        return f"is unscored on {unscored} of {unscored + found.scored} rows"
    return mean


def _result(result: Result, limit: Limit) -> MetricResult | None:
    return next(
        (
            value
            for value in result.values
            if (value.system, value.metric, value.group) == (limit.system, limit.metric, "all")
        ),
        None,
    )
