"""What is true of servers whatever they serve: addresses, keys, waits, replies up to a size."""

import ipaddress
import re
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

from crag.base.errors import ModelError

OPENAI_URL = "https://api.openai.com/v1"
NO_KEY = "none"
"""Sent to servers that need no key; the client refuses to be built without one."""
REDIRECT = "crag_redirect"
"""The extension of a response that holds the address it redirected to."""


def is_loopback(base_url: str) -> bool:
    """Whether a URL points at this machine, which no system proxy can reach."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def host_of(url: str) -> str:
    """Host and port of a URL, for messages: never a path, a query or credentials."""
    return urlsplit(url).netloc.rpartition("@")[2] or url


def bare_url(url: str) -> str:
    """A URL without what may be secret in it: login, query and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.rpartition("@")[2]
    return f"{parts.scheme}://{host_of(url)}{parts.path}" if parts.netloc else url.rpartition("@")[2]


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait, given as milliseconds, seconds or a date; None if it does not."""
    said = ""
    for name, unit in (("Retry-After-Ms", 1000), ("Retry-After", 1)):
        said = str(headers.get(name, "")).strip()
        if re.fullmatch(r"\d{1,30}(\.\d+)?", said):
            return float(said) / unit
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    except ValueError:
        return None


def keep_to_server(response: Any) -> None:
    """An httpx hook for responses: lets no redirect take a request, and what stands in it, to another server.

    Followed are 307 and 308, which send the request again, within the server or from http to its https. Of
    all others the address is taken away, which leaves an answer with their status, and kept as an extension.
    """
    if not response.has_redirect_location:
        return
    asked = str(response.request.url)
    target = urljoin(asked, response.headers["location"])
    if response.status_code not in {307, 308} or not _is_same_server(asked, target):
        del response.headers["location"]
        response.extensions[REDIRECT] = target.partition("?")[0]


def _is_same_server(asked: str, target: str) -> bool:
    try:
        old, new = urlsplit(asked), urlsplit(target)
        same_port = (old.scheme, old.port) == (new.scheme, new.port)
    except ValueError:
        return False
    return old.hostname == new.hostname and (same_port or (old.scheme, new.scheme) == ("http", "https"))


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
