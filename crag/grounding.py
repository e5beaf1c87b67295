"""Grounding: whether an answer says only what its documents say, and whether its citations are right."""

import re
from collections.abc import Sequence

from langchain_core.documents import Document

from crag.citations import cited
from crag.errors import ModelError
from crag.facts import missing_facts
from crag.generation import numbered
from crag.interfaces import Chat, Check, Claim
from crag.language import language_of
from crag.metering import meter
from crag.prompting import External, prompt
from crag.reading_checks import read_grounded
from crag.reading_claims import read_claims
from crag.strips import split_strips
from crag.terms import content_terms

SAME = 0.6
"""Share of a claim's terms that a sentence must hold to be the sentence that makes the claim."""

SHOWN = 3
"""Unsupported claims that a reason names."""

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
        meter().warn(f"[{number}] does not support: {shortened(sentence)}")


def faults(claims: Sequence[Claim], missing: Sequence[str]) -> str | None:
    """What speaks against an answer: claims without support and facts that are not in its documents."""
    unsupported = [f"“{shortened(claim['text'])}”" for claim in claims if not claim["supported_by"]]
    more = f" and {len(unsupported) - SHOWN} more" if len(unsupported) > SHOWN else ""
    said = []
    if unsupported:
        said.append(f"not supported: {', '.join(unsupported[:SHOWN])}{more}")
    if missing:
        said.append(f"not in the sources: {', '.join(shortened(fact) for fact in missing[:10])}")
    return "; ".join(said) or None


def shortened(text: str, longest: int = 120) -> str:
    """One line of a text."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def _share(text: str, words: set[str]) -> float:
    terms = set(content_terms(text))
    return len(terms & words) / len(terms) if terms else 0.0


class ModelChecker:
    """An `interfaces.Checker`: one model call per answer, which names each claim and its sources.

    Beside the model, `missing_facts` looks numbers, dates and quotations up. `context_tokens` is the
    generator's, so that the checker sees the same; `same_model` says that the generator judges its own work.
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
        known = {source.number for source in sources}
        for _ in range(2):
            try:
                reply = await self._chat(
                    self._prompt.render(
                        language_of(answer), question=question, sources=sources, answer=External(answer)
                    )
                )
            except ModelError as error:
                return _unverified(str(error), missing)
            verdict = read_grounded(reply)
            claims = [
                Claim(text=claim["text"], supported_by=[n for n in claim["supported_by"] if n in known])
                for claim in read_claims(reply) or []
            ]
            against = faults(claims, missing)
            if verdict is False or (verdict and claims) or any(not claim["supported_by"] for claim in claims):
                warn_of_citations(answer, claims)
                if not verdict and not against:
                    against = "the checker found it not grounded"
                return Check(against is None, against, claims)
        said = shortened(reply, 80)
        return _unverified(
            f"{self._chat.name} replied {said!r}" if said else f"{self._chat.name} said nothing", missing
        )


def _unverified(why: str, missing: Sequence[str]) -> Check:
    facts = faults([], missing)
    return Check(False, f"unverified: {why}" + (f"; {facts}" if facts else ""), [])
