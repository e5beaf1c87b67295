"""Tables in Markdown that were cut: the row that names the columns, again above the rows that lost it."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from crag.knowledge.files.documents import PASSAGE_WEIGHT, weight

HEAVIEST_HEAD = PASSAGE_WEIGHT // 4
"""Weight up to which a row is repeated; a heavier one is a table used for layout, or all text."""

_RULE = re.compile(r"\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?)?")


class _Table(NamedTuple):
    start: int
    end: int
    head: str


def with_heads(pieces: list[str], body: str) -> list[str]:
    """The pieces of a text in order, which may overlap; one that begins amid a table begins with its head.

    The head is the first row and the rule below it, where there is one. Without a rule, as in DOCX, a first
    row that leaves a column unnamed is no head.
    """
    tables = list(_tables(body))
    if not tables:
        return pieces
    starts = [table.start for table in tables]
    complete, at = [], 0
    for piece in pieces:
        first = piece.partition("\n")[0]
        found = body.find(first, at)
        at = max(found, at)
        table = tables[bisect_left(starts, at) - 1]
        amid = found >= 0 and table.start < at < table.end and "|" in first and not _is_rule(first)
        complete.append(f"{table.head}\n{piece}" if amid else piece)
    return complete


def _tables(body: str) -> Iterator[_Table]:
    """The tables that have a head, in order."""
    rows: list[str] = []
    start = at = 0
    for line in [*body.split("\n"), ""]:
        if "|" in line:
            start = start if rows else at
            rows.append(line)
        else:
            if len(rows) > 1 and (head := _head(rows)):
                yield _Table(start, at, head)
            rows = []
        at += len(line) + 1


def _is_rule(line: str) -> bool:
    return _RULE.fullmatch(line.strip()) is not None


def _head(rows: list[str]) -> str:
    """The rows that name the columns, "" when there are none."""
    ruled = _is_rule(rows[1])
    framed = all(row.strip().startswith("|") and row.strip().endswith("|") for row in rows)
    cells = [cell.strip() for cell in rows[0].strip().strip("|").split("|")]
    if not ruled and not (framed and len(cells) > 1 and all(cells)):
        return ""
    head = "\n".join(row.strip() for row in rows[: 2 if ruled else 1])
    return head if weight(head) <= HEAVIEST_HEAD else ""
