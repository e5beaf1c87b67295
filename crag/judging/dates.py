"""Dates and times of day in a text, in the notations of English and Chinese."""

import re
from fractions import Fraction
from typing import NamedTuple

from crag.text.numbers import han_value

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"[0-3]?\d(?:st|nd|rd|th)?(?!\d)"
_YEAR = r"(?<!\d)[12]\d{3}(?!\d)"
_HAN = "〇零一二三四五六七八九十廿卅"
_DATES = (
    re.compile(
        rf"(?P<y>[12]\d{{3}}|[{_HAN}]{{4}})\s*年\s*(?:(?P<m>[01]?\d|[{_HAN}]{{1,3}})\s*月"
        rf"(?:份|\s*(?P<d>[0-3]?\d|[{_HAN}]{{1,3}})\s*[日号號])?)?"
    ),
    re.compile(
        rf"(?<![\d年{_HAN}])(?P<m>1[0-2]|0?[1-9]|[{_HAN}]{{1,2}})\s*月(?:份|\s*(?P<d>[0-3]?\d|[{_HAN}]{{1,3}})\s*[日号號])"
    ),
    re.compile(r"(?<![\d./-])(?P<y>[12]\d{3})(?P<s>[-/.])(?P<m>[01]?\d)(?P=s)(?P<d>[0-3]?\d)(?![\d/-]|\.\d)"),
    re.compile(
        r"(?<![\d./-])(?P<n1>[0-3]?\d)(?P<s>[-/.])(?P<n2>[0-3]?\d)(?P=s)(?P<y>[12]\d{3})(?![\d/-]|\.\d)"
    ),
    re.compile(rf"\b(?P<w>{_MONTH})\s+(?:the\s+)?(?P<d>{_DAY})(?:\s*,?\s*(?P<y>{_YEAR}))?", re.IGNORECASE),
    re.compile(
        rf"(?<![\d.])(?P<d>{_DAY})\s+(?:of\s+)?(?P<w>{_MONTH})(?:\s*,?\s*(?P<y>{_YEAR}))?", re.IGNORECASE
    ),
    re.compile(rf"\b(?P<w>{_MONTH})(?:\s+of)?\s*,?\s+(?P<y>{_YEAR})", re.IGNORECASE),
)
_CLOCK = re.compile(r"(?<![\d:.])([0-2]?\d):([0-5]\d)(?::[0-5]\d)?(?![\d:])")
_HAN_CLOCK = re.compile(r"(?<!\d)([0-2]?\d)\s*[点點时時](?:\s*([0-5]?\d)\s*分|(半)|(?=整))")


class Date(NamedTuple):
    """What of a date is said."""

    year: int | None
    month: int | None
    day: int | None


def dated(text: str) -> list[tuple[int, int, list[Date]]]:
    """Start, end and possible readings of each date, the fullest notation first where they overlap."""
    taken: list[tuple[int, int, list[Date]]] = []
    for pattern in _DATES:
        for match in pattern.finditer(text):
            readings = _readings({name: value for name, value in match.groupdict().items() if value})
            overlaps = any(match.start() < end and start < match.end() for start, end, _ in taken)
            if readings and not overlaps:
                taken.append((match.start(), match.end(), readings))
    return taken


def _readings(parts: dict[str, str]) -> list[Date]:
    year = _digits(parts.get("y"))
    day = _digits(parts.get("d"))
    if "n1" in parts:
        first, second = int(parts["n1"]), int(parts["n2"])
        dates = [Date(year, first, second), Date(year, second, first)]
    elif "w" in parts:
        dates = [Date(year, _MONTHS.index(parts["w"][:3].lower()) + 1, day)]
    else:
        dates = [Date(year, _digits(parts.get("m")), day)]
    return [date for date in dates if (date.month or 1) in range(1, 13) and (date.day or 1) in range(1, 32)]


def _digits(text: str | None) -> int | None:
    if text is None:
        return None
    found = re.match(r"\d+", text)
    value = Fraction(found.group()) if found else han_value(text)
    return None if value is None else int(value)


def clocked(text: str) -> list[tuple[int, int, tuple[int, int]]]:
    """Start, end and time of day on a dial of twelve hours."""
    times = [(m.start(), m.end(), (int(m[1]) % 12, int(m[2]))) for m in _CLOCK.finditer(text)]
    for match in _HAN_CLOCK.finditer(text):
        minutes = 30 if match[3] else int(match[2] or 0)
        times.append((match.start(), match.end(), (int(match[1]) % 12, minutes)))
    return times
