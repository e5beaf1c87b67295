"""How many model calls of a server had to wait for one another."""

from tests.openai_server import OpenAIServer


def rounds(server: OpenAIServer) -> int:
    """The longest chain of chat calls each of which began after the one before it had ended."""
    longest: dict[int, int] = {}
    calls = sorted(server.chats, key=lambda call: call.start)
    for n, call in enumerate(calls):
        before = (longest[m] for m, other in enumerate(calls[:n]) if other.end <= call.start)
        longest[n] = 1 + max(before, default=0)
    return max(longest.values(), default=0)
