"""Scores in Chinese words ("零点八", "百分之八十", "十分之七", "八成五"), written in digits."""

import re
from fractions import Fraction

from crag.text.numbers import HAN_NUMERAL, han_value

_NUMBER = (
    rf"(?<![〇零一二三四五六七八九两兩十百千万萬亿億0-9.])(?:{HAN_NUMERAL}|[0-9]{{1,9}}(?:\.[0-9]{{1,9}})?)"
)
_PERCENT = re.compile(rf"百分之\s*({_NUMBER})")
_SHARE = re.compile(rf"({_NUMBER})\s*分之\s*({_NUMBER})")
_TENTHS = re.compile(rf"({_NUMBER})\s*成([一二三四五六七八九1-9]|半)?(?=$|[^\w]|左右|分)")
_MARKS = re.compile(rf"({_NUMBER})(?=\s*分(?:$|[^\w]|[满总]))")
_DECIMAL = re.compile(
    r"(?<![^\s:,.;。(|>=~≈约为是得分-])([零〇一])点([零〇一二三四五六七八九]{1,6})(?=$|分|左右|[\s。，,.;；!！)）|<])"
)
_DIGITS = str.maketrans("零〇一二三四五六七八九", "00123456789")


def in_digits(text: str) -> str:
    """The text with such scores as "0.8", "80%", "7/10", "85%" and "8分"; what is none stays."""
    text = _PERCENT.sub(lambda found: _written("{}%", found, 1), text)
    text = _SHARE.sub(lambda found: _written("{}/{}", found, 2, 1), text)
    text = _TENTHS.sub(_tenths, text)
    if re.search("[满总]分", text):
        text = _MARKS.sub(lambda found: _written("{}", found, 1), text)
    return _DECIMAL.sub(lambda found: f"{found[1]}.{found[2]}".translate(_DIGITS), text)


def _written(form: str, found: re.Match[str], *groups: int) -> str:
    """The numerals of groups in digits; the text as it was where one of them is no single number."""
    values = [_value(found[group]) for group in groups]
    return found[0] if None in values else form.format(*values)


def _tenths(found: re.Match[str]) -> str:
    tenths = _value(found[1])
    more = _value("5" if found[2] == "半" else found[2] or "0")
    if tenths is None or more is None:
        return found[0]
    return _decimal(Fraction(tenths) * 10 + Fraction(more)) + "%"


def _value(numeral: str) -> str | None:
    if re.fullmatch(r"[0-9.]+", numeral):
        return numeral
    value = han_value(numeral)
    return None if value is None else _decimal(value)


def _decimal(value: Fraction) -> str:
    """An exact decimal: every numeral here is one, with at most ten places."""
    whole, rest = divmod(int(value * 10**12), 10**12)
    return f"{whole}.{rest:012}".rstrip("0").rstrip(".")
