"""What the generators hand out."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple


class Case(NamedTuple):
    """One reply: the reader it is for, its kind, the text, and what a careful person would read in it.

    `truth` None means that nothing can be read: any value is a misreading. `size` is the number of texts or
    sources that the reply is about.
    """

    reader: str
    kind: str
    reply: str
    truth: Any
    size: int = 0


Maker = Callable[[Random], Iterator[Case]]

ASIDES = [
    "It was written on 2024-03-05.",
    "The passage names 3 of the 4 facts.",
    "Page 12 tells of the year 1997.",
    "It is 1,250 words long.",
    "资料写于2024年3月5日。",
    "文中提到3项指标。",
    "The text has two parts.",
    "它讲的是检索。",
]
"""Sentences with numbers that are no verdict."""

REFUSALS = [
    "",
    "  \n ",
    "I'm sorry, but I can't help with that.",
    "I cannot judge this document.",
    "无法判断",
    "抱歉，我不能回答这个问题。",
    "N/A",
    "...",
    "？",
    "Please provide the document.",
    "As an AI language model, I do not rate documents.",
    "null",
    "None",
    "{}",
    "[]",
    "```\n```",
    "<html><body>502 Bad Gateway</body></html>",
    "The",
    "�" * 20,
]

_THOUGHTS = [
    "maybe 0.2, or 7/10?",
    "1: 5\n2: 1",
    "Verdict: not grounded",
    "可能是零点三",
    "[9] says 2024",
    "",
]


def thoughtful(random: Random, reply: str) -> tuple[str, str]:
    """The reply behind thoughts, and how: none, tagged, or with the opening tag in the prompt."""
    thought = random.choice(_THOUGHTS)
    match random.randrange(6):
        case 0:
            return f"<think>\n{thought}\n</think>\n\n{reply}", "+think"
        case 1:
            return f"{thought}\n</think>\n{reply}", "+orphan"
        case _:
            return reply, ""
