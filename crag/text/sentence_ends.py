"""Whether a full stop, a mark or dots end a sentence of English or Chinese, or only an abbreviation."""

import re

from crag.base.language import HAN

WIDE = re.compile(f"[{HAN}\u3040-\u30ff\uac00-\ud7af\uff01-\uff60]")
"""A character that fills two cells: Chinese, kana, Hangul, full-width forms."""

# Never the end of a sentence.
_WORDS_TITLES = """
mr mrs ms dr prof st gen gov sen rep hon lt col sgt capt cmdr rev mt messrs vs cf ca e.g i.e viz al
approx
"""
_TITLES = frozenset(_WORDS_TITLES.split())
# No end when a number follows.
_WORDS_BEFORE_NUMBER = """
no nos fig figs eq sec ch vol vols pp p art para jan feb mar apr jun jul aug sep sept oct nov dec
"""
_BEFORE_NUMBER = frozenset(_WORDS_BEFORE_NUMBER.split())
# May end a sentence: it does when the next word usually begins one.
_EITHER = re.compile(
    r"(?:[A-Za-z]\.)*[A-Za-z]|etc|inc|ltd|co|corp|jr|sr|bros|est|dept|ph\.d|m\.d", re.IGNORECASE
)
_WORDS_OPENERS = """
the a an it its he she they we you this that these those there here in on at after before when while
as if but and however although for from by with since during his her their our my what who where why
how
"""
_OPENERS = frozenset(_WORDS_OPENERS.split())
_LIST_NUMBER = re.compile(r"(?:^|[：:；;。！？)）])\s*\d{1,3}$")
_BEFORE_DOT = re.compile(r"(?:[^\W\d_]+\.)*[^\W\d_]+$")
_NEXT_WORD = re.compile(r"[^\W\d_]+")


def ends_sentence(text: str, mark: re.Match[str], end: int, *, begin: int, limit: int) -> bool:
    """Whether the marks found in a block of text, from `begin` up to `limit`, end a sentence.

    `end` is the end of the marks with the quotes and brackets that close there.
    """
    signs = mark.group()
    if any(sign in "。！？；｡‼⁇⁈⁉؟।۔" for sign in signs) or "……" in signs:
        return True
    if end >= limit:
        return True
    following = text[end : end + 40]
    if not following[0].isspace():
        # "好的.然后" ends a sentence, "3.5", "a.b/c?d" and "Node.js 是" do not.
        before = text[mark.start() - 1] if mark.start() > begin else ""
        return bool(WIDE.match(following[0]) and (signs[0] in "!?…" or WIDE.match(before)))
    following = following.lstrip()
    if not following or following[0].islower():
        return False
    return signs != "." or not _is_abbreviation(text[max(begin, mark.start() - 24) : mark.start()], following)


def _is_abbreviation(before: str, following: str) -> bool:
    found = _BEFORE_DOT.search(before)
    if not found:
        return bool(_LIST_NUMBER.search(before))
    word = found.group()
    if word.lower() in _TITLES:
        return True
    if word.lower() in _BEFORE_NUMBER:
        return following[0].isdigit()
    if word == "I" or not _EITHER.fullmatch(word):
        return False
    following_word = _NEXT_WORD.match(following)
    return not (following_word and following_word.group().lower() in _OPENERS)
