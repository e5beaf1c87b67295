"""SearXNG, a search that people run themselves: https://docs.searxng.org/dev/search_api.html.

LangChain's wrapper for it knows no time limit and no difference between failures, so its JSON API is
asked directly.
"""

from typing import Any

from langchain_core.documents import Document

from crag.base.http import TooLargeError, is_loopback
from crag.base.metering import meter
from crag.settings.settings import Settings
from crag.text.budget import fit_query
from crag.web.results import web_documents
from crag.web.service import Service


class SearXNG:
    """A `WebSearch` by the instance at CRAG_SEARXNG_URL, with the engines and language it is set to."""

    def __init__(self, settings: Settings) -> None:
        base = (settings.searxng_url or "").rstrip("/").removesuffix("/search")
        self._service = Service(
            name="SearXNG",
            url=f"{base}/search",
            setting="CRAG_SEARXNG_URL",
            seconds=settings.web_timeout,
            remedies={403: "its JSON replies are off: add json to search.formats in its settings.yml"},
        )

    async def __call__(self, query: str, limit: int) -> list[Document]:
        """At most `limit` results; raises WebSearchError."""
        fitting = fit_query(query)
        reply = await self._service.send(lambda: self._search(fitting))
        results = self._service.results(reply)
        if not results and (silent := reply.get("unresponsive_engines")):
            meter().warn(f"SearXNG found nothing; engines that did not answer: {_names(silent)}")
        return web_documents(results, limit, service="SearXNG")

    def _search(self, query: str) -> Any:
        import requests

        try:
            with requests.Session() as session:
                # A system proxy cannot reach this machine's own servers and must not see what they get.
                session.trust_env = not is_loopback(self._service.url)
                session.hooks["response"].append(self._service.read)
                response = session.get(
                    self._service.url, params={"q": query, "format": "json"}, timeout=self._service.seconds
                )
            if response.status_code != 200:
                raise self._service.refused(response)
            return response.json()
        except (OSError, TooLargeError, ValueError, RecursionError) as error:
            raise self._service.failed(error) from None


def _names(engines: Any) -> str:
    """ "google (timeout), bing" of [["google", "timeout"], "bing"]."""
    listed = engines if isinstance(engines, list) else [engines]
    return ", ".join(f"{e[0]} ({e[1]})" if isinstance(e, list) and len(e) > 1 else str(e) for e in listed)
