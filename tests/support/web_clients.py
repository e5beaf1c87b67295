"""Searches of `crag.web` wired to the stand-ins of `tests.support.web_servers`, and their failures read."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crag.base.errors import WebSearchError
from crag.base.interfaces import WebSearch
from crag.settings.settings import Settings
from crag.web import web_search
from tests.support.web_servers import SearXNGServer, TavilyServer, page

KEY = "tvly-TESTSECRET"
TIDES = page("Tides", "https://sea.example/tides", "The moon makes the tides.")
MOON = page("Moon", "https://sky.example/moon", "The moon is a rock.")


def tavily(url: str, **more: Any) -> WebSearch:
    search = web_search(Settings(web="tavily", tavily_api_key=KEY, tavily_url=url, **more))
    assert search is not None
    return search


def searxng(url: str, **more: Any) -> WebSearch:
    search = web_search(Settings(web="searxng", searxng_url=url, **more))
    assert search is not None
    return search


BOTH = pytest.mark.parametrize(
    ("server", "client"),
    [
        pytest.param(TavilyServer, tavily, id="tavily"),
        pytest.param(SearXNGServer, searxng, id="searxng"),
    ],
)
Client = Callable[..., WebSearch]


async def failure(call: Awaitable[object]) -> str:
    """The message of the WebSearchError that `call` raises, checked to be one line without the key."""
    with pytest.raises(WebSearchError) as caught:
        await call
    message = str(caught.value)
    assert "\n" not in message
    assert KEY not in message
    return message
