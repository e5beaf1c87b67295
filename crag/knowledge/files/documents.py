"""What a file becomes: documents with plain metadata, and the words to say when it cannot."""

import datetime
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from langchain_core.documents import Document

from crag.base.errors import DocumentError
from crag.base.language import han_count

Plain = str | int | float | bool

RESERVED = "crag_"
"""Prefix of the metadata keys that crag keeps for itself."""

PASSAGE_WEIGHT = 1000
"""Weight of a full passage: about 1,000 characters of English or 500 of Chinese."""

_LABELS = frozenset({"title", "source", "id", "lang", "page", "row", "section", "start", "end"})
_MOST_KEYS = 100
_LONGEST_KEY = 200  # characters
_LONGEST_VALUE = 10_000
_LARGEST = 30_000  # characters of all keys and values
MORE = "more"
"""Key of what is folded into one text because a passage can carry no more of it."""

_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


class NoTextError(DocumentError):
    """The file can be read but holds no text; what was stored of it before is out of date."""


@dataclass
class Loaded:
    """One file as documents, each with metadata `source` and `title` and, where it applies, `page` or `row`.

    `encoding` is None for formats that have their own (PDF, DOCX, XLSX).
    """

    documents: list[Document]
    warnings: list[str] = field(default_factory=list)
    encoding: str | None = None


def weight(text: str) -> int:
    """Length in characters, a Chinese one counting twice: both languages then say about as much."""
    return len(text) + han_count(text)


def clean(text: str) -> str:
    """Text that every store and model accepts: no control characters, lone surrogates or `\\r`."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x0c", "\n\n")
    return _UNFIT.sub("", text)


def heading_title(text: str) -> str:
    """The words of a Markdown heading, given what follows its first `#` marks: "C#" of "C# ##"."""
    title = text.strip()
    bare = title.rstrip("#")
    return bare.rstrip() if not bare or bare[-1].isspace() else title


def plain_metadata(metadata: Mapping[str, object]) -> dict[str, Plain]:
    """Metadata a vector store accepts: None is dropped, lists and mappings become JSON text.

    Dates become ISO text, numbers of other libraries plain numbers, and what is not finite is dropped. A
    store may take what it can never apply: what is beyond its limits is folded into one text under MORE.
    """
    result: dict[str, Plain] = {}
    left_out: list[str] = []
    room = _LARGEST
    for given, value in metadata.items():
        plain = _plain(value)
        if plain is None:
            continue
        key = _plain_key(clean(str(given)))
        size = len(key) + (len(plain) if isinstance(plain, str) else 8)
        # The labels come last where they are added to a record of thousands of keys.
        fits = len(result) < _MOST_KEYS and size <= min(room, _LONGEST_VALUE) and len(key) <= _LONGEST_KEY
        if fits or key in _LABELS:
            result[key] = plain[:_LONGEST_VALUE] if isinstance(plain, str) else plain
            room -= size
        elif len(left_out) < _MOST_KEYS:
            left_out.append(f"{key[:_LONGEST_KEY]}={str(plain)[:_LONGEST_KEY]}")
    if left_out:
        result[MORE] = "; ".join([*filter(None, [str(result.get(MORE, ""))]), *left_out])[:_LONGEST_VALUE]
    return result


def _plain_key(key: str) -> str:
    """The key, with `_` before what Chroma refuses or what would pass for crag's own bookkeeping."""
    key = key.replace("chroma:", "chroma_")
    return f"_{key.lstrip('$#')}" if not key or key.startswith(("$", "#", RESERVED)) else key


def _plain(value: object) -> Plain | None:
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()  # numpy scalars
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (list, tuple, dict)):
        return clean(json.dumps(value, ensure_ascii=False, default=str)) if value else None
    return clean(str(value))
