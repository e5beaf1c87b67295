"""What models write, turned into values. Whatever is not clearly one value is None: unread, never guessed.

No reader raises, whatever the reply.
"""

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from crag.replies.found_json import found_json
from crag.replies.numerals import (
    EXPRESSION,
    FULLWIDTH,
    QUOTED,
    alone,
    bare,
    is_odd_digit,
    labelled,
    plain,
    value_of,
)
from crag.replies.thinking import ends_in_thought, strip_thinking

__all__ = ["FULLWIDTH", "LONGEST", "read_score", "strip_thinking"]

_NON_FINITE = re.compile(r"(?<![A-Za-z])(?:nan|inf|infinity)(?![A-Za-z])", re.IGNORECASE)
_KEY = re.compile(
    r"(?:(?:relevance|relevancy|final|overall|document)[ _-]?)?(?:score|rating|grade|relevance|relevancy)"
    r"|(?:相关性?|相关度|最终|文档)*(?:评分|得分|分数|打分|相关性|相关度)",
    re.IGNORECASE,
)
LONGEST = 20_000
"""Characters of a reply beyond which it is not read, or not further."""
_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060\ufeff\u00ad]")


def read_score(reply: str) -> float | None:
    """The one score in [0, 1] that a reply states, or None.

    Read: decimals, percentages, fractions ("8/10", "8 out of 10", "满分10分，8分"), JSON with a score key,
    labelled numbers in prose. Not read: several different values, ranges, bounds, numbers on an unnamed
    other scale (85), words, anything out of [0, 1], thoughts that never end.
    """
    if ends_in_thought(reply):
        return None
    text = _INVISIBLE.sub("", strip_thinking(reply)).translate(FULLWIDTH)
    if len(text) > LONGEST or _NON_FINITE.search(text) or any(is_odd_digit(char) for char in text):
        return None
    found, text = _from_json(text)
    # A document that is quoted may name a score of its own.
    found += labelled(plain(QUOTED.sub(" ", text)))
    text = plain(text)
    if not found:
        found = labelled(text)
    if found:
        # A reply that goes on with a next document, or with second thoughts, has a score for each.
        found += bare(text)
    if not found:
        found = alone(text)
    values = set(found)
    if len(values) != 1:
        return None
    value = values.pop()
    return float(value) if value is not None and 0 <= value <= 1 else None


class _NoNumberError(ValueError):
    """JSON that holds a constant which is no number."""


class _Object(list[tuple[str, Any]]):
    """A JSON object with every pair it was written with, repeated keys included."""


def _refuse(constant: str) -> Any:
    raise _NoNumberError(constant)


_DECODER = json.JSONDecoder(object_pairs_hook=_Object, parse_float=str, parse_int=str, parse_constant=_refuse)


def _from_json(text: str) -> tuple[list[Fraction | None], str]:
    """The scores in the JSON objects of a reply, and the text without these objects.

    A score that cannot be read gives None; what else an object holds is not the score.
    """
    found: list[Fraction | None] = []
    rest, at = [], 0
    for value, begin, end in found_json(text, r"\{", decoder=_DECODER):
        found += [_json_value(score) for score in _scores(value)]
        rest.append(text[at:begin])
        at = end
    return found, " ".join([*rest, text[at:]])


def _scores(value: Any) -> Iterator[Any]:
    if isinstance(value, _Object):
        for key, inner in value:
            if isinstance(inner, _Object) and _KEY.fullmatch(key.strip()):
                yield from [one for name, one in inner if name == "value"] or _scores(inner)
            elif isinstance(inner, list):
                yield from _scores(inner)
            elif _KEY.fullmatch(key.strip()):
                yield inner
    elif isinstance(value, list):
        for inner in value:
            yield from _scores(inner)


def _json_value(value: Any) -> Fraction | None:
    if not isinstance(value, str):
        return None
    match = EXPRESSION.fullmatch(plain(value))
    return value_of(match) if match else None
