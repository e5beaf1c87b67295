"""Text into strips: the sentence-sized pieces in which knowledge is searched, judged and quoted.

The sentence rule is our own. The libraries at hand either know one language at a time, rewrite the text
they split, or take milliseconds a sentence, while every strip here is an exact slice of the text: what is
quoted can be checked letter by letter.
"""

import re
from typing import NamedTuple

from crag.base.language import HAN

WIDE = re.compile(f"[{HAN}\u3040-\u30ff\uac00-\ud7af\uff01-\uff60]")
"""A character that fills two cells: Chinese, kana, Hangul, full-width forms."""

# Never the end of a sentence.
_WORDS_TITLES = """
mr mrs ms dr prof st gen gov sen rep hon lt col sgt capt cmdr rev mt messrs vs cf ca e.g i.e viz al
approx
"""
_TITLES = frozenset(_WORDS_TITLES.split())
# No end when a number follows.
_WORDS_BEFORE_NUMBER = """
no nos fig figs eq sec ch vol vols pp p art para jan feb mar apr jun jul aug sep sept oct nov dec
"""
_BEFORE_NUMBER = frozenset(_WORDS_BEFORE_NUMBER.split())
# May end a sentence: it does when the next word usually begins one.
_EITHER = re.compile(
    r"(?:[A-Za-z]\.)*[A-Za-z]|etc|inc|ltd|co|corp|jr|sr|bros|est|dept|ph\.d|m\.d", re.IGNORECASE
)
_WORDS_OPENERS = """
the a an it its he she they we you this that these those there here in on at after before when while
as if but and however although for from by with since during his her their our my what who where why
how
"""
_OPENERS = frozenset(_WORDS_OPENERS.split())
_LIST_NUMBER = re.compile(r"(?:^|[：:；;。！？)）])\s*\d{1,3}$")
_BEFORE_DOT = re.compile(r"(?:[^\W\d_]+\.)*[^\W\d_]+$")
_NEXT_WORD = re.compile(r"[^\W\d_]+")


def ends_sentence(text: str, mark: re.Match[str], end: int, *, begin: int, limit: int) -> bool:
    """Whether the marks found in a block of text, from `begin` up to `limit`, end a sentence.

    `end` is the end of the marks with the quotes and brackets that close there.
    """
    signs = mark.group()
    if any(sign in "。！？；｡‼⁇⁈⁉؟।۔" for sign in signs) or "……" in signs:
        return True
    if end >= limit:
        return True
    following = text[end : end + 40]
    if not following[0].isspace():
        # "好的.然后" ends a sentence, "3.5", "a.b/c?d" and "Node.js 是" do not.
        before = text[mark.start() - 1] if mark.start() > begin else ""
        return bool(WIDE.match(following[0]) and (signs[0] in "!?…" or WIDE.match(before)))
    following = following.lstrip()
    if not following or following[0].islower():
        return False
    return signs != "." or not _is_abbreviation(text[max(begin, mark.start() - 24) : mark.start()], following)


def _is_abbreviation(before: str, following: str) -> bool:
    found = _BEFORE_DOT.search(before)
    if not found:
        return bool(_LIST_NUMBER.search(before))
    word = found.group()
    if word.lower() in _TITLES:
        return True
    if word.lower() in _BEFORE_NUMBER:
        return following[0].isdigit()
    if word == "I" or not _EITHER.fullmatch(word):
        return False
    following_word = _NEXT_WORD.match(following)
    return not (following_word and following_word.group().lower() in _OPENERS)


SENTENCE_END = re.compile(r"[\n\r]+|(?<=[。！？])|(?<=[.!?])\s")
"""Where the sentences of a short text end, roughly; what is stored and quoted is cut by `split_strips`."""

LONGEST = 480
"""Widest strip in cells (a Chinese character fills two): longer sentences are cut at clauses."""

SHORT = 25
"""Narrower fragments (a Chinese character counted three times) are glued to a neighbour.

A fragment of a few words lies near every query in embedding space and would win every search.
"""

GLUED = 200
"""A short fragment is glued to the strip before it up to this width, else to the one after it."""

CLOSERS = "”’』」》〉）】］｝〕〗〙›»)]}"
_ENDS = "。！？；｡!?‼⁇⁈⁉؟।۔"
_MARK = re.compile(rf"(?:[{_ENDS}]+|…+|\.+)[{_ENDS}.…]*")
_CLOSE = re.compile(
    rf"(?:[{re.escape(CLOSERS)}]|\[[^\[\]\n]{{1,20}}\])*"
)  # a footnote mark closes a sentence too
_BAD_START = frozenset(CLOSERS + "。！？；｡，、：．,;:!?…")
_CLAUSE = re.compile(r"[，、；：]|[,;:](?=\s)")
_SPACE = re.compile(r"\s")
_LINE = re.compile(r"[^\n\r\u2028\u2029]*(?:\r\n|[\n\r\u2028\u2029]|$)")

_HEADING = re.compile(r"\s{0,3}#{1,6}(?:\s|$)")
_TABLE = re.compile(r"\s*\|.*\|\s*$")
_TABLE_RULE = re.compile(r"\s*\|[\s:|-]+\|\s*$|\s*(?:={3,}|-{3,}|\*{3,}|_{3,})\s*$")
_ITEM = re.compile(
    r"\s*(?:[-*+•·▪◦●]\s+|\(?\d{1,3}(?:\.\d{1,3}){0,3}[.)]\s+|\d{1,3}、|[（(][一二三四五六七八九十\d]{1,3}[)）]"
    r"|[一二三四五六七八九十]{1,3}、)"
)


class _Span(NamedTuple):
    start: int
    end: int
    leads: bool = False  # a heading or title line: belongs to what follows


def split_strips(text: str) -> list[str]:
    """Cut Chinese, English or mixed text into strips, in order.

    Each strip is a slice of `text` without the white space around it; together they hold every other
    character. Strips end at the end of a sentence (with the quotes and brackets that close there), list
    item, table row or paragraph; headings stay with the text below them. Text of white space gives [].
    """
    spans = [
        piece
        for block in _blocks(text)
        for sentence in _sentences(text, block)
        if (trimmed := _trim(text, sentence))
        for piece in _shorten(text, trimmed)
    ]
    return [text[span.start : span.end] for span in _glue(text, spans)]


def _width(text: str) -> int:
    return len(text) + len(WIDE.findall(text))


def _is_short(text: str) -> bool:
    return len(text) < SHORT and len(text) + 2 * len(WIDE.findall(text)) < SHORT


def _trim(text: str, span: _Span) -> _Span | None:
    piece = text[span.start : span.end]
    start = span.start + len(piece) - len(piece.lstrip())
    end = span.start + len(piece.rstrip())
    return _Span(start, end, span.leads) if start < end else None


def _blocks(text: str) -> list[_Span]:
    """Runs of lines that belong together: a paragraph, a list item, a table row, a heading.

    A line break inside a wrapped paragraph is no boundary; one after a short line is.
    """
    blocks: list[_Span] = []
    start: int | None = None  # of the paragraph being read
    for match in _LINE.finditer(text):
        line = match.group().rstrip()
        if start is not None and (not line or _begins_block(line)):
            blocks.append(_Span(start, match.start()))
            start = None
        if not line:
            continue
        if _HEADING.match(line):
            blocks.append(_Span(match.start(), match.end(), leads=True))
        elif _TABLE.match(line) or _TABLE_RULE.match(line):
            blocks.append(_Span(match.start(), match.end()))
        elif _width(line) < 40:
            title = start is None and not _ITEM.match(line) and line[-1] not in _ENDS + "." + CLOSERS
            blocks.append(_Span(match.start() if start is None else start, match.end(), leads=title))
            start = None
        elif start is None:
            start = match.start()
    if start is not None:
        blocks.append(_Span(start, len(text)))
    return blocks


def _begins_block(line: str) -> bool:
    return any(kind.match(line) for kind in (_HEADING, _TABLE, _TABLE_RULE, _ITEM))


def _sentences(text: str, block: _Span) -> list[_Span]:
    if block.leads:
        return [block]
    spans = []
    start, quotes, counted = block.start, 0, block.start
    for match in _MARK.finditer(text, block.start, block.end):
        end = match.end()
        if end <= start:
            continue
        quotes += text.count('"', counted, end)
        counted = end
        end = _after_closers(text, end, block.end, inside_quotes=quotes % 2 == 1)
        if ends_sentence(text, match, end, begin=block.start, limit=block.end):
            spans.append(_Span(start, end))
            start = end
    spans.append(_Span(start, block.end))
    return spans


def _after_closers(text: str, at: int, limit: int, *, inside_quotes: bool) -> int:
    closed = _CLOSE.match(text, at, limit)
    at = closed.end() if closed else at
    if inside_quotes and text[at : at + 1] == '"' and at < limit:
        at += 1
        closed = _CLOSE.match(text, at, limit)
        at = closed.end() if closed else at
    elif text[at : at + 1] == "'" and (at + 1 >= limit or text[at + 1].isspace()):
        at += 1
    return min(at, limit)


def _shorten(text: str, span: _Span) -> list[_Span]:
    """Cut what is wider than LONGEST at clauses, else at white space, else anywhere."""
    pieces = []
    start = span.start
    while span.end - start > LONGEST // 2 and _width(text[start : start + LONGEST + 1]) > LONGEST:
        limit, cells = start, 0
        while cells < LONGEST and limit < span.end:
            cells += 2 if WIDE.match(text[limit]) else 1
            limit += 1
        if limit >= span.end:
            break
        half = start + (limit - start) // 2
        clauses = [m.end() for m in _CLAUSE.finditer(text, half, limit)]
        spaces = [m.end() for m in _SPACE.finditer(text, half, limit)]
        cut = (clauses or spaces or [limit])[-1]
        while cut < span.end and text[cut] in _BAD_START:
            cut += 1
        pieces.append(_Span(start, cut, span.leads))
        start = cut
    if start < span.end:
        pieces.append(_Span(start, span.end, span.leads))
    return [trimmed for piece in pieces if (trimmed := _trim(text, piece))]


def _glue(text: str, spans: list[_Span]) -> list[_Span]:
    glued: list[_Span] = []
    for span in spans:
        if glued and _belongs(text, glued[-1], span):
            glued[-1] = _Span(glued[-1].start, span.end, span.leads and glued[-1].leads)
        else:
            glued.append(span)
    if (
        len(glued) > 1
        and (glued[-1].leads or _is_short(text[glued[-1].start : glued[-1].end]))
        and (glued[-1].leads or not _parts_table(text, *glued[-2:]))
    ):
        last = glued.pop()
        glued[-1] = _Span(glued[-1].start, last.end)
    return glued


def _parts_table(text: str, before: _Span, span: _Span) -> bool:
    """Whether a table begins or ends between two spans: its rows are no part of the prose around it."""
    last = text[before.start : before.end].rpartition("\n")[2]
    return bool(_TABLE.match(last)) != bool(_TABLE.match(text[span.start : span.end]))


def _belongs(text: str, before: _Span, span: _Span) -> bool:
    """Whether `span` is to continue the strip `before`."""
    if text[span.start] in _BAD_START:
        return True
    if before.leads:
        return before.end - before.start < GLUED
    if span.leads or _parts_table(text, before, span):
        return False
    if _is_short(text[before.start : before.end]):
        return True
    return _is_short(text[span.start : span.end]) and _width(text[before.start : span.end]) <= GLUED
