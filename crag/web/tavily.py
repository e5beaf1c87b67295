"""Tavily, through its own client: https://docs.tavily.com."""

from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from crag.base.errors import WebSearchError
from crag.base.http import is_loopback
from crag.settings.settings import Settings
from crag.text.budget import fit_query
from crag.web.results import web_documents
from crag.web.service import Service

if TYPE_CHECKING:
    pass

_ELSEWHERE = "or set CRAG_WEB to another search"
_REMEDIES = {
    400: "rephrase the question in fewer words",
    401: "the key was refused, check TAVILY_API_KEY",
    403: f"the key may not do this, check TAVILY_API_KEY {_ELSEWHERE}",
    432: f"the plan's search credit is used up, raise it at app.tavily.com {_ELSEWHERE}",
    433: f"the pay-as-you-go limit is reached, raise it at app.tavily.com {_ELSEWHERE}",
}


class Tavily:
    """A `WebSearch` of basic depth: one credit a search."""

    def __init__(self, settings: Settings) -> None:
        self._key = settings.tavily_api_key.get_secret_value() if settings.tavily_api_key else ""
        self._service = Service(
            name="Tavily",
            url=(settings.tavily_url or "https://api.tavily.com").rstrip("/"),
            setting="CRAG_TAVILY_URL",
            seconds=settings.web_timeout,
            remedies=_REMEDIES,
            secret=self._key,
        )

    async def __call__(self, query: str, limit: int) -> list[Document]:
        """At most `limit` results; raises WebSearchError."""
        # Without a key the client would search anonymously, which nobody asked for.
        if not self._key:
            raise WebSearchError("Tavily: no key; set TAVILY_API_KEY, or CRAG_WEB to another search")
        fitting = fit_query(query)
        reply = await self._service.send(lambda: self._search(fitting, limit))
        return web_documents(self._service.results(reply), limit, service="Tavily")

    def _search(self, query: str, limit: int) -> Any:
        import requests
        import tavily
        from tavily import errors

        responses: list[requests.Response] = []
        # A client of its own for each search: sessions are not made for several threads.
        with tavily.TavilyClient(self._key, api_base_url=self._service.url) as client:
            client.session.trust_env = not is_loopback(self._service.url)
            # The client's errors have lost the status and Retry-After.
            client.session.hooks["response"] += [
                self._service.read,
                lambda response, **_: responses.append(response),
            ]
            try:
                client.search(query, max_results=limit, timeout=self._service.seconds)
            except errors.TimeoutError:
                raise self._service.late() from None
            except AttributeError:
                pass  # what the client makes of a reply that is no object; it is judged as one below
            except Exception as error:  # noqa: BLE001 - the client raises bare Exceptions of many kinds
                if responses and responses[-1].status_code != 200:
                    raise self._service.refused(responses[-1]) from None
                raise self._service.failed(error) from None
        # The client adds empty results to any object, so only the reply itself shows a stray server.
        return responses[-1].json()
