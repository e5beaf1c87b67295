"""How many calls had to wait for one another."""

from collections.abc import Iterable
from typing import Protocol

from tests.support.openai_server import OpenAIServer


class Timed(Protocol):
    """Something that began and ended, in seconds of one clock."""

    start: float
    end: float


def rounds(server: OpenAIServer, others: Iterable[Timed] = ()) -> int:
    """The longest chain of calls each of which began after the one before it had ended.

    Chat calls of the server, and what else counts as waiting for somebody outside, such as web searches.
    """
    calls: list[Timed] = sorted([*server.chats, *others], key=lambda call: call.start)
    longest: dict[int, int] = {}
    for n, call in enumerate(calls):
        before = (longest[m] for m, other in enumerate(calls[:n]) if other.end <= call.start)
        longest[n] = 1 + max(before, default=0)
    return max(longest.values(), default=0)
