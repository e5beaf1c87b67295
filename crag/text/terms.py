"""Text into lexical terms, for BM25 and for how much of a question a text covers.

Chinese is cut into character bigrams: on XQuAD and CMRC they find as much as jieba's words do, need no
dictionary and cannot miss a new name.
"""

import re
import unicodedata

from crag.base.language import UNSPACED

_TOKEN = re.compile(
    rf"(?P<unspaced>[{UNSPACED}]+)"
    r"|(?P<acronym>(?:[a-z]\.){2,})"
    r"|(?P<sign>(?<![^\W_])(?:c\+\+|[cf]#))"
    rf"|(?P<word>(?:(?![{UNSPACED}])[^\W_])+(?:[-_./'’](?:(?![{UNSPACED}])[^\W_])+)*)"
)
_JOINT = re.compile(r"[-_./]")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_MARKS = re.compile("[\u0300-\u036f]")
_DECIMAL = re.compile(r"\d+\.\d+")

_WORDS_STOP = """
a an the of in on at to for from by with and or is are was were be been being am what which who whom
whose when where why how did do does done many much that this these those it its as has have had can
could will would shall should may might must there their they he she his her him them we our you
your i me my not no so if than then into about over under during between also s t tell please
"""
_STOP = frozenset(_WORDS_STOP.split())
_FUNCTION_WORDS = re.compile(
    "为什么|為什麼|什么|什麼|甚麼|怎么样|怎么|怎麼|怎样|怎樣|如何|多少|哪些|哪个|哪個|哪里|哪裡|哪儿|哪|谁|誰|几个|"
    "是否|吗|嗎|呢|吧|的|了|请问|請問|以及|或者"
)


def terms(text: str) -> list[str]:
    """Lower-cased terms of `text` in order, with repetitions; [] when there are none.

    Latin words lose their accents; Chinese, kana and hangul become bigrams (an isolated character stays
    alone). A compound with a digit ("E-4012-B", "2019-2020", "10.1.2.3") is kept whole besides its parts.
    """
    return _terms(fold(text))


def content_terms(text: str) -> list[str]:
    """The terms that carry what a question is about: no function words, no question words.

    Falls back to all terms when nothing else is left.
    """
    return own_terms(text) or terms(text)


def own_terms(text: str) -> list[str]:
    """The same without the fallback: [] for a question made of function words alone ("Why is that?")."""
    return [term for term in _terms(_FUNCTION_WORDS.sub(" ", fold(text))) if term not in _STOP]


def fold(text: str) -> str:
    """`text` in one spelling: width, case, accents and thousands separators make no difference."""
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    folded = unicodedata.normalize("NFC", _MARKS.sub("", decomposed))
    return _THOUSANDS.sub("", folded)


def _terms(folded: str) -> list[str]:
    found: list[str] = []
    for match in _TOKEN.finditer(folded):
        token = match.group()
        if match.lastgroup == "unspaced":
            found += [token[i : i + 2] for i in range(len(token) - 1)] or [token]
        elif match.lastgroup == "acronym":
            found.append(token.replace(".", ""))
        elif match.lastgroup == "sign":
            found.append(token)
        else:
            found += _word_terms(token)
    return found


def _word_terms(token: str) -> list[str]:
    token = token.replace("’", "'").removesuffix("'s").replace("'", "")
    parts = [part for part in _JOINT.split(token) if part]
    if len(parts) > 1 and any(c.isdigit() for c in token):
        return [token] if _DECIMAL.fullmatch(token) else [token, *parts]
    return parts
