"""Files: JSONL (one object a line) read alike everywhere, and files that their owner alone may read.

Lines end at line feeds alone: a text may hold the separators that only Unicode calls line ends. A carriage
return before one, a byte-order mark at the start of a line (of files joined into one) and blank lines say
nothing. NaN, which data frames write where nothing was, is null.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from crag.base.errors import SettingsError

Object = dict[str, Any]

NO_OBJECT = "is not a JSON object"
NO_UTF8 = "is not UTF-8"


class TwiceError(ValueError):
    """A key that an object names twice: which of the two values is meant cannot be known."""


def unique(pairs: list[tuple[str, Any]]) -> Object:
    """An `object_pairs_hook` for json.loads. Raises TwiceError."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise TwiceError(f"names {twice[:60]!r} twice")
    return found


def json_lines(content: bytes | str) -> Iterator[tuple[int, Object | str]]:
    """(line number, object), or in place of the object what is wrong with the line, as in "is not JSON"."""
    # Bytes are decoded line by line, so that one bad byte is found where it stands.
    lines: Sequence[bytes | str] = content.split(b"\n") if isinstance(content, bytes) else content.split("\n")
    for number, line in enumerate(lines, start=1):
        try:
            text = line.decode("utf-8") if isinstance(line, bytes) else line
        except UnicodeDecodeError:
            yield number, NO_UTF8
            continue
        if text := text.removeprefix("\ufeff").strip():
            yield number, _object(text)


def json_objects(path: Path) -> list[Object]:
    """The objects of a file of which every line must be one. Raises SettingsError naming file and line."""
    found = []
    for number, row in json_lines(content_of(path)):
        if isinstance(row, str):
            raise SettingsError(f"{path}, line {number} {row}; mend or remove it")
        found.append(row)
    return found


def content_of(path: Path) -> bytes:
    """The bytes of a file. Raises SettingsError saying why it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror or error}") from None


def cut_half_line(path: Path) -> None:
    """Drop a last line that a crash cut off, or the next one would be glued to it. Raises OSError."""
    if path.exists() and (content := path.read_bytes()) and not content.endswith(b"\n"):
        with path.open("r+b") as file:
            file.truncate(content.rfind(b"\n") + 1)


def _object(text: str) -> Object | str:
    try:
        row = json.loads(text, object_pairs_hook=unique, parse_constant=_constant)
    except TwiceError as twice:
        return str(twice)
    except (ValueError, RecursionError):  # numbers of thousands of digits are ValueErrors, too
        return "is not JSON"
    return row if isinstance(row, dict) else NO_OBJECT


def _constant(name: str) -> None:
    if name != "NaN":
        raise ValueError(name)


def make_private(path: Path) -> None:
    """Make an empty file with its folders, readable by its owner alone; one that is there stays as it is.

    Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
