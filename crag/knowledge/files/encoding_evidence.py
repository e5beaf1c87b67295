"""Which encoding bytes are in, by how common the characters are that each of them yields."""

import re
import unicodedata
from collections.abc import Callable

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
