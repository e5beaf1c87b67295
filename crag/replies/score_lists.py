"""Lists that models write: a score from 1 to 5 for each of several numbered texts.

As in `crag.replies.scores`, what is not clearly there is None, and no reader raises.
"""

import json
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from crag.replies.found_json import found_json
from crag.replies.numerals import RETRACTED
from crag.replies.scores import FULLWIDTH, LONGEST, strip_thinking

LOWEST, HIGHEST = 1, 5
"""The scale of score lists."""

_DIGITS = r"[0-9]{1,3}(?:\.[0-9]{1,6})?"
_VALUE = (
    rf"(?<![A-Za-z0-9_.])(?P<value>{_DIGITS})(?![A-Za-z0-9_%]|[.,][0-9]|\s*(?:[-–—~～至到]|or)\s*[0-9])"
    rf"(?:\s*(?:/|\(?out\s+of)\s*(?P<full>{_DIGITS}))?"
)
_WORD = r"(?:scored?|scores|rating|rated|relevance|评分|得分|分数|打分|相关性|相关度)"
_KIND = r"(?:passages?|documents?|docs?|strips?|items?|no\.?|p|第|段落|文档|片段|句子|条目)[ _-]*#?"

# A number is a label, not a score, by the word or the brackets around it or by the sign behind it.
_SIGN = r"\s*(?:[:=)]|[-=]>|→|、(?!\s*[0-9]+\s*、))|\.\s"
_LABEL = rf"{_KIND}(?P<a>[0-9]{{1,4}})|[\[(](?P<b>[0-9]{{1,4}})[\])]|#?(?P<c>[0-9]{{1,4}})(?={_SIGN})"
_HEAD = re.compile(
    rf"[^\w\[(]*(?:(?P<d>[0-9]{{1,4}})\s*[-–—]\s*(?={_DIGITS}\s*$)"
    rf"|(?:{_LABEL})\s*[段条篇个句]?\s*(?:[-=]>|→|[:=.)、\]]*)\s*(?:[–—-]+\s)?)\s*",
    re.IGNORECASE,
)
_ROW = re.compile(rf"\s*\|\s*(?:{_KIND})?(?P<n>[0-9]{{1,4}})\s*\|(?P<rest>.*)", re.IGNORECASE)
_NEXT = re.compile(
    rf"(?:[,;]\s*|\s+)(?=(?:{re.sub('<(.)>', lambda m: f'<next_{m[1]}>', _LABEL)}))", re.IGNORECASE
)
_FIRST = re.compile(rf"[\s|\"'(]*(?:{_WORD}\s*[:=为是]?)?\s*{_VALUE}", re.IGNORECASE)
_COUNT = re.compile(
    r"\s+(?:of|reasons?|facts?|parts?|sentences?|details?|claims?|things?|words?|years?|items?|matches)\b|\s*[个處处项條条句](?!$)",
    re.IGNORECASE,
)
"""What behind a number makes it a count of something in the text."""
_NAMED = re.compile(rf"{_WORD}\s*(?:is|of|[:=为是])?\s*{_VALUE}", re.IGNORECASE)
_LAST = re.compile(rf"(?:[:=|]|\s[–—-]\s)\s*{_VALUE}\s*分?[\s.。|]*$")

_GONE = r"(?:null|none|n/?a|nan|unscored|\?|无)"
_ENTRY = rf"(?:(?<![A-Za-z0-9_.]){_DIGITS}(?:\s*/\s*5(?![0-9.]))?|{_GONE})(?![A-Za-z0-9_%]|\.[0-9])"
_BETWEEN = r"(?:\s+|\s*[,;、|/分]\s*)"
_RUN = re.compile(rf"{_ENTRY}(?:{_BETWEEN}(?:{_ENTRY}|(?=[,;、|])))*", re.IGNORECASE)
_SCALE = re.compile(
    r"\(\s*1\s*[-–—~至到]\s*5[^)\n]*\)|\b1\s*(?:to|至|到|~)\s*5\b|(?:scale|from|range)[^\d\n]{0,12}1\s*[-–—]\s*5\b",
    re.IGNORECASE,
)

_INDEX_KEY = re.compile(r"id|n|no|index|number|passage|document|doc|strip|item|编号|序号|段落|文档", re.I)
_SCORE_KEY = re.compile(rf".*{_WORD}.*", re.IGNORECASE)


def read_scores(reply: str, count: int) -> list[float | None] | None:
    """The scores in [1, 5] of `count` texts numbered from 1, or None when there is no readable list.

    A text of which nothing is said, or nothing readable, is None in the list and moves no other. Read: lines
    and runs of "n: score" with any marks, labels and comments, JSON, tables, and bare lists with any
    separators, whose scores belong to the texts from the first on. A bare list longer than `count`, or a
    single number for several texts, is no readable list.
    """
    text = strip_thinking(reply)[:LONGEST].translate(FULLWIDTH).replace("*", "").replace("`", " ")
    if '"' not in text:
        text = re.sub(r"'(?=\s*[:,}\]])|(?<=[{\[,])(\s*)'", r'\1"', text)
    text = _SCALE.sub(" ", "\n".join(" ".join(line.split()) for line in text.splitlines()))
    whole = _RUN.fullmatch(text.strip())
    for read in (_bare,) if whole and len(_entries(text)) == count else (_from_json, _numbered, _bare):
        found = read(text, count)
        if any(score is not None for score in found):
            return found
    return None


def _score(text: Any) -> float | None:
    """The score that a cell or a JSON value holds."""
    found = _FIRST.fullmatch(str(text).strip().removesuffix("分"))
    return _in_scale(found) if found and not isinstance(text, bool) else None


_DECODER = json.JSONDecoder(parse_float=str, parse_int=str)


def _in_scale(found: re.Match[str]) -> float | None:
    score = float(found["value"])
    return score if LOWEST <= score <= HIGHEST and float(found["full"] or HIGHEST) == HIGHEST else None


def _placed(pairs: Iterable[tuple[int, float | None]], count: int) -> list[float | None]:
    """Scores by label, which begin at 1, or at 0 if one is 0; a text scored twice differently is None."""
    said: dict[int, set[float]] = {}
    for label, score in pairs:
        said.setdefault(label, set()).update([] if score is None else [score])
    first = 0 if 0 in said and count not in said else 1
    scores = [said.get(n + first, set()) for n in range(count)]
    return [next(iter(values)) if len(values) == 1 else None for values in scores]


def _from_json(text: str, count: int) -> list[float | None]:
    for value, at, end in found_json(text, decoder=_DECODER):
        # A lone [n] before other numbers is a label.
        if isinstance(value, dict) or len(value) > 1 or not re.search(r"\d", text[:at] + text[end:]):
            return _json_scores(value, count)
    return []


def _json_scores(value: Any, count: int) -> list[float | None]:
    if isinstance(value, dict):
        inner = next((item for item in value.values() if isinstance(item, list | dict)), None)
        if inner is not None and not any(re.search(r"\d", key) for key in value):
            return _json_scores(inner, count)
        return _placed(
            (
                (int(number[0]), _score(_named(item)))
                for key, item in value.items()
                if (number := re.search(r"[0-9]{1,4}", key))
            ),
            count,
        )
    indexed = [(n, item) for item in value if (n := _index(item)) is not None]
    if indexed:
        return _placed(((n, _score(_named(item))) for n, item in indexed), count)
    return _padded([_score(_named(item)) for item in value], count)


def _named(item: Any) -> Any:
    """What stands under a key such as "score", or second in a pair."""
    if isinstance(item, list):
        return item[-1] if item else None
    if isinstance(item, dict):
        return next((value for key, value in item.items() if _SCORE_KEY.fullmatch(key)), None)
    return item


def _index(item: Any) -> int | None:
    if isinstance(item, list) and len(item) == 2:
        item = {"id": item[0]}
    for key, value in item.items() if isinstance(item, dict) else ():
        number = re.search(r"[0-9]{1,4}", str(value)) if _INDEX_KEY.fullmatch(key) else None
        if number:
            return int(number[0])
    return None


def _numbered(text: str, count: int) -> list[float | None]:
    pairs = []
    for line in text.splitlines():
        row = _ROW.match(line)
        if row:
            pairs.append((int(row["n"]), _first_or_last(row["rest"])))
            continue
        # finditer, not split: the look-ahead has groups.
        cuts = [0, *(m.end() for m in _NEXT.finditer(line)), len(line)]
        for start, end in pairwise(cuts):
            segment = line[start:end].rstrip(" ,;\"'")
            head = _HEAD.match(segment.replace('"', " ").replace("'", " "))
            if head:
                label = head["a"] or head["b"] or head["c"] or head["d"]
                pairs.append((int(label), _first_or_last(segment[head.end() :])))
    return _placed(pairs, count)


def _first_or_last(text: str) -> float | None:
    """The score of one text: the number it begins with, else the last one named a score or at its end."""
    found = _FIRST.match(text)
    if found and (RETRACTED.match(text, found.end()) or _COUNT.match(text, found.end())):
        return None
    if not found:
        named = list(_NAMED.finditer(text))
        found = named[-1] if named else _LAST.search(text)
    return _in_scale(found) if found else None


def _bare(text: str, count: int) -> list[float | None]:
    runs = [_entries(run.group()) for run in _RUN.finditer(text)]
    lists = [run for run in runs if len(run) > 1 or count == 1]
    fitting = [run for run in lists if len(run) == count] or lists
    return _padded(fitting[0], count) if len(fitting) == 1 else []


def _entries(run: str) -> list[float | None]:
    run = re.sub(r"\s*/\s*5(?![0-9.])", "", run) if re.search(r"[,;、|\s]|^[^/]*/[^/]*$", run) else run
    signs = r"\s*[,;、|/]\s*" if re.search(r"[,;、|/]", run) else r"[\s分]+"
    return [_score(entry) for entry in re.split(signs, run.strip(" \n,;、|/分"))]


def _padded(scores: list[float | None], count: int) -> list[float | None]:
    return [] if len(scores) > count else scores + [None] * (count - len(scores))
