"""CSV and XLSX: rows that carry their column names, so that each is understandable alone."""

import csv
import datetime
import io
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from langchain_core.documents import Document

from crag.knowledge.documents import PASSAGE_WEIGHT, clean, weight

_DELIMITERS = ",;\t|"


def read_csv(text: str, title: str, delimiter: str | None = None) -> list[Document]:
    """Documents of one or more rows; the delimiter is found by its evidence unless given."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    lines = io.StringIO(text, newline="")
    rows = csv.reader(lines, delimiter=delimiter or _delimiter(text), skipinitialspace=True)
    return _table(enumerate(rows, start=1), title)


def read_xlsx(data: bytes, title: str) -> list[Document]:
    """Documents of one or more rows, sheet by sheet; formulas give the value they had when saved."""
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    documents = []
    for sheet in book.worksheets:
        rows = ([_cell(value) for value in row] for row in sheet.iter_rows(values_only=True))
        name = title if len(book.worksheets) == 1 else f"{title} · {sheet.title}"
        documents += _table(enumerate(rows, start=1), name)
    book.close()
    return documents


def _delimiter(text: str) -> str:
    try:
        return csv.Sniffer().sniff(text[:20_000], delimiters=_DELIMITERS).delimiter
    except csv.Error:
        first = text.split("\n", 1)[0]
        return max(_DELIMITERS, key=first.count)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    return str(value)


def _table(numbered: Iterable[tuple[int, list[str]]], title: str) -> list[Document]:
    rows = [(n, [" ".join(clean(cell).split()) for cell in row]) for n, row in numbered]
    rows = [(n, cells) for n, cells in rows if any(cells)]
    head = _head(rows)
    names = rows[head][1] if head is not None else []
    captions = rows[: head or 0]
    body = rows[head + 1 :] if head is not None else rows
    lines = [(n, " ".join(filter(None, cells))) for n, cells in captions]
    # A table that is nothing but its first row is text after all.
    lines += [(n, _line(names, cells)) for n, cells in body] or [
        (n, _line([], cells)) for n, cells in rows[-1:]
    ]
    return [Document(text, metadata={"title": title, "row": number}) for number, text in _grouped(lines)]


def _head(rows: list[tuple[int, list[str]]]) -> int | None:
    """Index of the row that names the columns: the first that is as full as the table is wide."""
    width = max((len([cell for cell in cells if cell]) for _, cells in rows[:50]), default=0)
    for index, (_, cells) in enumerate(rows[:10]):
        if width > 1 and sum(map(bool, cells)) == width:
            return None if any(re.fullmatch(r"[-+]?[\d.,%]+", cell) for cell in cells) else index
    return None


def _line(names: list[str], cells: list[str]) -> str:
    named = [
        f"{names[i]}: {cell}" if i < len(names) and names[i] else cell for i, cell in enumerate(cells) if cell
    ]
    row = "; ".join(named)
    return row if weight(row) < PASSAGE_WEIGHT / 4 else "\n".join(named)


def _grouped(lines: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Neighbouring rows together up to a passage, under the number of the first; long rows alone."""
    start, held = 0, ""
    for number, line in lines:
        joined = f"{held}\n{line}" if held else line
        if held and weight(joined) > PASSAGE_WEIGHT:
            yield start, held
            held = ""
            joined = line
        if not held:
            start = number
        held = joined
    if held:
        yield start, held
