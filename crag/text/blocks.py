"""The block a sentence stands in: a paragraph, a list with its lead-in, rows of a table with its head."""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

LONGEST = 1600
"""Characters of a block; what is longer is shown around the sentence that was looked for."""

SMALL_TABLE = 700
"""Characters up to which a table is shown whole, since its rows are compared with each other."""

PARAGRAPH = 360
"""Characters up to which a paragraph is shown with its neighbour."""

LEAD = 400
"""Characters of a paragraph that may lead into a list."""

BEFORE, AFTER = "crag_before", "crag_after"
"""Metadata of a document: the text of the passages before and after it in its file."""

Kind = Literal["heading", "rule", "fence", "row", "item", "paragraph"]

_HEADING = re.compile(r"\s{0,3}#{1,6}(?:\s|$)")
_RULE = re.compile(r"\s*\|?(?:\s*:?-{2,}:?\s*\|)+(?:\s*:?-+:?)?\s*$|\s*(?:={3,}|-{3,}|\*{3,}|_{3,})\s*$")
_TARGET = re.compile(r" {0,3}\[[^\]^][^\]]*\]:\s+\S+|\s*\.\. _[^:\n]+:(?:\s+\S+)?\s*$")
_ITEM = re.compile(
    r"\s*(?:[-*+•·▪◦●]\s+|\(?(?:\d{1,3}|[a-z])[.)、]\s*(?=\D)|[（(][一二三四五六七八九十\d]{1,3}[)）]"
    r"|[一二三四五六七八九十]{1,3}、|第[一二三四五六七八九十]{1,3}[步条款])"
)
_FENCE = re.compile(r"\s*(```|~~~)")
LEADS = re.compile(r"[:：]\s*[*_`]*\s*$")
_LINE = re.compile(r"[^\n]*\n?")
_OVERLAP = 400  # characters in which two passages of one text may repeat each other
_CLEAR = 12


class Element(NamedTuple):
    """A run of lines of one kind, from `start` up to `end`."""

    kind: Kind
    start: int
    end: int


def continued(text: str, following: str) -> str:
    """A passage and the one after it in its file as one text, what both hold once.

    Passages of another section do not continue it: then the text stays as it is.
    """
    head, body = _headed(text)
    other, rest = _headed(following)
    if head != other:
        return text
    if (table := _repeated_head(body, rest)) is not None:
        rest = rest[table:]
    for size in range(min(len(body), len(rest), _OVERLAP), 0, -1):
        # One sign that both have in common is chance: it is to be long, or to begin where a word begins.
        clear = size >= _CLEAR or not body[: len(body) - size].strip() or body[-size - 1].isspace()
        if clear and body.endswith(rest[:size]):
            return text + rest[size:]
    return f"{text}\n{rest}"


def _headed(text: str) -> tuple[str, str]:
    """The heading line that a passage begins with, if any, and the rest."""
    first, _, rest = text.partition("\n")
    return (first.strip(), rest.lstrip("\n")) if _HEADING.match(first) else ("", text)


def _repeated_head(body: str, rest: str) -> int | None:
    """Where a continued table's rows begin, when `rest` repeats a head that stands in `body`."""
    lines = rest.split("\n", 2)
    for count in (2, 1):
        head = "\n".join(lines[:count])
        if len(lines) > count and "|" in lines[0] and head in body:
            return len(head) + 1
    return None


def block(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The slices of `text` that a person would underline around `start` to `end`, in order.

    A list comes whole with the paragraph that leads into it, a row with the head of its table, a paragraph
    with the one after it where it is short. Nothing when no words are there but headings and rules.
    """
    elements = list(_elements(text))
    core = [i for i, e in enumerate(elements) if e.start < end and start < e.end and _says(text, e)]
    if not core:
        return []
    first, last = core[0], core[-1]
    kinds = {elements[i].kind for i in core}
    if kinds == {"row"}:
        return _rows(text, elements, first, last)
    if "item" in kinds or "fence" in kinds:
        first, last = _list(elements, first, last)
        first = _lead(text, elements, first)
    else:
        first, last = _paragraphs(text, elements, first, last)
    return _trimmed(text, _within(elements, first, last, start))


def _elements(text: str) -> Iterator[Element]:
    kind: Kind | None = None
    begin = at = 0
    fenced = blank = False
    for found in _LINE.finditer(text):
        line, here = found.group(), found.start()
        if not line:
            break
        at = found.end()
        if _FENCE.match(line):
            if not fenced:
                if kind:
                    yield Element(kind, begin, here)
                kind, begin = "fence", here
            fenced = not fenced
            if not fenced:
                yield Element("fence", begin, at)
                kind = None
            continue
        if fenced:
            continue
        if not line.strip():
            blank = True
            continue
        now = _kind(line, kind, blank=blank)
        if (
            now != kind
            or (now in ("item", "row", "heading", "rule") and not _continues(line, now))
            or (blank and now == "paragraph")
        ):
            if kind:
                yield Element(kind, begin, here)
            kind, begin = now, here
        blank = False
    if kind:
        yield Element(kind, begin, at)


def _kind(line: str, before: Kind | None, *, blank: bool) -> Kind:
    if _HEADING.match(line):
        return "heading"
    if _RULE.match(line) or _TARGET.match(line):
        return "rule"
    if line.count("|") > 1 or (before in ("row", "rule") and "|" in line):
        return "row"
    if _ITEM.match(line) or (before == "item" and (not blank or line.startswith(("  ", "\t")))):
        return "item"
    return "paragraph"


def _continues(line: str, kind: Kind) -> bool:
    return kind == "item" and not _ITEM.match(line)


def _says(text: str, element: Element) -> bool:
    return element.kind not in ("heading", "rule") and any(
        c.isalnum() for c in text[element.start : element.end]
    )


def _list(elements: list[Element], first: int, last: int) -> tuple[int, int]:
    """All items (and code between them) around those looked for."""
    while first > 0 and elements[first - 1].kind in ("item", "fence"):
        first -= 1
    while last + 1 < len(elements) and elements[last + 1].kind in ("item", "fence"):
        last += 1
    return first, last


def _lead(text: str, elements: list[Element], first: int) -> int:
    before = elements[first - 1] if first else None
    if before and before.kind == "paragraph" and before.end - before.start <= LEAD:
        return first - 1
    return first


def _paragraphs(text: str, elements: list[Element], first: int, last: int) -> tuple[int, int]:
    """The paragraph, what it leads into, and a neighbour where it is short."""
    e = elements
    if last + 1 < len(e) and LEADS.search(text[e[last].start : e[last].end]):
        kind = e[last + 1].kind
        while last + 1 < len(e) and e[last + 1].kind in (kind, "rule") and kind != "heading":
            last += 1
    elif e[last].end - e[first].start < PARAGRAPH:
        if last + 1 < len(e) and e[last + 1].kind in ("paragraph", "item", "fence"):
            last += 1
            if e[last].kind == "item":
                last = _list(e, last, last)[1]
        elif first and e[first - 1].kind == "paragraph":
            first -= 1
    return first, last


def _rows(text: str, elements: list[Element], first: int, last: int) -> list[tuple[int, int]]:
    top, bottom = first, last
    while top and elements[top - 1].kind in ("row", "rule"):
        top -= 1
    while bottom + 1 < len(elements) and elements[bottom + 1].kind in ("row", "rule"):
        bottom += 1
    ruled = top + 1 < len(elements) and elements[top + 1].kind == "rule"
    whole = (elements[top].start, elements[bottom].end)
    if whole[1] - whole[0] <= SMALL_TABLE:
        return _trimmed(text, [whole])
    rows = (elements[max(top, first - 1)].start, elements[min(bottom, last + 1)].end)
    head = (elements[top].start, elements[top + 1 if ruled else top].end)
    return _trimmed(text, [rows] if rows[0] <= head[1] else [head, rows])


def _within(elements: list[Element], first: int, last: int, start: int) -> list[tuple[int, int]]:
    """The elements from `first` to `last`, or as many around `start` as fit."""
    while elements[last].end - elements[first].start > LONGEST and last > first:
        if elements[last].start > start:
            last -= 1
        elif elements[first].end <= start:
            first += 1
        else:
            break
    return [(elements[first].start, elements[last].end)]


def _trimmed(text: str, slices: list[tuple[int, int]]) -> list[tuple[int, int]]:
    trimmed = []
    for start, end in slices:
        piece = text[start:end]
        trimmed.append((start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())))
    return [(start, end) for start, end in trimmed if start < end]
