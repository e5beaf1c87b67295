"""Which of the two languages the product writes in fits a text."""

import re
from typing import Literal

Language = Literal["zh", "en"]

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
UNSPACED = f"{HAN}\u3040-\u30ff\u31f0-\u31ff\uac00-\ud7af"
"""Chinese, kana and hangul, for a set of a pattern: what stands beside other words without a space."""

LETTER = f"[^\\W{UNSPACED}]"
"""A letter or digit of what is written with spaces: `\\w` takes Han characters too."""

BEGINS, ENDS = f"(?<!{LETTER})", f"(?!{LETTER})"
"""The edges of a Latin word or a number: `\\b` sees none beside a Han character."""

_HAN = re.compile(f"[{HAN}]")
_WORD = re.compile(r"[^\W\d_]+")


_SEAM = re.compile(rf"(?<=[{HAN}])(?=[A-Za-z])|(?<=[A-Za-z])(?=[{HAN}])")


def spaced(text: str) -> str:
    """`text` with a blank between Chinese and Latin letters, where `\\b` sees no edge of a word."""
    return _SEAM.sub(" ", text)


def readable(text: str) -> str:
    """`text` with "?" for halves of character pairs, which no output and no server can write."""
    return text.encode("utf-8", "replace").decode()


def han_count(text: str) -> int:
    """Number of Chinese characters in `text`."""
    return len(_HAN.findall(text))


def language_of(text: str) -> Language:
    """`zh` when at least a fifth of the words are Chinese, counting two characters as one word.

    A Chinese question full of English terms ("用Python怎么读CSV file?") is still Chinese,
    an English one that quotes a Chinese name is still English.
    """
    han = han_count(text) / 2
    other = len(_WORD.findall(_HAN.sub(" ", text)))
    return "zh" if han and han / (han + other) >= 0.2 else "en"
