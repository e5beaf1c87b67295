"""What all search services share: sending without blocking, one retry, and failures as one line each."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from crag.aio.calls import aside
from crag.base.errors import WebSearchError
from crag.base.http import LARGEST_SEARCH, TooLargeError, asked_wait, host_of, limited
from crag.base.metering import meter
from crag.base.redaction import redact
from crag.base.wording import LONGEST_SAID, one_line

if TYPE_CHECKING:
    from requests import Response

T = TypeVar("T")

LONGEST_WAIT = 5.0
"""Seconds that a search waits at most for a service that asks for patience."""

UNSAID_WAIT = 1.0
"""Seconds before a service is asked again that does not say how long to wait."""

_GRACE = 0.5
"""Seconds by which a client's own time limit comes first, as it also ends the thread."""


class BusyError(WebSearchError):
    """The service refuses for now and wants `wait` seconds of peace."""

    def __init__(self, message: str, wait: float) -> None:
        super().__init__(message)
        self.wait = wait


@dataclass(frozen=True)
class Service:
    """One search service: its name and URL, the setting that holds the URL, remedies by HTTP status.

    `seconds` is the time limit of one request; `secret` never shows in a message.
    """

    name: str
    url: str = field(repr=False)
    setting: str
    seconds: float
    remedies: Mapping[int, str] = field(default_factory=dict)
    secret: str = field(default="", repr=False)

    async def send(self, request: Callable[[], T]) -> T:
        """The result of a blocking `request`, run in a thread; raises WebSearchError.

        A busy service is asked once more if it wants a wait of at most LONGEST_WAIT seconds. Coming back
        sooner than asked would only prolong the ban.
        """
        try:
            return await self._send(request)
        except BusyError as busy:
            if busy.wait > LONGEST_WAIT:
                raise
            await asyncio.sleep(busy.wait)
        return await self._send(request)

    async def _send(self, request: Callable[[], T]) -> T:
        meter().web_calls += 1
        try:
            # The clients limit each read, which a server that drips bytes never exceeds.
            async with asyncio.timeout(self.seconds + _GRACE):
                return await aside(request)
        except TimeoutError:
            raise self.late() from None

    def error(self, reason: str) -> WebSearchError:
        """A WebSearchError in this service's name."""
        return WebSearchError(self._line(reason))

    def late(self) -> WebSearchError:
        """The error for no reply in time."""
        return self.error(f"no reply within {self.seconds:g} s; try again or raise CRAG_WEB_TIMEOUT")

    def failed(self, error: Exception) -> WebSearchError:
        """The error for a request that got no readable reply, whatever `requests` raised."""
        import requests

        where = f"{host_of(self.url)}; check the network, any proxy and {self.setting}"
        match error:
            case requests.Timeout():
                return self.late()
            case TooLargeError():
                return self.error(f"{error} in {self.setting}")
            case requests.exceptions.JSONDecodeError() | RecursionError():
                return self.error(f"the reply is not JSON; check that {self.setting} is a search service")
            case requests.exceptions.SSLError():
                return self.error(
                    f"the certificate of {host_of(self.url)} is not trusted; "
                    "set REQUESTS_CA_BUNDLE to your company's"
                )
            case requests.exceptions.InvalidURL():  # the service's own was checked with the settings
                return self.error("the proxy cannot be used; check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY")
            case OSError() if "TLS CA" in str(error):
                return self.error(
                    "the certificates cannot be read; check REQUESTS_CA_BUNDLE and CURL_CA_BUNDLE"
                )
            case requests.ConnectionError():
                return self.error(f"cannot connect to {where}")
        return self.error(f"the request failed ({type(error).__name__}) at {where}")

    def read(self, response: "Response", **_: Any) -> "Response":
        """A hook of `requests` that reads a reply up to LARGEST_SEARCH bytes. Raises TooLargeError beyond."""
        response.encoding = None  # JSON is UTF-8, whatever the header says
        try:
            response._content = b"".join(limited(response.iter_content(65_536), LARGEST_SEARCH))
        except TooLargeError:
            response.close()
            raise
        response._content_consumed = True
        return response

    def refused(self, response: "Response") -> WebSearchError:
        """The error for a reply with a status other than 200; a BusyError for 429."""
        status = response.status_code
        try:
            told = self._told(response.json())
        except ValueError:
            told = ""
        if status == 429:
            wait = asked_wait(response.headers)
            wait = UNSAID_WAIT if wait is None else wait
            reason = f"the rate limit is reached (429{told}); try again in {wait:g} s"
            return BusyError(self._line(reason), wait)
        remedy = "try again later" if status >= 500 else f"check {self.setting}"
        return self.error(f"HTTP {status}{told}; {self.remedies.get(status, remedy)}")

    def results(self, reply: Any) -> list[Any]:
        """The `results` of a reply, [] for null; raises WebSearchError for an error in their place."""
        found = reply.get("results") if isinstance(reply, dict) else None
        if found and isinstance(found, list):
            return found
        if isinstance(reply, dict) and (told := self._told(reply)):
            raise self.error(f"an error instead of results{told}; check {self.setting} or try again")
        if isinstance(reply, dict) and "results" in reply and not found:
            return []
        raise self.error(f"the reply holds no list of results; check that {self.setting} is a search service")

    def _told(self, reply: Any) -> str:
        """What a reply says went wrong, in whichever of the usual shapes."""
        while isinstance(reply, dict):
            reply = next((reply[key] for key in ("error", "detail", "message") if reply.get(key)), None)
        # Redacted before it is cut, lest half a key be left.
        text = redact(str(reply), [self.secret]) if isinstance(reply, (str, list)) else ""
        return f": {one_line(text, LONGEST_SAID)}" if text else ""

    def _line(self, reason: str) -> str:
        return redact(f"{self.name}: {reason}", [self.secret])
