"""Sentences of an answer that a checker's list of claims leaves out, found without a model.

The bar is low on purpose: a claim may be put in other words, and a false alarm costs more than a clause that
is let through. Whole sentences that no claim is about are what is looked for.
"""

import re
from collections.abc import Sequence

from crag.base.interfaces import Claim
from crag.base.language import language_of
from crag.text.sentences import SENTENCE_END
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
