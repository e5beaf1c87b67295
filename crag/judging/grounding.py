"""Grounding: whether an answer says only what its documents say, and whether its citations are right."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from langchain_core.documents import Document

from crag.base.errors import ModelError
from crag.base.interfaces import Chat, Check, Claim
from crag.base.language import language_of
from crag.base.metering import meter
from crag.base.wording import one_line
from crag.judging.claims import sentences, unclaimed
from crag.judging.facts import missing_facts
from crag.judging.generation import numbered
from crag.models.prompting import External, prompt
from crag.replies.checks import read_grounded
from crag.replies.citations import cited
from crag.replies.claims import read_claims
from crag.text.sentences import split_strips
from crag.text.terms import content_terms

SAME = 0.6
"""Share of a claim's terms that a sentence must hold to be the sentence that makes the claim."""

SHOWN = 3
"""Unsupported claims that a reason names."""

LONGEST_SHOWN = 120
"""Characters shown of a claim, a sentence or a fact."""

_MARKS = re.compile(r"\s*\[\d{1,3}\]")
_QUOTED_LINE = re.compile(r"(?<=\])\n(?=[“\"「])")
_LEADING = re.compile(r"(?:\s*\[\d{1,3}\])+")


def without_citations(text: str) -> str:
    """The text of a cleaned answer without its marks [n]."""
    return _MARKS.sub("", text).strip()


def unsupported_citations(answer: str, claims: Sequence[Claim]) -> list[tuple[int, str]]:
    """Each [n] whose sentence makes claims that document n supports none of, with that sentence, in order."""
    found = []
    for sentence in _sentences(answer):
        numbers = cited(sentence)
        words = set(content_terms(without_citations(sentence)))
        made = [claim for claim in claims if _share(without_citations(claim["text"]), words) >= SAME]
        supporting = {n for claim in made for n in claim["supported_by"]}
        found += [(n, without_citations(sentence)) for n in numbers if made and n not in supporting]
    return found


def answer_strips(answer: str) -> list[str]:
    """The strips of an answer; a quotation on a line of its own ends there, with or without a full stop."""
    return [strip for part in _QUOTED_LINE.split(answer) for strip in split_strips(part)]


def _sentences(answer: str) -> list[str]:
    """The strips of an answer, each with the citations that follow it, also after its full stop or quote."""
    sentences: list[str] = []
    for strip in answer_strips(answer):
        own = _LEADING.match(strip)
        rest = strip
        if own and sentences:
            sentences[-1] += own[0]
            rest = strip[own.end() :]
        if rest.strip():
            sentences.append(rest)
    return sentences


def warn_of_citations(answer: str, claims: Sequence[Claim]) -> None:
    """Put `unsupported_citations` into the run's warnings."""
    for number, sentence in unsupported_citations(answer, claims):
        meter().warn(f"[{number}] does not support: {one_line(sentence, LONGEST_SHOWN)}")


def faults(claims: Sequence[Claim], missing: Sequence[str]) -> str | None:
    """What speaks against an answer: claims without support and facts that are not in its documents."""
    unsupported = [
        f"“{one_line(claim['text'], LONGEST_SHOWN)}”" for claim in claims if not claim["supported_by"]
    ]
    more = f" and {len(unsupported) - SHOWN} more" if len(unsupported) > SHOWN else ""
    said = []
    if unsupported:
        said.append(f"not supported: {', '.join(unsupported[:SHOWN])}{more}")
    if missing:
        said.append(
            f"not in the sources: {', '.join(one_line(fact, LONGEST_SHOWN) for fact in missing[:10])}"
        )
    return "; ".join(said) or None


def _share(text: str, words: set[str]) -> float:
    terms = set(content_terms(text))
    return len(terms & words) / len(terms) if terms else 0.0


class _Judged(NamedTuple):
    verdict: bool | None
    claims: list[Claim]


class ModelChecker:
    """An `interfaces.Checker`: one model call per answer, which names each claim and its sources.

    Sentences that no claim is about are shown to it once more, by themselves; an answer of which it passes
    something over then too is unverified. Beside the model, `missing_facts` looks up numbers, dates and
    quotations. `context_tokens` is the generator's, so that the checker sees the same; `same_model` says that
    the generator judges its own work.
    """

    def __init__(self, chat: Chat, context_tokens: int, *, same_model: bool = False) -> None:
        self._chat = chat
        self._context_tokens = context_tokens
        self._same_model = same_model
        self._prompt = prompt("check")

    async def __call__(self, question: str, answer: str, documents: list[Document]) -> Check:
        """Grounded only if every claim is supported, the model says so, and no fact is missing."""
        if not documents:
            return Check(False, "there are no sources", [])
        if self._same_model:
            meter().warn(f"the answer was checked by the model that wrote it, {self._chat.name}")
        sources = numbered(documents, self._context_tokens)
        missing = missing_facts(answer, "\n".join(f"{source.title}\n{source.text}" for source in sources))
        judged = await self._judged(question, answer, sources)
        if isinstance(judged, str):
            return _unverified(judged, missing)
        warn_of_citations(answer, judged.claims)
        against = _against(judged, missing)
        if against:
            return Check(False, against, judged.claims)
        return await self._rest_checked(question, answer, sources, judged.claims)

    async def _rest_checked(
        self, question: str, answer: str, sources: list[External], claims: list[Claim]
    ) -> Check:
        """The check of an answer whose listed claims are all supported, and of what the list leaves out."""
        bare = without_citations(answer)
        left = unclaimed(question, bare, claims)
        if not left:
            return Check(True, None, claims)
        said = sentences(bare)
        # The sentence before tells what "it" is.
        shown = sorted({n for place in left for n in (place - 1, place) if n >= 0})
        rest = "\n".join(said[n] for n in shown)
        judged = await self._judged(question, rest, sources, claimless=True)
        unchecked = ", ".join(f"“{one_line(said[n], LONGEST_SHOWN)}”" for n in left[:SHOWN])
        if isinstance(judged, str):
            return Check(False, f"unverified: not checked: {unchecked} ({judged})", claims)
        if against := _against(judged, []):
            return Check(False, against, [*claims, *judged.claims])
        others = set(content_terms(" ".join(said[n] for n in range(len(said)) if n not in left)))
        fresh = [claim for claim in judged.claims if _share(claim["text"], others) < SAME]
        if judged.claims and not fresh:
            return Check(False, f"unverified: not checked: {unchecked}", claims)
        return Check(True, None, [*claims, *fresh])

    async def _judged(
        self, question: str, answer: str, sources: list[External], *, claimless: bool = False
    ) -> _Judged | str:
        """What the model says of an answer, asked again where it says nothing readable; why not, as a text.

        "Grounded" without any claim counts only where `claimless`: a greeting has none.
        """
        known = {source.number for source in sources}
        messages = self._prompt.render(
            language_of(answer), question=question, sources=sources, answer=External(answer)
        )
        reply = ""
        for _ in range(2):
            try:
                reply = await self._chat(messages)
            except ModelError as error:
                return str(error)
            verdict = read_grounded(reply)
            claims = [
                Claim(text=claim["text"], supported_by=[n for n in claim["supported_by"] if n in known])
                for claim in read_claims(reply) or []
            ]
            if (
                verdict is False
                or (verdict and (claims or claimless))
                or any(not claim["supported_by"] for claim in claims)
            ):
                return _Judged(verdict, claims)
        said = one_line(reply, 80)
        return f"{self._chat.name} replied {said!r}" if said else f"{self._chat.name} said nothing"


def _against(judged: _Judged, missing: Sequence[str]) -> str | None:
    """What speaks against an answer, its checker's verdict included."""
    against = faults(judged.claims, missing)
    return against if against or judged.verdict else "the checker found it not grounded"


def _unverified(why: str, missing: Sequence[str]) -> Check:
    facts = faults([], missing)
    return Check(False, f"unverified: {why}" + (f"; {facts}" if facts else ""), [])
