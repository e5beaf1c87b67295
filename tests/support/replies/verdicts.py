"""Replies to "is this answer grounded?", with and without the claims it makes."""

import json
from collections.abc import Iterator
from random import Random

from tests.support.replies.case import ASIDES, REFUSALS, Case, thoughtful

YES = [
    "Verdict: grounded", "**Verdict:** grounded", "grounded", "Yes.", "Yes, it is fully supported.", "yes",
    "The answer is fully grounded in the sources.", "All claims are supported.", "Final verdict: grounded.",
    '{"grounded": true}', '{"verdict": "grounded"}', "Grounded: yes", "结论：有依据", "有依据", "是",
    "判定：有依据。",
    "答案完全有依据。", "Everything in it is supported by the sources.", "Verdict - supported",
    "Grounded? Yes.",
]  # fmt: skip
NO = [
    "Verdict: not grounded", "**Verdict:** not grounded", "not grounded", "No.",
    "No, it is not supported.", "no",
    "The answer is not grounded in the sources.", "Not all claims are supported.",
    "Final verdict: not grounded.",
    '{"grounded": false}', '{"verdict": "not grounded"}', "Grounded: no", "结论：没有依据", "没有依据", "否",
    "判定：无依据。", "答案没有依据。", "It is only partially supported.", "Verdict - unsupported",
    "Grounded? No.",
    "The answer isn't supported by any source.", "Verdict: ungrounded", "mostly grounded", "答案缺乏依据。",
]  # fmt: skip
NEITHER = [
    "I cannot tell whether the answer is grounded.", "Is the answer grounded?", "It may be grounded.",
    "无法判断答案是否有依据。", "grounded / not grounded", "Grounded: yes. Grounded: no.", "可能有依据。",
]  # fmt: skip
_CLAIMS = [
    "Paris has 2.1 million people", "The tower was built in 1889", "巴黎是法国的首都",
    "It opened on 3 May 1937",
    "The bridge is not closed", "检索分为三步", "Version 2.0 is faster", "Water boils at 100 °C",
]  # fmt: skip


def verdicts(random: Random) -> Iterator[Case]:
    """Yes, no, neither."""
    while True:
        truth, wordings = random.choice(((True, YES), (False, NO), (None, NEITHER + REFUSALS)))
        reply = random.choice(wordings)
        if truth is not None and random.random() < 0.2:
            reply += random.choice(("\n", " ")) + random.choice(ASIDES)
        reply, how = thoughtful(random, reply)
        yield Case("verdict", {True: "yes", False: "no", None: "neither"}[truth] + how, reply, truth)


def claims(random: Random) -> Iterator[Case]:
    """Claims with the numbers of their sources."""
    while True:
        made = [
            (text, sorted(random.sample(range(1, 6), random.choice((0, 1, 1, 2)))))
            for text in random.sample(_CLAIMS, random.randrange(1, 5))
        ]
        kind = random.choice([*_WAYS, "json"])
        reply = (
            _json(made)
            if kind == "json"
            else "\n".join(_line(random, kind, n, *m) for n, m in enumerate(made, 1))
        )
        if kind == "table":
            reply = f"| Claim | Sources |\n|---|---|\n{reply}"
        reply += random.choice(
            ("", "", "\nVerdict: grounded", "\n\n**Verdict:** not grounded", "\n结论：有依据")
        )
        reply, how = thoughtful(random, reply)
        yield Case("claims", kind + how, reply, made, 5)


_WAYS = {
    "plain": "{text} | {support}",
    "numbered": "{n}. {text} | {support}",
    "bullet": "- {text} | {support}",
    "bold": "**{text}** | {support}",
    "wide": "{text} ｜ {support}",
    "arrow": "{text} → {support}",
    "table": "| {text} | {support} |",
    "named": "Claim {n}: {text} | {support}",
}


def _line(random: Random, kind: str, n: int, text: str, sources: list[int]) -> str:
    if sources:
        support = random.choice(
            (
                "".join(f"[{s}]" for s in sources),
                ", ".join(f"[{s}]" for s in sources),
                f"[{', '.join(map(str, sources))}]",
            )
        )
    else:
        support = random.choice(("none", "None", "无", "NONE", "not supported", "-", "没有依据"))
    return _WAYS[kind].format(n=n, text=text, support=support)


def _json(made: list[tuple[str, list[int]]]) -> str:
    return json.dumps(
        [{"claim": text, "supported_by": sources} for text, sources in made], ensure_ascii=False
    )
