"""Replies that copy from numbered pages what a question needs; the truth is drawn before it is worded."""

from collections.abc import Iterator
from random import Random

from tests.support.replies.case import Case, thoughtful

_SENTENCES = [
    "The moon pulls the sea towards itself twice a day.",
    "Spring tides come at new moon and at full moon.",
    "A harbour master keeps the tables of the tides.",
    "Version 2.0 was released on 3 May 1937.",
    "The bridge is closed to lorries of more than 7.5 tons!",
    "Is the ferry late in winter?",
    "月球的引力使海水每天涨落两次。",
    "大潮出现在新月和满月的时候。",
    "港口管理员负责维护潮汐表。",
    "该桥于1937年5月3日正式开放！",
    "In 2024 there were 12 storms, 3 of them severe.",
    "None of the boats was lost that night.",
    "无人机不得在港口上空飞行。",
    "Source [1] of the archive names a second tower.",
]
_SHARED = "This page uses cookies to remember you."
_INVENTED = [
    "The sea is wide and full of wonders.",
    "Tides are caused by gravity, as pages 1 and 2 tell.",
    "大海辽阔无边，充满奇迹。",
    "I copied every sentence that helps.",
]

_LABELS = [
    "### Page {}", "[{}]", "[{}]:", "**[{}]**", "【{}】", "［{}］", "Page {}:", "Result {}:", "第{}页：",
    "[{}] -", "- [{}]", "> [{}]", "Source [{}]:", "网页{}：",
]  # fmt: skip
_LINES = ["{}", "- {}", "* {}", '"{}"', "“{}”", "> {}", "1. {}", "**{}**", "  {}  ", "`{}`", "「{}」"]
_NONES = ["NONE", "None", "none.", "无", "无相关内容", "**NONE**", "NONE (off topic)", "无。"]


def pages(random: Random) -> Iterator[Case]:
    """Two to four pages; the truth is them and what was copied of each: [] for NONE, None for no word."""
    while True:
        drawn = random.sample(_SENTENCES, 12)
        count = random.randrange(2, 5)
        held = [drawn[3 * n : 3 * n + 3] for n in range(count)]
        kind = random.choice(("labelled", "labelled", "one line", "unlabelled", "shifted", "nothing"))
        # A text on two pages cannot show that a label is wrong.
        if random.random() < 0.2 and kind != "shifted":
            for sentences in held[:2]:
                sentences.append(_SHARED)
        shares = [_share(random, sentences) for sentences in held]
        reply, truth = _worded(random, kind, shares)
        reply, how = thoughtful(random, reply)
        texts = [_spaced(random, sentences) for sentences in held]
        yield Case("pages", kind + how, reply, (texts, truth), count)


def _share(random: Random, sentences: list[str]) -> list[str] | None:
    match random.randrange(4):
        case 0:
            return []
        case 1:
            return None
        case _:
            chosen = random.sample(range(len(sentences)), random.choice((1, 1, 2)))
            return [sentences[n] for n in sorted(chosen)]


def _spaced(random: Random, sentences: list[str]) -> str:
    return random.choice((" ", "\n", "\n\n")).join(sentences)


def _worded(random: Random, kind: str, shares: list[list[str] | None]) -> tuple[str, list[list[str] | None]]:
    # A heading needs a line of its own: "Page 1 of the report" is no label.
    label, line = random.choice(_LABELS[kind == "one line" :]), random.choice(_LINES)
    if kind == "nothing":
        return random.choice(_NONES), [[] for _ in shares]
    lines = []
    for n, share in enumerate(shares, 1):
        said = [random.choice(_NONES)] if share == [] else [line.format(text) for text in share or []]
        if random.random() < 0.2:
            said.append(random.choice(_INVENTED))
        if kind == "unlabelled":
            lines += [text for text in said if share] if share else []
        elif kind == "one line":
            lines += [f"{label.format(n)} {text}" for text in said]
        elif said:
            shown = n % len(shares) + 1 if kind == "shifted" else n
            lines += [label.format(shown), *said]
    if kind == "unlabelled":
        # What two pages hold belongs to the first where nothing tells them apart.
        return "\n".join(lines), _without_nothing(_first_of_shared(shares))
    if kind == "shifted":
        return "\n".join(lines), _shifted(shares)
    return "\n".join(lines), shares


def _without_nothing(shares: list[list[str] | None]) -> list[list[str] | None]:
    return [share or None for share in shares]


def _first_of_shared(shares: list[list[str] | None]) -> list[list[str] | None]:
    both = [share for share in shares[:2] if share and _SHARED in share]
    if not both or not shares[1] or _SHARED not in shares[1]:
        return shares
    first = [*(shares[0] or []), _SHARED]
    rest = [text for text in shares[1] if text != _SHARED]
    return [first, rest or None, *shares[2:]]


def _shifted(shares: list[list[str] | None]) -> list[list[str] | None]:
    """What labels that are all one too high leave: copied texts, which tell their page, and no NONE."""
    # Without a text nothing shows that the labels are wrong.
    return _without_nothing(shares) if any(shares) else [shares[-1], *shares[:-1]]
