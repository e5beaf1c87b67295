"""Bytes → text: which encoding a file is in, by evidence, and a refusal rather than garbage.

Statistical detectors misread short Chinese files (four characters of GB18030 pass for Korean), so the
double-byte encodings are compared first by how common the characters are that each of them yields.
"""

import codecs
import re
from typing import NamedTuple

from crag.base.errors import DocumentError
from crag.knowledge.files.encoding_evidence import CONTROL, detected, double_byte, plain_share, western

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)""", re.IGNORECASE)
# What browsers read under these labels: the larger sets that contain them.
_LABELS = {"gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "iso-8859-1": "cp1252"}


class Decoded(NamedTuple):
    """Text without byte-order mark, the encoding it was in, and what the reader should check."""

    text: str
    encoding: str
    warnings: list[str]


def decode(data: bytes, *, declares: bool = False) -> Decoded:
    """Text of `data`; with `declares` a charset named in the first 2 kB (HTML, XML) is believed if it fits.

    Raises DocumentError when the bytes are no text or no encoding fits them.
    """
    decoded = _from_mark(data) or _from_utf8(data) or (_from_declaration(data) if declares else None)
    decoded = decoded or _from_wide(data) or _from_evidence(data)
    text = decoded.text.removeprefix("\ufeff")
    if len(CONTROL.findall(text)) > len(text) / 100:
        raise DocumentError("binary data, not text")
    return decoded._replace(text=text)


def _strict(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeError, LookupError):  # also of codecs that are none for text
        return None


def _from_mark(data: bytes) -> Decoded | None:
    for mark, encoding in _BOMS:
        if not data.startswith(mark):
            continue
        if (text := _strict(data, encoding)) is not None:
            return Decoded(text, encoding, [])
        text = data.decode(encoding, errors="replace")
        if encoding == "utf-16" and text.count("\ufffd") <= 1 + len(text) / 100:
            return Decoded(text, encoding, _damaged(text, "UTF-16"))
    return None


def _damaged(text: str, encoding: str, before: int = 0) -> list[str]:
    """The warning about what did not fit an encoding; `before` marks of it were in the file already."""
    bad = text.count("\ufffd") - before
    return [f"{bad} damaged byte sequence(s) in {encoding} text were replaced by \ufffd"] if bad else []


def _from_utf8(data: bytes) -> Decoded | None:
    """UTF-8, also with a few damaged bytes among many valid sequences of several bytes."""
    data = data.removeprefix(codecs.BOM_UTF8)
    text = data.decode("utf-8", errors="replace")
    if text.count("\x00") > len(text) / 20:
        return None
    before = data.count("\ufffd".encode())
    if text.count("\ufffd") == before:
        return Decoded(text, "utf-8", [])
    if mixed := _mixed(data):
        return mixed
    return Decoded(text, "utf-8", _damaged(text, "UTF-8", before)) if _mostly_utf8(data) else None


def _mostly_utf8(data: bytes) -> bool:
    text = data.decode("utf-8", errors="replace")
    bad = text.count("\ufffd") - data.count("\ufffd".encode())
    return bad == 0 or sum(ord(char) > 127 for char in text) - bad >= 4 * bad


def _mixed(data: bytes) -> Decoded | None:
    """UTF-8 with lines in another encoding, as logs have that several programs write."""
    lines = data.split(b"\n")
    foreign = [number for number, line in enumerate(lines) if not _mostly_utf8(line)]
    others = b"\n".join(lines[number] for number in foreign)
    # A few lines of any encoding happen to be valid UTF-8, which makes no file a mixed one.
    if not others or _high(data) - _high(others) < _high(others) / 10:
        return None
    found = double_byte(others) or western(others)
    if found is None or "\ufffd" in found[1]:
        return None
    encoding, text = found
    read = dict(zip(foreign, text.split("\n"), strict=True))
    merged = "\n".join(
        read[number] if number in read else line.decode("utf-8", errors="replace")
        for number, line in enumerate(lines)
    )
    told = f"{len(foreign)} of {len(lines)} lines are not UTF-8; {_preview(encoding, text)}"
    return Decoded(merged, "utf-8", [told, *_damaged(merged, "UTF-8", data.count("\ufffd".encode()))])


def _high(data: bytes) -> int:
    """Number of bytes beyond ASCII."""
    return len(data.translate(None, bytes(range(128))))


def _from_declaration(data: bytes) -> Decoded | None:
    named = _DECLARED.search(data[:2048])
    if named is None:
        return None
    label = named.group(1).decode("ascii").lower()
    encoding = _LABELS.get(label, label)
    if encoding.startswith(("utf-16", "utf-32")):
        return None
    text = _strict(data, encoding)
    return None if text is None else Decoded(text, encoding, [])


def _from_wide(data: bytes) -> Decoded | None:
    """UTF-16 without a mark: Latin letters leave a NUL in every other byte."""
    zeros = data.count(0)
    if zeros <= len(data) / 20 or len(data) % 2:
        return None
    readings = [(encoding, _strict(data, encoding) or "") for encoding in ("utf-16-le", "utf-16-be")]
    encoding, text = max(readings, key=lambda reading: plain_share(reading[1]))
    if plain_share(text) < 0.8:
        raise DocumentError("binary data, not text")
    return Decoded(text, encoding, [_preview(encoding, text)])


def _from_evidence(data: bytes) -> Decoded:
    found = double_byte(data) or western(data) or double_byte(data, errors="replace") or detected(data)
    if found is None:
        raise DocumentError("its text encoding was not recognised; save it as UTF-8")
    encoding, text = found
    return Decoded(text, encoding, [_preview(encoding, text), *_damaged(text, encoding)])


def _preview(encoding: str, text: str) -> str:
    words = " ".join(re.sub(r"<[^>]*>", " ", text).split())
    return f'read as {encoding}, check that this is right: "{words[:40]}"'
