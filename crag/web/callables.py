"""A search of the caller's own, as a `WebSearch`."""

import inspect
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from langchain_core.documents import Document

from crag.aio.calls import Limits, called, storable
from crag.base.errors import SettingsError, WebSearchError
from crag.base.interfaces import WebSearch
from crag.base.metering import meter
from crag.base.redaction import redact
from crag.base.wording import LONGEST_SAID, one_line
from crag.web.results import (
    distinct,
    first_text,
    plain,
    says_nothing_found,
    shortened,
    tidy,
    web_address,
    web_document,
)

DEFAULT_LIMITS = Limits(20.0, "CRAG_WEB_TIMEOUT", 8)


def from_callable(search: Callable[..., Any], limits: Limits = DEFAULT_LIMITS) -> WebSearch:
    """A WebSearch from a sync or async callable (query, limit) or (query).

    It returns documents, dicts (`title`, `url`, `content`), strings, or a list of these, also as JSON text;
    None and a sentence that nothing was found are nothing found. Whatever it raises, or returns as
    `{"error": …}`, becomes a WebSearchError. Raises
    SettingsError for what cannot be called.
    """
    if not callable(search):
        raise SettingsError("web_search must be a callable (query, limit) → documents, dicts or strings")
    takes_limit = _takes_limit(search)

    async def find(query: str, limit: int) -> list[Document]:
        meter().web_calls += 1
        try:
            arguments = (search, query, limit) if takes_limit else (search, query)
            found = await called(_called, *arguments, limits=limits)
        except WebSearchError:
            raise
        except Exception as error:
            told = one_line(redact(str(error)), LONGEST_SAID)
            raise WebSearchError(
                f"the web search you brought failed: {type(error).__name__}: {told}"
            ) from error
        return shortened(distinct(_documents(found))[:limit])

    return find


def _called(search: Callable[..., Any], *arguments: object) -> Any:
    found = search(*arguments)
    return list(found) if inspect.isgenerator(found) else found


def _takes_limit(search: Callable[..., Any]) -> bool:
    try:
        inspect.signature(search).bind("query", 1)
    except TypeError:
        return False
    except ValueError:  # some builtins have no signature to ask
        return True
    return True


def _documents(found: Any) -> list[Document]:
    if isinstance(found, str) and found.lstrip().startswith(("[", "{")):
        with suppress(ValueError, RecursionError):  # some tools return their results as JSON text
            found = json.loads(found)
    if isinstance(found, dict) and isinstance(found.get("results"), list):
        found = found["results"]
    if isinstance(found, dict) and found.get("error"):
        # Some tools return what they should raise.
        told = one_line(redact(str(found["error"])), LONGEST_SAID)
        raise WebSearchError(f"the web search you brought failed: {told}")
    items = found if isinstance(found, (list, tuple)) else [] if found is None else [found]
    return [document for item in items if item is not None and (document := _document(item)) is not None]


def _document(item: Any) -> Document | None:
    more: dict[str, Any] = {}
    match item:
        case str():
            title, url, text = None, None, tidy(item)
        case dict():
            url = item.get("url") or item.get("href") or item.get("link")
            title, text = (
                plain(tidy(item.get("title"))),
                plain(first_text(item, "content", "text", "snippet")),
            )
        case Document():
            more = item.metadata
            title, url, text = more.get("title"), more.get("source"), tidy(item.page_content)
        case _:
            raise WebSearchError(
                f"the web search you brought returned {type(item).__name__}, not documents, dicts or strings"
            )
    source = _source(url)
    if source is None or not text or says_nothing_found(text):
        return None
    document = web_document(title, source, text)
    return document.model_copy(update={"metadata": {**storable(more), **document.metadata}})


def _source(url: Any) -> str | None:
    """The address; what has no scheme is the caller's own name for a place, another scheme is refused."""
    named = "".join(tidy(url).split())
    if not named:
        return "web"
    return web_address(named) or (named if ":" not in named else None)
