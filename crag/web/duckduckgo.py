"""DuckDuckGo, without a key, through ddgs: for trying things out, and only by choice."""

import math
from typing import Any

from langchain_core.documents import Document

from crag.base.language import language_of
from crag.base.metering import meter
from crag.settings.settings import Settings
from crag.text.budget import fit_query
from crag.web.results import web_documents
from crag.web.service import Service

_OTHER = "wait some minutes, or set CRAG_WEB to tavily or searxng"


class DuckDuckGo:
    """A `WebSearch` by DuckDuckGo alone; ddgs left to itself would ask a dozen other engines too."""

    def __init__(self, settings: Settings) -> None:
        self._service = Service(
            name="DuckDuckGo",
            url="https://duckduckgo.com",
            setting="CRAG_WEB",
            seconds=settings.web_timeout,
        )

    async def __call__(self, query: str, limit: int) -> list[Document]:
        """At most `limit` results; raises WebSearchError."""
        fitting = fit_query(query)
        found = await self._service.send(lambda: self._search(fitting, limit))
        if not found:
            meter().warn("DuckDuckGo found nothing, which is also what it says when asked too often")
        return web_documents(found, limit, service="DuckDuckGo")

    def _search(self, query: str, limit: int) -> list[dict[str, Any]]:
        import ddgs
        from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException

        region = "cn-zh" if language_of(query) == "zh" else "us-en"
        try:
            client = ddgs.DDGS(timeout=math.ceil(self._service.seconds))
            found: list[dict[str, Any]] = client.text(
                query, region=region, max_results=limit, backend="duckduckgo"
            )
        except RatelimitException:
            raise self._service.error(f"the rate limit is reached; {_OTHER}") from None
        except TimeoutException:
            raise self._service.late() from None
        except DDGSException as error:
            if str(error).startswith("No results"):
                return []
            if "error sending request" in str(error):
                raise self._service.error("cannot connect; check the network and any proxy") from None
            raise self._service.error(f"the search failed ({str(error)[:160]}); {_OTHER}") from None
        except Exception as error:  # noqa: BLE001 - what ddgs and its parsers raise on odd pages
            raise self._service.error(
                f"the search failed ({str(error)[:160] or type(error).__name__}); {_OTHER}"
            ) from None
        if not isinstance(found or [], list):
            raise self._service.error(f"it gave {type(found).__name__} instead of results; {_OTHER}")
        return found
