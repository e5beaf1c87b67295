"""Rows out of JSONL, JSON and CSV files, each with the number of its line."""

import ast
import csv
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crag.base.errors import SettingsError
from crag.base.files import NO_OBJECT, NO_UTF8, json_lines
from crag.base.language import readable

Line = dict[str, Any]

csv.field_size_limit(2**31 - 1)
_SEPARATORS = {";": "semicolons", "\t": "tabs"}


def read_lines(path: Path) -> Iterator[tuple[int, Line | str]]:
    """(line number, row), or in place of the row what is wrong with the line.

    In a .json file a line is an item of the list. Raises SettingsError for a file that cannot be read.
    """
    data = _bytes(path)
    kind = path.suffix.lower()
    if kind in {".csv", ".tsv"}:
        return _csv(path, _text(path, data), "\t" if kind == ".tsv" else ",")
    if kind == ".json" or data.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"["):
        return _json(path, _text(path, data))
    return _jsonl(data)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}; give a JSONL, JSON or CSV file") from None


def _text(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SettingsError(f"{path} is not UTF-8 text; save it as UTF-8") from None


def _jsonl(data: bytes) -> Iterator[tuple[int, Line | str]]:
    for number, row in json_lines(data):
        if isinstance(row, dict) or row == NO_OBJECT:
            yield number, _object(row)
        else:
            yield number, f"it {row}" + ("; save the file as UTF-8" if row == NO_UTF8 else "")


def _json(path: Path, text: str) -> Iterator[tuple[int, Line | str]]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno}: {error.msg})" if isinstance(error, json.JSONDecodeError) else ""
        raise SettingsError(f"{path} is not JSON{where}; mend it, or name it .jsonl") from None
    if isinstance(rows, dict):  # columns, as data frames and Hugging Face data sets are dumped
        columns = {name: values for name, values in rows.items() if isinstance(values, list)}
        if not columns or len(columns) < len(rows) or len({len(v) for v in columns.values()}) > 1:
            raise SettingsError(f"{path} is neither a list of questions nor columns of equal length")
        rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    if not isinstance(rows, list):
        raise SettingsError(f"{path} is not a list of questions")
    for number, row in enumerate(rows, start=1):
        yield number, _object(row)


def _object(row: Any) -> Line | str:
    if not isinstance(row, dict):
        return 'it is not an object like {"question": "…"}'
    return {readable(name): _known(value) for name, value in row.items()}


def _known(value: Any) -> Any:
    """A value that can be written again: None for the NaN that data frames write where nothing was."""
    if isinstance(value, list):
        return [_known(item) for item in value]
    if isinstance(value, str):
        return readable(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def _csv(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, Line | str]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        _check_header(path, [name.strip() for name in reader.fieldnames or [] if name.strip()])
        for row in reader:
            cells = {
                name.strip(): _cell(cell)
                for name, cell in row.items()
                if isinstance(name, str) and isinstance(cell, str)
            }
            if any(cell for cell in cells.values()):
                yield reader.line_num, "it has more cells than the header" if None in row else cells
    except csv.Error as error:
        raise SettingsError(f"{path}, line {reader.line_num}: {error}; save it as CSV once more") from None


def _check_header(path: Path, names: list[str]) -> None:
    other = next((kind for sign, kind in _SEPARATORS.items() if len(names) == 1 and sign in names[0]), None)
    if other:
        raise SettingsError(f"{path} separates its columns by {other}; save it with commas")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SettingsError(f"{path} has two columns named {twice!r}; rename one")


def _cell(cell: str) -> Any:
    """A cell, read as the list that JSON or Python wrote into it."""
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return text
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, list):
            return value
    return text
