"""CSV, XLSX and JSONL: rows that carry their column names, records that carry their metadata."""

import csv
import datetime
import io
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from langchain_core.documents import Document

from crag.base.files import NO_OBJECT, json_lines
from crag.knowledge.files.documents import PASSAGE_WEIGHT, NoTextError, clean, plain_metadata, weight

_DELIMITERS = ",;\t|"
_SNIFFED = 5_000  # characters; the sniffer takes the square of their number
_EXCEL_HINT = re.compile(r"\s*\"?sep=(.)\"?\r?\n", re.IGNORECASE)
_FORMULA_ALONE = re.compile(rb"<f(?:\s[^>]*)?(?:/>|>[^<]*</f>)(?:<v\s*/>|<v></v>)?</c>")
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\s[^>]*?ref=[\"']([A-Z]+[0-9]+:[A-Z]+[0-9]+)[\"']")
_TALLEST = 10_000  # rows of a merged cell that are filled; a column merged to the end of a sheet is a margin
_NUMBER = re.compile(r"[-+$€£¥]*[\d.,%]+")
_YEAR = re.compile(r"(?:19|20)\d\d")


def read_csv(text: str, title: str, delimiter: str | None = None) -> list[Document]:
    """Documents of one or more rows; the delimiter is found by its evidence unless given."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    if named := _EXCEL_HINT.match(text):
        delimiter, text = named.group(1), "\n" + text[named.end() :]  # rows keep their numbers
    lines = io.StringIO(text, newline="")
    rows = csv.reader(lines, delimiter=delimiter or _delimiter(text), skipinitialspace=True)
    return _table(enumerate(rows, start=1), title)


def read_xlsx(data: bytes, title: str) -> tuple[list[Document], list[str]]:
    """Documents of one or more rows, sheet by sheet, and warnings.

    Formulas give the value they had when saved; a warning counts those that have none. Hidden sheets are left
    out, which a warning says; what stands in a cell merged over several rows stands in each of them.
    """
    import openpyxl

    book = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    documents = []
    shown = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
    hidden = [sheet.title for sheet in book.worksheets if sheet not in shown]
    for sheet in shown:
        # Some programs write a wrong size, by which all cells but the first would be lost.
        sheet.reset_dimensions()
        rows = ([_cell(value) for value in row] for row in sheet.iter_rows(values_only=True))
        name = title if len(shown) == 1 else f"{title} · {sheet.title}"
        documents += _table(_filled(enumerate(rows, start=1), _merged(data, sheet)), name)
    book.close()
    left_out = (
        [f"hidden sheet(s) left out: {', '.join(hidden)}; show them to have them read"] if hidden else []
    )
    return documents, left_out + _uncomputed(data)


def _merged(data: bytes, sheet: Any) -> dict[tuple[int, int], int]:
    """For each merged cell below its first, by row from 1 and column from 0, the row that holds its text."""
    from openpyxl.utils import range_boundaries

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        found = _MERGED.findall(archive.read(sheet._worksheet_path.lstrip("/")))
    held = {}
    for left, top, _, bottom in (range_boundaries(area.decode()) for area in found):
        held.update({(row, left - 1): top for row in range(top + 1, min(bottom, top + _TALLEST) + 1)})
    return held


def _filled(
    numbered: Iterable[tuple[int, list[str]]], held: dict[tuple[int, int], int]
) -> Iterator[tuple[int, list[str]]]:
    """The rows with what a cell that was merged over several of them says in each."""
    tops = {(top, column): "" for (_, column), top in held.items()}
    columns = sorted({column for _, column in tops})
    for number, row in numbered:
        for column in columns:
            if (number, column) in tops and column < len(row):
                tops[number, column] = row[column]
            elif (number, column) in held and any(row):
                row += [""] * (column + 1 - len(row))
                row[column] = tops[held[number, column], column]
        yield number, row


def _uncomputed(data: bytes) -> list[str]:
    """The warning about formulas without a saved value, as programs write them that do not calculate."""
    lost = 0
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            if name.startswith("xl/worksheets/") and name.endswith(".xml"):
                lost += len(_FORMULA_ALONE.findall(archive.read(name)))
    if not lost:
        return []
    return [f"{lost} formula(s) have no saved value and were left out; open it in a spreadsheet and save it"]


def _delimiter(text: str) -> str:
    first = text.lstrip().split("\n", 1)[0]
    try:
        found = csv.Sniffer().sniff(text[:_SNIFFED], delimiters=_DELIMITERS).delimiter
    except csv.Error:
        return max(_DELIMITERS, key=first.count)
    # What the first line does not have stands inside sentences, not between columns.
    return found if found in first else max(_DELIMITERS, key=first.count)


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
    """Index of the row that names the columns: the first that reaches as far as most rows do.

    Its first name may be missing, as above the numbers of a data frame. A number in it is a name only if
    it is a year.
    """
    reach = Counter(_reach(cells) for _, cells in rows[:50])
    width = max(reach, key=lambda length: (reach[length], length), default=0)
    for index, (_, cells) in enumerate(rows[:10]):
        if width > 1 and _reach(cells) >= width and all(cells[1:width]):
            numbers = [cell for cell in cells if _NUMBER.fullmatch(cell)]
            named = len(numbers) < sum(map(bool, cells)) and all(map(_YEAR.fullmatch, numbers))
            return index if named else None
    return None


def _reach(cells: list[str]) -> int:
    """The number of columns up to the last filled one."""
    return next((i for i in range(len(cells), 0, -1) if cells[i - 1]), 0)


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


def read_jsonl(text: str, title: str) -> tuple[list[Document], list[str]]:
    """One document per record, its `id` kept in metadata, and a warning for each line that is none.

    Raises NoTextError when no line is a record with text.
    """
    documents, bad = [], []
    for number, record in json_lines(text):
        if isinstance(record, str) and record != NO_OBJECT:
            bad.append((number, record))
            continue
        if not isinstance(record, dict) or not isinstance(record.get("text"), str):
            bad.append((number, 'has no "text"'))
            continue
        body = clean(record.pop("text")).strip()
        if not body:
            bad.append((number, 'has an empty "text"'))
            continue
        given = plain_metadata(record)
        given["title"] = str(given.get("title") or title)
        if "markdown" in given:  # which would say how its text is to be split
            given["_markdown"] = given.pop("markdown")
        if "id" in given:
            given["id"] = str(given["id"])
        if "source" in given:
            given["source"] = str(given["source"])
        documents.append(Document(body, metadata={**given, "row": number}))
    if not documents:
        where = f"; line {bad[0][0]} {bad[0][1]}" if bad else ""
        raise NoTextError(f'no line is a record with "text"{where}')
    return documents, _summary(bad)


def _summary(bad: list[tuple[int, str]]) -> list[str]:
    first = [f"line {number} {why}; skipped" for number, why in bad[:5]]
    return [*first, f"{len(bad) - 5} more lines skipped"] if len(bad) > 5 else first
