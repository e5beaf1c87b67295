"""Replies of servers up to a size: one without end, or that unpacks to gigabytes, fills no memory."""

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

from crag.base.errors import ModelError

LARGEST_CHAT = 20_000_000
"""Bytes, unpacked, of a chat model's reply; a long answer has some 100,000."""

LARGEST_VECTORS = 200_000_000
"""Bytes, unpacked, of a reply with embeddings; 2,048 vectors of 3,072 numbers have some 130 million."""

LARGEST_SEARCH = 10_000_000
"""Bytes, unpacked, of a search service's reply; twenty whole pages have some 2 million."""


class TooLargeError(ModelError):
    """A reply went on beyond the size that its boundary allows."""

    def __init__(self, largest: int) -> None:
        super().__init__(
            f"the reply has more than {largest / 1e6:g} MB, which no such server sends; check the address"
        )


def limited(pieces: Iterable[bytes], largest: int) -> Iterator[bytes]:
    """The pieces of a reply. Raises TooLargeError once they are more than `largest` bytes."""
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > largest:
            raise TooLargeError(largest)
        yield piece


def limit_reply(response: Any, largest: int) -> None:
    """Let an httpx response, of a sync or an async client, be read up to a size; for a response hook."""
    read, read_async = response.iter_bytes, response.aiter_bytes

    async def abounded(chunk_size: int | None = None) -> AsyncIterator[bytes]:
        size = 0
        async for piece in read_async(chunk_size):
            size += len(piece)
            if size > largest:
                raise TooLargeError(largest)
            yield piece

    response.iter_bytes = lambda chunk_size=None: limited(read(chunk_size), largest)
    response.aiter_bytes = abounded
