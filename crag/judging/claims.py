"""Claims: sentences of an answer that a checker passed over, and what documents say in support of one.

The bar is low on purpose: a claim may be put in other words, and a false alarm costs more than a clause that
is let through. Whole sentences that no claim is about are what is looked for.
"""

import re
from collections.abc import Sequence

from langchain_core.documents import Document

from crag.base.interfaces import Claim
from crag.base.language import language_of
from crag.text.sentences import SENTENCE_END, split_strips
from crag.text.terms import content_terms

ABOUT = 0.15
"""Share of a sentence's own terms, one at least, that the claims hold if one of them is about it.

On some fifty sentences of English and Chinese answers of ours, with claims in other words, listed ones had
.17 and more, and all but one of those left out .07 and less.
"""

LEAST = 2
"""Own terms of a sentence that can claim anything, unless one is a number."""

_ROOT = 5  # letters: "painted" and "painting" are one word
_REMARK = re.compile(
    r"\b(?:not|no|neither|none|nothing|cannot|without|n['’]t)\b.*\b(?:sources?|documents?|context|passages?)\b"
    r"|\b(?:sources?|documents?|context|passages?)\b.*(?:\b(?:not|no|nothing|cannot|lacks?)\b|n['’]t\b)"
    r"|(?:资料|文档|来源|文献|上下文).*(?:没有|沒有|未|无法|無法|并无)|(?:没有|沒有|未).*(?:资料|文档|来源|上下文)",
    re.IGNORECASE,
)


def sentences(answer: str) -> list[str]:
    """The sentences and lines of an answer without citations, cut at every sign that may end one."""
    return [part.strip() for part in SENTENCE_END.split(answer) if part.strip()]


def unclaimed(question: str, answer: str, claims: Sequence[Claim]) -> list[int]:
    """The places in `sentences` of those that say something of their own which no claim is about.

    A sentence's own terms stand neither in the question nor in another sentence: what a claim about another
    sentence may repeat proves nothing. Introductions ("…:") and remarks on what the sources lack claim
    nothing. Claims in another language than the answer cannot be compared and leave nothing out.
    """
    parts = sentences(answer)
    claimed = " ".join(claim["text"] for claim in claims)
    if language_of(claimed) != language_of(answer):
        return []
    words = [_roots(part) for part in parts]
    asked, held = _roots(question), _roots(claimed)
    left = []
    for n, part in enumerate(parts):
        own = words[n] - asked - set().union(*words[:n], *words[n + 1 :])
        says = len(own) >= LEAST or any(char.isdigit() for term in own for char in term)
        silent = part[-1] in ":：" or _REMARK.search(part)
        if says and not silent and len(own & held) < max(1.0, ABOUT * len(own)):
            left.append(n)
    return left


def _roots(text: str) -> set[str]:
    """The beginnings of words, numbers whole, and the characters of Chinese: pairs of them are too exact."""
    found: set[str] = set()
    for term in content_terms(text):
        if term.isascii():
            found.add(term[:_ROOT] if term.isalpha() else term)
        else:
            found.update(term)
    return found


HELD = 0.34
"""Share of a claim's terms that a document's strips must hold to be told apart from the rest of it."""


def evidence(documents: Sequence[Document], claims: Sequence[Claim]) -> list[Document]:
    """The documents, each with only the strips that hold what supported claims take from it.

    Every place is kept, so that the n-th is [n] as before: a document that supports nothing has no text.
    Where a claim shares too few words with its document (another language, other words), which strips say it
    cannot be told, and the whole document is kept.
    """
    return [
        document.model_copy(update={"page_content": _supporting(document.page_content, number, claims)})
        for number, document in enumerate(documents, 1)
    ]


def _supporting(text: str, number: int, claims: Sequence[Claim]) -> str:
    strips = split_strips(text)
    chosen: set[int] = set()
    for claim in claims:
        if number in claim["supported_by"]:
            holding = _holding(strips, claim["text"])
            if not holding:
                return text
            chosen.update(holding)
    return "\n".join(strips[place] for place in sorted(chosen))


def _holding(strips: list[str], claim: str) -> list[int]:
    """The fewest strips that together hold all terms of the claim that any strip holds; [] for too few terms.

    The greedy way: the strip with most of what is still missing, the first of equals.
    """
    wanted = set(content_terms(claim))
    held = [wanted & set(content_terms(strip)) for strip in strips]
    missing = set[str]().union(*held)
    if len(missing) < HELD * len(wanted):
        return []
    chosen = []
    while missing:
        best = max(range(len(strips)), key=lambda place: len(held[place] & missing))
        chosen.append(best)
        missing -= held[best]
    return chosen
