"""The web as a source of documents: one small file per search service, all behind `interfaces.WebSearch`.

With no configuration there is no web search, so nothing leaves the machine. URLs of results are shown,
never fetched.
"""

from crag.base.interfaces import WebSearch
from crag.settings.settings import Settings
from crag.web.callables import from_callable
from crag.web.duckduckgo import DuckDuckGo
from crag.web.searxng import SearXNG
from crag.web.snapshot import Snapshot
from crag.web.tavily import Tavily

__all__ = ["DuckDuckGo", "SearXNG", "Snapshot", "Tavily", "from_callable", "web_search"]


def web_search(settings: Settings) -> WebSearch | None:
    """The search that `settings.web` names; None when it is off. Connects to nothing.

    "auto" is Tavily when its key is set and off otherwise: DuckDuckGo needs no key, but a question leaves
    the machine only by somebody's choice.
    """
    match settings.web:
        case "tavily":
            return Tavily(settings)
        case "auto" if settings.tavily_api_key is not None:
            return Tavily(settings)
        case "duckduckgo":
            return DuckDuckGo(settings)
        case "searxng":
            return SearXNG(settings)
        case "snapshot":
            return Snapshot(settings)
        case _:
            return None
