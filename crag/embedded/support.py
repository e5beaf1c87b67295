"""How well a text supports a statement: what a check without a model can measure."""

import difflib
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from crag.base.language import han_count
from crag.judging.facts import missing_facts
from crag.text.terms import content_terms, terms

STATEMENT = ("coverage", "new_coverage", "fact_missing", "name_missing", "altered", "own_voice")
"""Of a statement, against the strip that covers most of it and the one after: the share of its terms that
stand there; the same for what the question does not already say, later words weighing more; whether a number
or date is missing there, a name in all documents; how much it looks like a quotation with a word exchanged;
whether it speaks of "I" and "you" unlike its documents."""

PHRASE = ("nearness", "strip_gap")
"""Of a verbatim phrase: how densely the question's terms stand around it, relative to where they stand most
densely; how much farther from the question its strip is than the nearest strip (cosines, at most 0)."""

REACH = 12
"""Terms over which the influence of a question's term fades to 1/e."""

ADDED = 4
"""Terms that a statement may add to those of the question and still be an answer in a full sentence."""

LONGEST_EXCHANGE = 8
"""Words of a strip that one exchange may leave out."""

_NAME = re.compile(r"(?<!^)(?<![.!?:]\s)\b[A-Z][\w'’-]+")
_VOICE = re.compile(r"\b(?:i|i['’]m|me|my|you|your)\b|[我你您]", re.IGNORECASE)
_TOKEN = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*")
_HAN_CHAR = re.compile("([\u3400-\u9fff])")


class Strip(NamedTuple):
    """A strip of the document `number` (its n) and, unless unknown, its cosine to the question."""

    number: int
    text: str
    follower: str
    cosine: float


class Context:
    """The strips of all documents, ready for comparison with many statements and one question."""

    def __init__(self, question: str, texts: Mapping[int, str], strips: Sequence[Strip]) -> None:
        """`texts` are the whole documents by number."""
        self.question = roots(question)
        self.strips = strips
        self.texts = texts
        self.plain = {number: plain(text) for number, text in texts.items()}
        self.whole = {plain(strip.text) for strip in strips}
        self.text = "\n".join(texts.values())
        self.own = [set(roots(strip.text)) for strip in strips]
        self.windows = [own | set(roots(strip.follower)) for own, strip in zip(self.own, strips, strict=True)]
        self.flow = [root for strip in strips for root in roots(strip.text)]
        self.all = set(self.flow)
        self.asked = [root for root in dict.fromkeys(self.question) if root in self.all]
        self.densities = self._densities()

    def holders(self, statement: str) -> list[int]:
        """The numbers of the documents that contain the statement word for word."""
        sought = plain(statement)
        return [number for number, text in self.plain.items() if sought.strip() and sought in text]

    def covering(self, statement: str) -> list[int]:
        """The numbers of the documents with a strip that covers nearly as much as the best one."""
        best: dict[int, float] = {}
        wanted = set(roots(statement))
        for strip, window in zip(self.strips, self.windows, strict=True):
            best[strip.number] = max(best.get(strip.number, 0.0), _share(wanted, window))
        top = max(best.values(), default=0.0)
        return [number for number, share in best.items() if top and share >= 0.8 * top]

    def is_phrase(self, statement: str) -> bool:
        """Whether a verbatim statement is only a phrase of a strip: alone it says nothing."""
        found = roots(statement)
        echoed = len(set(found) & set(self.question))
        return (
            self._is_asked()
            and plain(statement) not in self.whole
            and len(found) <= (12 if han_count(statement) else 8)
            and echoed <= max(1, len(found) / 4)
        )

    def restates(self, statement: str) -> bool:
        """Whether a statement repeats words of the question and adds but a phrase, which is its answer."""
        found = roots(statement)
        new = [root for root in found if root not in self.question]
        return self._is_asked() and len(new) < len(found) and len(new) <= ADDED

    def _is_asked(self) -> bool:
        """Whether the documents speak of what is asked, so that nearness to its words means something."""
        return bool(self.asked) and len(self.asked) >= len(set(self.question)) / 3

    def phrase(self, statement: str) -> list[float]:
        """The values of PHRASE."""
        new = [root for root in roots(statement) if root not in self.question] or roots(statement)
        top = max(self.densities, default=0.0) or 1.0
        nearness = [
            max((d for d, at in zip(self.densities, self.flow, strict=True) if at == root), default=0.0) / top
            for root in dict.fromkeys(new)
        ]
        shares = [_share(set(new), own) for own in self.own]
        best = max(shares, default=0.0)
        cosines = [strip.cosine for strip in self.strips]
        held = [c for c, share in zip(cosines, shares, strict=True) if share >= best - 1e-9]
        return [float(np.mean(nearness or [0.0])), max(held, default=0.0) - max(cosines, default=0.0)]

    def statement(self, statement: str) -> list[float]:
        """The values of STATEMENT."""
        position = self._nearest(statement)
        here = self.windows[position]
        found = roots(statement)
        weights = [n if root not in self.question else 0.001 for n, root in enumerate(found, 1)]
        names = {name.casefold() for name in _NAME.findall(statement)}
        folded = self.text.casefold()
        strip = self.strips[position]
        return [
            _share(set(found), here),
            float(np.average([root in here for root in found], weights=weights)) if found else 1.0,
            float(bool(missing_facts(statement, f"{strip.text} {strip.follower}"))),
            float(any(name not in folded for name in names)),
            _altered(statement, strip.text) * math.log(1 + len(found)),
            float(bool(_VOICE.search(statement)) and not _VOICE.search(self.text)),
        ]

    def _nearest(self, statement: str) -> int:
        """The position of the strip that covers most of the statement."""
        wanted = set(roots(statement))
        return int(np.argmax([_share(wanted, own) for own in self.own]))

    def _densities(self) -> list[float]:
        places = {root: [i for i, at in enumerate(self.flow) if at == root] for root in self.asked}
        return [
            sum(
                math.exp(-min(abs(i - j) for j in at) / REACH) / math.log(2 + len(at))
                for at in places.values()
            )
            for i in range(len(self.flow))
        ]


def plain(text: str) -> str:
    """Words of a text between single spaces; Chinese without any. For looking up what is quoted."""
    words = " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))
    return f" {words} " if not han_count(words) else words.replace(" ", "")


def roots(text: str) -> list[str]:
    """The roots of a text's content terms, in order."""
    return [_root(term) for term in content_terms(text)]


def _root(term: str) -> str:
    """Five letters of a longer Latin word, so that "modelled" stands for "models"."""
    if not (term.isascii() and term.isalpha()):
        return term
    return term[:5] if len(term) > 5 else re.sub("(?<=..)(?:s|ed)$", "", term)


def _share(wanted: set[str], held: set[str]) -> float:
    return len(wanted & held) / len(wanted) if wanted else 1.0


def _altered(statement: str, strip: str) -> float:
    """The cube of the share of equal words where other words stand between runs that are equal, else 0."""
    said, held = _tokens(statement), _tokens(strip)
    least = 3 if han_count(statement) else 2
    blocks = difflib.SequenceMatcher(None, said, held, autojunk=False).get_opcodes()
    lengths = [0, *(j - i if kind == "equal" else 0 for kind, i, j, _, _ in blocks), 0]
    for n, (kind, i, j, k, m) in enumerate(blocks):
        before, after = lengths[n], lengths[n + 2]
        framed = min(before, after) >= least or (0 in (before, after) and before + after >= least + 2)
        if kind == "replace" and framed and m - k <= LONGEST_EXCHANGE:
            new = set(content_terms(" ".join(said[i:j]))) - set(terms(" ".join(held[k:m])))
            if new:
                return float((sum(lengths) / len(said)) ** 3)
    return 0.0


def _tokens(text: str) -> list[str]:
    spaced = _HAN_CHAR.sub(r" \1 ", unicodedata.normalize("NFKC", text).casefold())
    return [_root(token) for token in _TOKEN.findall(spaced)]
