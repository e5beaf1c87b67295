"""What models write, turned into values. Whatever is not clearly one value is None: unread, never guessed.

No reader raises, whatever the reply.
"""

import json
import re
import unicodedata
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from crag.thinking import THINK_TAG, strip_thinking

__all__ = ["FULLWIDTH", "SENTENCE_END", "read_score", "strip_thinking"]

SENTENCE_END = re.compile(r"[\n\r]+|(?<=[。！？])|(?<=[.!?])\s")
"""Where the sentences of a short text end, roughly; what is stored and quoted is cut by `crag.strips`."""

FULLWIDTH: dict[int, int | str] = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    0x3000: " ",
    0xFF0C: ", ",
    0xFE6A: "%",
    0x2212: "-",
}
_HAN_DIGITS = str.maketrans("零〇一二三四五六七八九", "00123456789")
_HAN_DECIMAL = re.compile(
    r"(?<![^\s：:，,。(（\[【\"'*`为是得分])([零〇一])点([零〇一二三四五六七八九]{1,6})(?=$|分|[\s。，,.;；!！)）\]】\"'*`])"
)
_PERCENT_OF = re.compile(r"百分之\s*([0-9]+(?:\.[0-9]+)?)")
# Full marks and the marks given, in either order, and what makes a fraction of them.
_FULL_MARKS = (
    (
        re.compile(
            r"满分[为是]?\s*([0-9]{1,4})(?![0-9])\s*分?[\s,;.()。]*我?[得打给评]?分?[:\s为]*([0-9.]{1,8})\s*分?"
        ),
        r" \2/\1 ",
    ),
    (
        re.compile(
            r"(?<![0-9.])([0-9.]{1,8})\s*分[\s,;(]*[总满]分[为是]?[:\s]*([0-9]{1,4})(?![0-9])\s*分?\)?"
        ),
        r" \1/\2 ",
    ),
)

_DIGITS = r"(?:[0-9]{1,30}(?:\.[0-9]{1,30}|,(?![0-9]{3}(?![0-9]))[0-9]{1,30})?|0,[0-9]{1,30}|\.[0-9]{1,30})"
_NUMBER = rf"[+-]?{_DIGITS}(?:[eE][+-]?[0-9]{{1,3}})?"
_VALUE = (
    rf"(?<![A-Za-z0-9_./<>≤≥≠$¥€£])(?<![0-9],)(?P<a>{_NUMBER})"
    rf"(?:\s*(?P<pct>%|percent\b|per\s+cent\b)|\s*(?:/|\(?out\s+of)\s*(?P<b>{_NUMBER})\)?)?"
    r"(?![A-Za-z0-9_%/]|[.,][0-9]|\s*%)"
)
_EXPRESSION = re.compile(_VALUE)
_SCALE = re.compile(r"(?<![\w.,/-])0(?:\.0)?\s*(?:[-–—~～至到]|to|and)\s*1(?:\.0)?(?![\w%/]|[.,][0-9])")
_LABEL = re.compile(
    r"(?:\b(?:relevance|score[sd]?|rating|rated?|grade|I(?:['’](?:d|ll)|\s+would|\s+will)?\s+(?:give|assign|say|score))\b"
    r"|评分|得分|分数|打分|评为|相关性|相关度|关联度|我给|给出)"
    r"(?:\s|[:=*\-–—(),]|\b(?:is|was|of|as|at|an?|the|it|be|this(?:\s+(?:document|passage))?|about|around"
    r"|approximately|relevance|score|rating)\b|为|是|约|大约|的|给|出|评分|得分|分数|度){0,16}?"
    rf"{_VALUE}(?!\s*[:=]\s*\S)",
    re.IGNORECASE,
)
_SENTENCE_BEGIN = re.compile(
    r"(?:^|[\n.,;!?。、:*-])\s*(?:(?:the|my|final|overall|relevance|document|total|最终|综合|总)\s*)*$",
    re.IGNORECASE,
)
_ENDED = re.compile(r"\s*(?:分|$|[\n.,;!)(。、]|[-–—]\s)")
_NOT_ALONE = re.compile(
    r"\s*(?:[-–—~～至到]|to\b|or\b|and\b|或|和)\s*\.?[0-9]|\s*分?(?:以下|以上)|\s*or\s+(?:more|less|above|below|higher|lower)",
    re.IGNORECASE,
)
_OTHER_NUMBER = re.compile(
    r"\b(?:confiden|certain|sure\b|probab|threshold|below|above|under|over|than|least|most)|置信|把握|概率|阈值|低于|高于|不到|超过|至少|至多|小于|大于",
    re.IGNORECASE,
)
_LONGEST = 20_000
_NON_FINITE = re.compile(r"(?<![A-Za-z])(?:nan|inf|infinity)(?![A-Za-z])", re.IGNORECASE)
_KEY = re.compile(
    r"(?:(?:relevance|relevancy|final|overall|document)[ _-]?)?(?:score|rating|grade|relevance|relevancy)"
    r"|(?:相关性?|相关度|最终|文档)*(?:评分|得分|分数|打分|相关性|相关度)",
    re.IGNORECASE,
)


def read_score(reply: str) -> float | None:
    """The one score in [0, 1] that a reply states, or None.

    Read: decimals, percentages, fractions ("8/10", "8 out of 10", "满分10分，8分"), JSON with a score key,
    labelled numbers in prose. Not read: several different values, ranges, bounds, numbers on an unnamed
    other scale (85), words, anything out of [0, 1], thoughts that never end.
    """
    tags = THINK_TAG.findall(reply)
    if tags and not tags[-1]:
        return None
    text = strip_thinking(reply).translate(FULLWIDTH)
    if len(text) > _LONGEST or _NON_FINITE.search(text) or any(_is_odd_digit(char) for char in text):
        return None
    found, text = _from_json(text)
    text = _plain(text)
    found += _labelled(text)
    if not found:
        found = _alone(text)
    values = set(found)
    if len(values) != 1:
        return None
    value = values.pop()
    return float(value) if value is not None and 0 <= value <= 1 else None


def _is_odd_digit(char: str) -> bool:
    """Digits of other scripts, superscripts and circled numbers: not worth guessing what they do here."""
    return char > "\x7f" and char != "〇" and unicodedata.category(char) in {"Nd", "No", "Nl"}


def _plain(text: str) -> str:
    """Without Markdown and brackets around values, Chinese decimals and full marks in digits."""
    text = _HAN_DECIMAL.sub(lambda m: f"{m[1]}.{m[2]}".translate(_HAN_DIGITS), text)
    text = re.sub(r"\\boxed\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"^\s*```[a-zA-Z]*$", " ", text, flags=re.MULTILINE)
    text = re.sub(r"[*`\"'{}\[\]“”‘’「」【】#]", " ", text)
    text = _PERCENT_OF.sub(r"\1%", text)
    for full_marks, fraction in _FULL_MARKS:
        text = full_marks.sub(fraction, text)
    return _SCALE.sub(" ", text).strip()


def _value(match: re.Match[str]) -> Fraction | None:
    """The exact value of an expression, None for a division by nothing."""
    value = _fraction(match["a"])
    if match["b"]:
        whole = _fraction(match["b"])
        return value / whole if whole > 0 else None
    return value / 100 if match["pct"] else value


def _fraction(number: str) -> Fraction:
    return Fraction(number.replace(",", "."))


def _labelled(text: str) -> list[Fraction | None]:
    """The values that stand behind a word such as "score" or "评分"; a range counts as unreadable.

    "Score: 0.1" at the beginning of a sentence is a verdict whatever stands around it. "The F1 score was
    0.9" may be about something else: such values count only if no other number contradicts them.
    """
    stated: list[Fraction | None] = []
    mentioned: list[Fraction | None] = []
    for match in _LABEL.finditer(text):
        if _is_whole(match) and not _ENDED.match(text, match.end()):
            continue
        value = None if _NOT_ALONE.match(text, match.end()) else _value(match)
        named = re.search("[:=]", text[match.start() : match.start("a")])
        begins = _SENTENCE_BEGIN.search(text[max(match.start() - 60, 0) : match.start()])
        (stated if named and begins else mentioned).append(value)
    if stated or not mentioned:
        return stated
    others = {_value(match) for match in _EXPRESSION.finditer(text) if not _is_whole(match)}
    return mentioned if others <= set(mentioned) else [None]


def _is_whole(match: re.Match[str]) -> bool:
    """Whether an expression is a bare whole number, which is more often a count than a score."""
    return match["a"].isdigit() and not match["b"] and not match["pct"]


def _alone(text: str) -> list[Fraction | None]:
    """The value of a reply that holds one number, standing where a verdict stands.

    That is: the whole reply, its head, its end or brackets. A whole number or a percentage counts only as
    the whole reply or its head: "document 1 is irrelevant" and "100% irrelevant" are no scores.
    """
    matches = list(_EXPRESSION.finditer(text))
    spelled = sum(len(re.findall("[0-9]", match.group())) for match in matches)
    if not matches or spelled != len(re.findall("[0-9]", text)):
        return []
    values = {_value(match) for match in matches}
    if len(values) > 1 or _NOT_ALONE.match(text, matches[0].end()):
        return []
    first, last = matches[0], matches[-1]
    before, after = text[: first.start()].strip(), text[last.end() :]
    rest = after.strip(" \t\r\n.。,;!:)(分-–—")
    whole_number = _is_whole(first)
    if not before.strip("(:=-–—"):
        listed = whole_number and re.match(r"[.):、]\s*\S", after)
        heads = not rest or (
            not listed and re.match(r"\s*分?\s*(?:[\n,;(]|[-–—]\s|[.。](?:\s|$)|:\s)", after)
        )
        return list(values) if heads else []
    if whole_number or first["pct"] or first["b"] or _OTHER_NUMBER.search(text):
        return []
    bracketed = before.endswith("(") and after.lstrip().startswith(")")
    return list(values) if not rest or bracketed else []


class _NoNumberError(Exception):
    """JSON that holds a constant which is no number."""


class _Object(list[tuple[str, Any]]):
    """A JSON object with every pair it was written with, repeated keys included."""


def _refuse(constant: str) -> Any:
    raise _NoNumberError(constant)


_DECODER = json.JSONDecoder(object_pairs_hook=_Object, parse_float=str, parse_int=str, parse_constant=_refuse)


def _from_json(text: str) -> tuple[list[Fraction | None], str]:
    """The scores in the JSON objects of a reply, and the text without these objects.

    An object without a readable score gives None: what else it holds is not the score.
    """
    found: list[Fraction | None] = []
    at = text.find("{")
    for _ in range(20):
        if at < 0:
            break
        try:
            value, end = _DECODER.raw_decode(text, at)
            found += [_json_value(score) for score in _scores(value)] or [None]
        except (ValueError, RecursionError, _NoNumberError):
            at = text.find("{", at + 1)
            continue
        text = f"{text[:at]} {text[end:]}"
        at = text.find("{", at)
    return found, text


def _scores(value: Any) -> Iterator[Any]:
    if isinstance(value, _Object):
        for key, inner in value:
            if isinstance(inner, list):
                yield from _scores(inner)
            elif _KEY.fullmatch(key.strip()):
                yield inner
    elif isinstance(value, list):
        for inner in value:
            yield from _scores(inner)


def _json_value(value: Any) -> Fraction | None:
    if not isinstance(value, str):
        return None
    match = _EXPRESSION.fullmatch(_plain(value))
    return _value(match) if match else None
