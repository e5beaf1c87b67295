"""Answering and refining without a model: the strips that bear on the question, word for word."""

import math
import re
from itertools import product
from typing import NamedTuple

from langchain_core.documents import Document

from crag.base.interfaces import SCORE, Draft
from crag.base.language import Language, language_of
from crag.embedded.evaluator import EmbeddedEvaluator, Judged
from crag.encoders.passages import Array
from crag.judging.generation import NEAREST, OPENING, refusal, without_own_numbers
from crag.text.blocks import AFTER, BEFORE, LEADS, block, continued
from crag.text.sentences import split_strips

SUPPORT = 0.5
"""Relevance below which a document supports no answer, and a further strip is not worth quoting."""

QUOTED = 5
"""Strips whose blocks make an answer, as far as there is ROOM."""

ORDER = 0.4
"""Log odds that a strip loses for each document before its own: the search saw the whole passage."""

ROOM = 700
"""Characters of an answer beyond which no further block is begun; the best one is shown whole."""

SAME = 0.82
"""Cosine of two strips in two languages from which on they may well say the same: translations reach it."""

REFINED = 5
SPREAD = 4.0
"""Strips that are kept of a web document: at most so many, and none whose log odds are lower by so much."""

_NOTE: dict[Language, str] = {
    "en": "(Quoted word for word; no language model is configured.)",
    "zh": "（以上为原文摘录；未配置语言模型。）",
}
_SPENT_NOTE: dict[Language, str] = {
    "en": "(Quoted word for word; the ceiling for a question left no model call.)",
    "zh": "（以上为原文摘录；已达到单个问题的上限，未调用语言模型。）",
}
_HEADINGS = re.compile(
    r"(?:\s{0,3}#{1,6}[^\n]*(?:\n|$)|\s*\|[\s:|-]+\|\s*(?:\n|$)"
    r"|\s{0,3}\[[^\]^][^\]]*\]:\s+\S[^\n]*(?:\n|$)|\s*\.\. _[^:\n]+:[^\n]*(?:\n|$))+"
)
_ORDER = re.compile(
    r"^\W*(?:system|assistant|系统|助手)\s*[:：]|\bignore\b.{0,40}\b(?:instructions?|questions?|prompts?)\b"
    r"|忽略.{0,12}(?:指令|指示|问题|提示)",
    re.IGNORECASE,
)
_RULE = re.compile(r"\s*\n\s*\|?(?:\s*:?-+:?\s*\|)+")
_NAMES_ALONE = re.compile(r"[^\n]*\|[^\n]*\n\s*\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?")


class _Strip(NamedTuple):
    number: int  # of its document, from 1
    place: int
    text: str
    vector: Array  # unit, shape [dimension]
    score: float  # the strip alone
    rank: float


class QuotingGenerator:
    """Quotes the blocks of the strips that answer best, each with its document as [n].

    An `interfaces.Generator`. Strips rank by their own log odds of relevance, half of their document's, and
    the order of the documents.
    `spent` says that it stands in for a model that may not be asked any more.
    """

    def __init__(self, evaluator: EmbeddedEvaluator, *, spent: bool = False) -> None:
        self._evaluator = evaluator
        self._note = _SPENT_NOTE if spent else _NOTE

    async def __call__(self, question: str, documents: list[Document]) -> Draft:
        """Quotations and a note that they are such, or a refusal. Raises ModelError."""
        language = language_of(question)
        judged = await self._evaluator.judge(question, documents)
        quotes = _quotes(documents, judged, language)
        if not quotes:
            searched = any(document.metadata.get("origin") == "web" for document in documents)
            return Draft(refusal(language, "ok" if searched else None), answered=False)
        lines = [f"“{without_own_numbers(text)}” [{number}]" for number, text in quotes]
        return Draft("\n".join([OPENING[language], *lines, self._note[language]]), answered=True)


def quoted_part(answer: str) -> str:
    """The quotations of such an answer without the words around them; any other answer as it is."""
    for language in OPENING:
        notes, openings = (_NOTE, _SPENT_NOTE), (OPENING, NEAREST)
        for note, opening in product((n[language] for n in notes), (o[language] for o in openings)):
            if answer.startswith(f"{opening}\n") and answer.endswith(f"\n{note}"):
                return answer[len(opening) + 1 : -len(note) - 1]
    return answer


def _quotes(documents: list[Document], judged: list[Judged], language: Language) -> list[tuple[int, str]]:
    """Number and text of the quotations: the blocks that the best strips stand in, the best one first."""
    quotes: list[tuple[int, str]] = []
    room = ROOM
    for strip in _best_strips(judged, language):
        core = _content(strip.text)
        if room <= 0 or any(_bare(core) in _bare(text) for _, text in quotes):
            continue
        text = _block(documents[strip.number - 1], core)
        if quotes and len(text) > room and not LEADS.search(core):  # what leads in says nothing alone
            text = core
            if len(text) > room:
                break
        quotes = [(n, own) for n, own in quotes if _bare(own) not in _bare(text)] + [(strip.number, text)]
        room -= len(text)
    return quotes


def _block(document: Document, core: str) -> str:
    """The block of a document that `core` stands in, completed from the passages around it."""
    for text in (completed(document), document.page_content):
        at = text.find(core)
        if at >= 0 and (slices := block(text, at, at + len(core))):
            return "\n".join(_without_orders(text[start:end], core) for start, end in slices)
    return core


def _without_orders(text: str, core: str) -> str:
    """A block without the sentences around `core` that are orders to a model."""
    for order in (strip for strip in split_strips(text) if _ORDER.search(strip) and strip not in core):
        text = text if core in order else text.replace(order, "", 1).strip()
    return text


def completed(document: Document) -> str:
    """A document's text with that of the passages around it in its file, where they continue it."""
    before, after = (document.metadata.get(key) for key in (BEFORE, AFTER))
    text = continued(str(before), document.page_content) if before else document.page_content
    # What does not continue the passage before it stands for itself.
    if before and text == before:
        text = document.page_content
    return continued(text, str(after)) if after else text


def _bare(text: str) -> str:
    return re.sub(r"\W", "", text).casefold()


def _best_strips(judged: list[Judged], language: Language) -> list[_Strip]:
    ranked = [
        strip._replace(rank=_log_odds(strip.score) + _log_odds(document.score) / 2 - ORDER * (number - 1))
        for number, document in enumerate(judged, 1)
        if document.score > SUPPORT
        for strip in _strips(number, document)
        if _content(strip.text) and not _names_columns(strip, document)
    ]
    ranked.sort(key=lambda strip: -strip.rank)
    chosen: list[_Strip] = []
    for strip in ranked:
        if len(chosen) == QUOTED or (chosen and strip.score <= SUPPORT):
            break
        # Between languages a strip is judged less surely: beside a better one in another it is mostly chance.
        if chosen and language_of(strip.text) != language_of(chosen[0].text):
            continue
        if not any(_says_the_same(strip.text, other.text) for other in chosen):
            chosen.append(strip)
    if chosen and language_of(chosen[0].text) != language:
        chosen = [*_in_own_words(ranked, chosen[0], language), *chosen][:QUOTED]
    return chosen


def _in_own_words(ranked: list[_Strip], best: _Strip, language: Language) -> list[_Strip]:
    """The strip in the question's language that seems to say what the best one says in another, if any."""
    same = (s for s in ranked if s.score > SUPPORT and float(s.vector @ best.vector) >= SAME)
    return [strip for strip in same if language_of(strip.text) == language][:1]


def _strips(number: int, document: Judged) -> list[_Strip]:
    """The strips of a document, with its number, ranked by their own scores."""
    passage = document.passage
    return [
        _Strip(number, place, text, vector, score, score)
        for place, text, vector, score in zip(
            passage.places, passage.strips, passage.strip_vectors, document.strip_scores, strict=True
        )
    ]


def _log_odds(score: float) -> float:
    return math.log(score / (1 - score))


def _content(strip: str) -> str:
    """A strip without the headings, table rules and targets of links that it begins with.

    "" if it is nothing else, or the names of a table's columns without a row.
    """
    rest = (strip[found.end() :] if (found := _HEADINGS.match(strip)) else strip).strip()
    return rest if any(c.isalnum() for c in rest) and not _NAMES_ALONE.fullmatch(rest) else ""


def _names_columns(strip: _Strip, document: Judged) -> bool:
    """Whether a strip ends in the names of a table's columns, whose rule and rows come after it."""
    text = document.passage.text
    at = text.find(strip.text)
    return "|" in strip.text and _RULE.match(text, at + len(strip.text)) is not None


def _says_the_same(one: str, other: str) -> bool:
    a, b = (_bare(_content(text)) for text in (one, other))
    return a in b or b in a


def _joined(text: str, strips: list[_Strip]) -> list[str]:
    """The strips of one text in order; neighbours become one slice of it."""
    places = _places(text)
    slices: list[tuple[int, int]] = []
    before = -2
    for strip in strips:
        start, end = places[strip.place]
        if strip.place == before + 1:
            start = slices.pop()[0]
        slices.append((start, end))
        before = strip.place
    return [_content(text[start:end]) for start, end in slices]


def _places(text: str) -> list[tuple[int, int]]:
    """Where each strip of the text begins and ends."""
    places = []
    at = 0
    for strip in split_strips(text):
        start = text.index(strip, at)
        at = start + len(strip)
        places.append((start, at))
    return places


class StripRefiner:
    """Keeps of each document the strips that bear on the question; an `interfaces.Refiner`.

    CRAG's decompose and recompose (arXiv 2401.15884, section 4.4) with the evaluator as the filter. A
    document that scores `lower` or less is dropped; the others carry their score in the metadata (SCORE).
    """

    def __init__(self, evaluator: EmbeddedEvaluator, *, lower: float = 0.3) -> None:
        self._evaluator = evaluator
        self._lower = lower

    async def __call__(self, question: str, documents: list[Document]) -> list[Document]:
        """The documents worth keeping, shortened to at most REFINED strips each. Raises ModelError."""
        judged = await self._evaluator.judge(question, documents)
        return [
            document.model_copy(
                update={
                    "page_content": _refined(found),
                    "metadata": {**document.metadata, SCORE: found.score},
                }
            )
            for document, found in zip(documents, judged, strict=True)
            if found.score > self._lower
        ]


def _refined(document: Judged) -> str:
    passage = document.passage
    best = sorted(_strips(0, document), key=lambda strip: -strip.score)[:REFINED]
    # What bears far less on the question than the best strip is what refinement is there to leave out.
    kept = [strip for strip in best if _log_odds(strip.score) > _log_odds(best[0].score) - SPREAD]
    return "\n".join(_joined(passage.text, sorted(kept, key=lambda strip: strip.place)))
