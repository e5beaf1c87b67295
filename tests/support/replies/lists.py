"""Replies to "score each of these from 1 to 5"."""

import json
from collections.abc import Callable, Iterator, Sequence
from random import Random

from tests.support.replies.case import REFUSALS, Case, thoughtful

Scores = Sequence[int | None]
_NOTES = ["it names the city", "only 3 of 4 facts", "off topic", "与问题无关", "提到了2024年"]


def _lines(template: str) -> Callable[[Random, Scores], str]:
    def write(random: Random, scores: Scores) -> str:
        rows = [(n, score) for n, score in enumerate(scores, 1) if score is not None]
        if random.random() < 0.2:
            random.shuffle(rows)
        return "\n".join(template.format(n=n, s=s, note=random.choice(_NOTES)) for n, s in rows)

    return write


def _json(shape: Callable[[int, int | None], object]) -> Callable[[Random, Scores], str]:
    def write(random: Random, scores: Scores) -> str:
        items = [shape(n, score) for n, score in enumerate(scores, 1)]
        text = json.dumps(items, indent=random.choice((None, 2)))
        return random.choice((text, f"```json\n{text}\n```", f'{{"scores": {text}}}', f"Scores:\n{text}"))

    return write


def _table(_: Random, scores: Scores) -> str:
    rows = [f"| {n} | {score if score is not None else '-'} |" for n, score in enumerate(scores, 1)]
    return "| Passage | Score |\n|---|---|\n" + "\n".join(rows)


def _mapping(_: Random, scores: Scores) -> str:
    return json.dumps({str(n): score for n, score in enumerate(scores, 1)})


def _bare(between: str) -> Callable[[Random, Scores], str]:
    return lambda _, scores: between.join("null" if score is None else str(score) for score in scores)


WAYS: dict[str, Callable[[Random, Scores], str]] = {
    "n: s": _lines("{n}: {s}"),
    "wide": _lines("{n}：{s}"),
    "n. s": _lines("{n}. {s}"),
    "n) s": _lines("{n}) {s}"),
    "[n] s": _lines("[{n}] {s}"),
    "[n]: s": _lines("[{n}]: {s}"),
    "bold": _lines("**{n}: {s}**"),
    "bold label": _lines("- **Passage {n}**: {s}"),
    "passage": _lines("Passage {n}: {s}/5"),
    "document": _lines("Document {n}: Score {s} - {note}"),
    "noted": _lines("{n}: {s} - {note}"),
    "noted ()": _lines("{n}: {s} ({note})"),
    "note first": _lines("{n}: {note} - score: {s}"),
    "zh": _lines("第{n}段：{s}分"),
    "zh label": _lines("段落{n}：{s}分，{note}"),
    "arrow": _lines("{n} -> {s}"),
    "equals": _lines("{n} = {s}"),
    "decimal": _lines("{n}: {s}.0"),
    "table": _table,
    "json map": _mapping,
    "json objects": _json(lambda n, s: {"id": n, "score": s}),
    "json passages": _json(lambda n, s: {"passage": n, "relevance": s, "reason": "3 of 4"}),
    "json list": _json(lambda _, s: s),
    "json pairs": _json(lambda n, s: [n, s]),
    "commas": _bare(", "),
    "bare lines": _bare("\n"),
}


def lists(random: Random) -> Iterator[Case]:
    """Replies about several texts, without end."""
    while True:
        count = random.randrange(2, 9)
        if random.random() < 0.1:
            yield Case("list", "refusal", random.choice(REFUSALS), [None] * count, count)
            continue
        truth: list[int | None] = [random.randrange(1, 6) for _ in range(count)]
        kind, write = random.choice(list(WAYS.items()))
        written: list[int | None] = list(truth)
        if random.random() < 0.3:
            # One is left out or stands on another scale: it alone is unread.
            at = random.randrange(count)
            outside = (
                [None, 0, 7, 85]
                if kind not in {"commas", "bare lines", "json list", "json pairs"}
                else [None, 7]
            )
            written[at], truth[at] = random.choice(outside), None
            kind += ", one missing"
        reply = write(random, written)
        if random.random() < 0.3:
            reply = random.choice(("Here are the scores:\n\n", "Scores:\n", "评分如下：\n")) + reply
        if random.random() < 0.15:
            reply += random.choice(
                ("\n\nI hope this helps.", "\n以上。", "\n\nPassages with 4 or 5 are relevant.")
            )
        reply, how = thoughtful(random, reply)
        yield Case("list", kind + how, reply, truth, count)
