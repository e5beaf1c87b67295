"""Bytes → text: which encoding a file is in, by evidence, and a refusal rather than garbage.

Statistical detectors misread short Chinese files (four characters of GB18030 pass for Korean), so the
double-byte encodings are compared first by how common the characters are that each of them yields.
"""

import codecs
import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

from crag.base.errors import DocumentError

_FREQUENT = frozenset(
    "的一是不了在人有我他这個个中大来來上国國到说說们們为為子和你地出道也时時年得就那要下以生会會自"
    "着著去之过過家学學对對可她里裡后後小么麼心多天而能好都然没沒日于於起还還发發成事只作当當想看文"
    "无無开開手用主行方又如前所本见見经經头頭面公同三已老从從动動两兩长長知民样樣现現分将將外但身些"
    "与與高意进進把法此实實回二理美点點月明其种種声聲全工己话話儿者向情部正名定女问問力机機给給等几"
    "业業最间間新什打便位因重被走电電第门門相次东東政海口使教西再平真世气氣信北少关關并並内內加由"
    "，。、：；？！“”‘’（）《》【】「」・ー"
    "이다는의에을를가은한고로하지기사있습니서도"
)
CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
"""Characters that stand in no text."""


def _lead(char: str, encoding: str) -> int:
    encoded = char.encode(encoding, errors="ignore")
    return encoded[0] if len(encoded) == 2 else 0


def _common_gb(char: str) -> bool:
    return 0xA1 <= _lead(char, "gb2312") <= 0xD7


def _common_big5(char: str) -> bool:
    return 0xA1 <= _lead(char, "big5") <= 0xC6


def _common_japanese(char: str) -> bool:
    return 0x81 <= _lead(char, "shift_jis") <= 0x97


def _common_korean(char: str) -> bool:
    return 0xA1 <= _lead(char, "euc-kr") <= 0xC8


def _common_wide(char: str) -> bool:
    return _common_gb(char) or _common_big5(char)


_CANDIDATES: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("gb18030", _common_gb),
    ("big5", _common_big5),
    ("cp932", _common_japanese),
    ("euc-jp", _common_japanese),
    ("cp949", _common_korean),
    ("utf-16-le", _common_wide),
    ("utf-16-be", _common_wide),
)


def plain_share(text: str) -> float:
    """Share of characters that are ASCII, common in Chinese, kana or Hangul."""
    plain = sum("\t" <= char <= "~" or _common_wide(char) or _common_korean(char) for char in text[:20_000])
    return plain / len(text[:20_000]) if text else 0.0


def double_byte(data: bytes, errors: str = "strict") -> tuple[str, str] | None:
    """The double-byte encoding that yields the most common characters; nearly all must be common.

    With `errors` "replace" a few damaged bytes are let through as U+FFFD.
    """
    best, best_score = None, 0.0
    for encoding, common in _CANDIDATES:
        try:
            text = data.decode(encoding, errors)
        except UnicodeDecodeError:
            continue
        if CONTROL.search(text) or text.count("\ufffd") > len(text) / 200:
            continue
        wide = [char for char in text[:20_000] if ord(char) > 127]
        if not wide or sum(map(common, wide)) < 0.9 * len(wide):
            continue
        frequent = sum(char in _FREQUENT or "\u3041" <= char <= "\u30fa" for char in wide)
        if encoding.startswith("utf-16") and not frequent:
            continue  # Two Latin letters often make one Chinese character, rarely a frequent one.
        score = frequent / len(wide)
        if best is None or score > best_score:
            best, best_score = (encoding, text), score
    return best


def western(data: bytes) -> tuple[str, str] | None:
    """Windows-1252: a few accented letters and typographic marks among many ASCII letters."""
    letters = sum(byte < 128 and chr(byte).isalpha() for byte in data)
    if letters <= sum(byte > 127 for byte in data):
        return None
    text = data.decode("cp1252", errors="replace")
    if text.count("\ufffd") > len(text) / 1000:
        return None
    for before, char, after in zip(text, text[1:], text[2:], strict=False):
        # "³" inside a word is some other alphabet's letter.
        symbol = ord(char) > 127 and unicodedata.category(char) in {"No", "So", "Sm", "Sc", "Sk"}
        if symbol and before.isalpha() and after.isalpha():
            return None
    return "cp1252", text


def detected(data: bytes) -> tuple[str, str] | None:
    """What a statistical detector is sure of, for all other encodings."""
    from charset_normalizer import from_bytes

    best = from_bytes(data).best()
    if best is None or best.chaos > 0.1 or best.coherence < 0.2:
        return None
    return best.encoding, str(best)


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
