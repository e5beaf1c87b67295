"""What the report says in words and figures: numbers, characters that hide, and the headline."""

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import urlsplit

from crag.base.language import language_of

from ..data.records import Difference, Result, Spending

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff\ud800-\udfff]"
)
NONE = "–"


def visible(text: str) -> str:
    """`text` with control characters, and those that turn the writing direction, spelled out."""
    return _HIDDEN.sub(lambda m: f"\\u{ord(m[0]):04x}", text.replace("\r\n", "\n"))


def number(value: float | None, digits: int = 3) -> str:
    """A figure, "–" for one that is not known."""
    return NONE if value is None or not math.isfinite(value) else f"{value:,.{digits}f}"


def signed(value: float | None, digits: int = 3) -> str:
    """A difference with its sign, a real minus."""
    if value is None or not math.isfinite(value):
        return NONE
    text = f"{abs(value):,.{digits}f}"
    if not float(text.replace(",", "")):
        return text
    return ("+" if value > 0 else "−") + text


def moment(created: str) -> str:
    """An ISO time to the minute, in UTC if it has a zone; what is no such time stays as it is."""
    try:
        when = datetime.fromisoformat(created)
    except ValueError:
        return created
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if when.tzinfo else f"{when:%Y-%m-%d %H:%M}"


def share(value: float | None, low: float = 0.0, high: float = 1.0) -> str:
    """Where `value` lies between `low` and `high`, as a CSS percentage."""
    if value is None or not math.isfinite(value):
        return "0%"
    return f"{min(max((value - low) / (high - low), 0.0), 1.0) * 100:.2f}%"


def link(address: str) -> str | None:
    """The address if it is one of the web; anything else (files, `javascript:`) is shown and not linked."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    fine = parts.scheme.lower() in ("http", "https") and parts.netloc
    return address if fine and not re.search(r"\s", address) and visible(address) == address else None


def lang_of(text: str) -> str:
    """The value of a `lang` attribute that lets the browser choose the right glyphs."""
    return {"zh": "zh-Hans", "en": "en"}[language_of(text)]


def applied(result: Result) -> list[str]:
    """The metrics that say something about this question set: any row was scored, or failed to be."""
    found = {v.metric for v in result.values if v.group == "all" and (v.scored or v.unscored)}
    return [m.name for m in result.metrics if m.name in found]


def headlines(result: Result) -> list[str]:
    """One sentence for each system that is compared with another: findings over all rows, and their price."""
    told = applied(result)
    overall = [d for d in result.differences if d.group == "all" and d.metric in told]
    pairs = list(dict.fromkeys((d.system, d.baseline) for d in overall))
    spending = {s.system: s for s in result.spending}
    return [
        _verdict(system, baseline, [d for d in overall if (d.system, d.baseline) == (system, baseline)])
        + _price(spending.get(system), spending.get(baseline))
        for system, baseline in pairs
    ]


def _verdict(system: str, baseline: str, differences: Sequence[Difference]) -> str:
    count = {
        f: sum(d.finding == f for d in differences)
        for f in ("better", "worse", "different", "within noise", "not comparable")
    }
    total = len(differences)
    parts = [f"worse on {count['worse'] or 'none'}"]
    parts += [f"{f} on {count[f]}" for f in ("within noise", "different", "not comparable") if count[f]]
    metrics = "metric" if total == 1 else "metrics"
    better = f"{count['better']} of {total} {metrics}" if count["better"] else f"none of {total} {metrics}"
    return f"{system} is better than {baseline} on {better}, {', '.join(parts)}"


def _price(system: Spending | None, baseline: Spending | None) -> str:
    if not system or not baseline or not system.questions or not baseline.questions:
        return "."
    n, m = system.questions, baseline.questions
    parts = []
    for extra, digits, what in (
        (system.llm_calls / n - baseline.llm_calls / m, 1, "model calls"),
        (system.web_calls / n - baseline.web_calls / m, 1, "web searches"),
    ):
        if amount := _amount(extra, digits):
            parts.append(f"{amount} {what}")
    if system.cost_usd is not None and baseline.cost_usd is not None:
        extra = system.cost_usd / n - baseline.cost_usd / m
        if amount := _amount(extra, 4, "US$\u00a0"):
            parts.append(amount)
    if amount := _amount(system.seconds_p50 - baseline.seconds_p50, 2, unit="\u00a0s"):
        parts.append(f"{amount} at the median")
    return f"; per question it takes {_listed(parts)}." if parts else "; it costs the same."


def _amount(extra: float, digits: int, before: str = "", unit: str = "") -> str:
    text = f"{abs(extra):.{digits}f}"
    return f"{before}{text}{unit}\u00a0{'more' if extra > 0 else 'less'}" if float(text) else ""


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
