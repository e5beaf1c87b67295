"""The pages of single questions, as data that the report's script draws when one is opened.

A text that several rows hold is stored once: systems that share a knowledge base retrieve the same documents.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from crag.base.answer import Answer

from ..data.records import Result, Row, Sample, Score
from .text import lang_of, link, visible

LONGEST, SHORTEST = 6000, 375
"""Characters that are shown of one text: the first, less where all together would be more than ALL_BYTES."""

ALL_BYTES = 14_000_000
"""A file much larger than this is slow to open; the records hold every text whole."""

Rated = dict[tuple[str, str], dict[str, list[Score]]]


class Texts:
    """Texts by number, each once, with its language; `say` shows the ones that stand where they are used."""

    def __init__(self, said: Iterable[str] = ()) -> None:
        self.known: dict[str, int] = {}
        self._longest = fitting(said)

    def add(self, text: str) -> int:
        """The number of `text`."""
        return self.known.setdefault(text, len(self.known))

    def listed(self) -> list[list[str]]:
        """[language, text] of each."""
        longest = fitting(self.known)
        return [[lang_of(text), _cut(text, longest)] for text in self.known]

    def say(self, text: str) -> str:
        """A question, an answer, a reference."""
        return _cut(text, self._longest)


def fitting(texts: Iterable[str]) -> int:
    """How many characters of each text may be shown."""
    longest, begun = LONGEST, [text[:LONGEST] for text in texts]
    while longest > SHORTEST and sum(len(t[:longest].encode("utf-8", "replace")) for t in begun) > ALL_BYTES:
        longest //= 2
    return longest


def _cut(text: str, longest: int) -> str:
    rest = len(text) - longest
    return visible(text if rest <= 0 else f"{text[:longest]} … ({rest:,} more characters in the records)")


def _short(text: str) -> str:
    """A name, a reason, a warning."""
    return _cut(text, SHORTEST)


def _said(samples: Sequence[Sample], rows: Sequence[Row]) -> list[str]:
    known = [text for sample in samples for text in (sample.question, sample.reference or "")]
    return known + [row.answer.answer for row in rows if row.answer]


def pages(
    result: Result,
    systems: Sequence[str],
    samples: Sequence[Sample],
    rows: Sequence[Row],
    scores: Iterable[Score],
) -> dict[str, Any]:
    """Everything the script needs; strings are as they will be shown, and no markup."""
    texts = Texts(_said(samples, rows))
    found = {(row.system, row.id): row for row in rows}
    rated = _rated(scores)
    questions = [
        {
            "id": _short(sample.id),
            "q": texts.say(sample.question),
            "lang": {"zh": "zh-Hans", "en": "en"}[sample.lang],
            "group": _short(sample.group or ""),
            "answers": [_cut(" + ".join(parts), SHORTEST) for parts in sample.answers],
            "reference": texts.say(sample.reference or ""),
            "in_kb": sample.in_kb,
            "answerable": sample.answerable,
            "gold": [_short(gold) for gold in sample.gold_ids],
            "rows": [_row(found.get((name, sample.id)), rated[name, sample.id], texts) for name in systems],
        }
        for sample in samples
    ]
    metrics = [
        {"name": visible(m.name), "meaning": visible(m.meaning), "up": m.higher_is_better}
        for m in result.metrics
    ]
    names = [visible(name) for name in systems]
    return {"systems": names, "metrics": metrics, "questions": questions, "texts": texts.listed()}


def _rated(scores: Iterable[Score]) -> Rated:
    """Scores by row and metric; of two for one repeat the later counts, as after a resumed run."""
    latest = {(s.system, s.id, s.metric, s.repeat): s for s in scores}
    rated: Rated = defaultdict(lambda: defaultdict(list))
    for (system, id_, metric, _), score in sorted(latest.items(), key=lambda item: item[0][3]):
        rated[system, id_][metric].append(score)
    return rated


def _row(row: Row | None, metrics: dict[str, list[Score]], texts: Texts) -> dict[str, Any] | None:
    if row is None:
        return None
    shown: dict[str, Any] = {
        "error": _short(row.error or ""),
        "m": {visible(name): _rating(scores) for name, scores in metrics.items()},
    }
    if row.answer:
        shown |= _answer(row.answer, row.context, texts)
        given = [d.text for d in row.answer.documents if d.kept]
        # Shown only where it says more than the kept documents do.
        if row.context and sorted(given) != sorted(row.context):
            shown["ctx"] = [texts.add(text) for text in row.context]
    return shown


def _rating(scores: list[Score]) -> dict[str, Any]:
    """The mean over repeats, each repeat, and why there is no value."""
    values = [s.value for s in scores if s.value is not None]
    rating: dict[str, Any] = {"v": round(sum(values) / len(values), 4) if values else None}
    if len(scores) > 1:
        rating["all"] = [s.value for s in scores]
    if reasons := list(dict.fromkeys(_short(s.reason) for s in scores if s.reason)):
        rating["why"] = reasons
    if not any(s.applies for s in scores):
        rating["na"] = True
    return rating


def _answer(answer: Answer, context: list[str], texts: Texts) -> dict[str, Any]:
    # A row read from the journal has no numbers; the context is in the order of the citations.
    places = {text: n for n, text in reversed(list(enumerate(context, start=1)))}
    documents = [
        {
            "id": _short(d.id),
            "title": _short(d.title or d.source or d.id),
            "src": _short(d.source),
            "url": link(d.source),
            "from": visible(d.origin),
            "s": d.score,
            "why": _short(d.reason or ""),
            "kept": d.kept,
            "n": (d.n or places.get(d.text)) if d.kept else None,
            "t": texts.add(d.text),
        }
        for d in answer.documents
    ]
    sources = [
        {
            "n": s.n,
            "title": _short(s.title or s.source or s.id),
            "url": link(s.source),
            "from": visible(s.origin),
        }
        for s in answer.sources
    ]
    return {
        "a": [lang_of(answer.answer), texts.say(answer.answer)],
        "ok": answer.answered,
        "verdict": answer.verdict,
        "score": answer.overall_score,
        "limits": answer.thresholds.model_dump() if answer.thresholds else None,
        "docs": documents,
        "sources": sources,
        "grounded": answer.grounded,
        "grounding": _short(answer.grounding_reason or ""),
        "search": _short(answer.search_query or ""),
        "path": visible(answer.path_text),
        "warnings": [_short(w) for w in answer.warnings],
        "calls": answer.usage.llm_calls,
        "web": answer.usage.web_calls,
        "cost": answer.usage.cost_usd,
        "tokens": [answer.usage.input_tokens, answer.usage.output_tokens],
        "secs": answer.timings.total_s,
    }
