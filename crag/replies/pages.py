"""What models copy from numbered pages, turned into the lines of each page.

As in `crag.replies.scores`, what is not clearly there is None, and no reader raises.
"""

import re
from typing import NamedTuple

from crag.text.budget import count_tokens
from crag.text.sentences import SENTENCE_END

LEAST = 3
"""Tokens of the shortest text that counts as copied; less stands in any page."""

_MARKS = r"[\s#*_`>\"'({-]*"
_END = r"[\s*_`\"')\]】］]*(?:[:：–—-][\s*_`\"']*|$)"
_LABEL = re.compile(
    rf"{_MARKS}(?:[\[【［]\s*(?P<bare>\d{{1,2}})\s*[\]】］][\s*_`\"')]*(?:[:：–—-]\s*)?"
    rf"|(?:page|result|document|source|网页|结果|文档)\s*(?:no\.?\s*|#\s*)?[\[【［]?\s*(?P<named>\d{{1,2}}){_END}"
    rf"|第\s*(?P<zh>\d{{1,2}})\s*[页頁]{_END})",
    re.IGNORECASE,
)
_NONE = r"(?:none|无(?:相关内容|关)?|無)"
_NOTHING = re.compile(rf"\W*{_NONE}(?:\W*|\s*[,;:.(，；：。（–—-].*)", re.IGNORECASE)
_NUMBERED_NOTHING = re.compile(rf"\W*(\d{{1,2}})\W+{_NONE}\W*", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*+•>]|\d{1,2}[.)、])\s+")
_AROUND = " \t\"'“”‘’「」*`…,"


class _Line(NamedTuple):
    page: int | None  # the page it is said to be of, from 0
    text: str


def read_pages(reply: str, pages: list[str]) -> list[list[str] | None]:
    """For each page the lines of the reply that stand in it word for word, white space and case aside.

    [] for a page of which the reply says NONE, None for one of which it says nothing that can be used. A line
    goes to the page it is labelled with (`[n]`, from 1) where it stands there, else to the one page in which
    it stands: what the pages say decides, so that missing, wrong or shifted labels move no text to another
    page. NONE counts only where no label was wrong.
    """
    searched = [" ".join(page.split()).casefold() for page in pages]
    found: list[list[str]] = [[] for _ in pages]
    nothing: set[int] = set()
    trusted = True
    for said, line in _lines(reply, len(pages)):
        trusted = trusted and (said is None or 0 <= said < len(pages))
        copied = _copied(line, searched)
        for text, homes in copied:
            # Of several pages that say the same, none can be chosen against the label.
            home = said if said in homes else homes[0] if said is None or len(homes) == 1 else None
            trusted = trusted and said in (None, home)
            if home is not None:
                found[home].append(text)
        if not copied and _NOTHING.fullmatch(line):
            nothing |= set(range(len(pages))) if said is None else {said}
    return [lines or ([] if trusted and n in nothing else None) for n, lines in enumerate(found)]


def _lines(reply: str, count: int) -> list[_Line]:
    """The lines of a reply, each with the page of the last label before it; a lone page needs no label."""
    lines = []
    page = 0 if count == 1 else None
    for line in reply.splitlines():
        if numbered := _NUMBERED_NOTHING.fullmatch(line):
            lines.append(_Line(int(numbered[1]) - 1, "NONE"))
            continue
        rest = line
        if label := _LABEL.match(line):
            page = int(label["bare"] or label["named"] or label["zh"]) - 1
            rest = line[label.end() :]
        if rest.strip():
            lines.append(_Line(page, rest))
    return lines


def _copied(line: str, pages: list[str]) -> list[tuple[str, list[int]]]:
    """The line, or else those of its sentences, that stand in some page, with the pages they stand in."""
    text = " ".join(_BULLET.sub("", line).strip(_AROUND).split())
    for parts in ([text], SENTENCE_END.split(text)):
        placed = [(part, homes) for part in parts if (homes := _homes(part, pages))]
        if placed:
            return placed
    return []


def _homes(text: str, pages: list[str]) -> list[int]:
    if count_tokens(text) < LEAST:
        return []
    return [n for n, page in enumerate(pages) if text.casefold() in page]
