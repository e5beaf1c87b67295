"""Bring your own: what callers may hand in instead of a part, turned into that part."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from crag.aio.calls import Limits, called, storable, told
from crag.aio.loops import Later
from crag.base.errors import CragError, SettingsError
from crag.base.interfaces import Grade, Grader, Retriever
from crag.base.language import language_of, readable
from crag.base.metering import meter
from crag.settings.conditions import LANG, Conditions, meets, shown
from crag.settings.settings import Settings

if TYPE_CHECKING:
    from crag.knowledge.retrieval import HybridRetriever


def limits(settings: Settings) -> Limits:
    """How long a caller's part may take, and how many of its calls run at once."""
    return Limits(settings.timeout, "CRAG_TIMEOUT", settings.concurrency)


def retriever_of(
    settings: Settings, own: Any, ours: Callable[[], "HybridRetriever"]
) -> Callable[[Conditions], Retriever]:
    """Makes retrievers of the caller's or ours that see only what meets the settings' conditions and more."""
    always = settings.filter + settings.where
    if own is not None:
        brought = own_retriever(own, limits(settings))
        return lambda where: only(brought, always + where) if always + where else brought
    return lambda where: Later(lambda: partial(ours(), where=settings.where + where))


def own_retriever(given: Any, limits: Limits) -> Retriever:
    """A Retriever from a LangChain retriever or a callable (question, k) → documents.

    A LangChain retriever has its own k; what it finds beyond the asked k is cut.
    """

    async def retrieve(question: str, k: int) -> list[Document]:
        try:
            if isinstance(given, BaseRetriever):
                found = await called(given.ainvoke, question, limits=limits)
            else:
                found = await called(given, question, k, limits=limits)
            if not isinstance(found, Iterable) or isinstance(found, (str, bytes, Mapping, Document)):
                raise TypeError(
                    f"it returned {type(found).__name__} instead of a list of LangChain documents"
                )
            return [_from_kb(document) for document in islice(found, k)]
        except CragError:
            raise
        except Exception as error:
            raise CragError(f"the retriever you brought failed: {told(error)}") from error

    if not (isinstance(given, BaseRetriever) or callable(given)):
        raise SettingsError("retriever must be a LangChain retriever or a callable (question, k) → documents")
    return retrieve


def _from_kb(found: Any) -> Document:
    document = found[0] if isinstance(found, tuple) else found
    if not isinstance(document, Document):
        raise TypeError(f"it returned {type(document).__name__} instead of LangChain documents")
    if not isinstance(document.page_content, str):
        raise TypeError(f"the text of a document is {type(document.page_content).__name__}, not str")
    given = document.id
    return Document(
        id=None if given is None else readable(str(given)),
        page_content=readable(document.page_content),
        metadata={"origin": "kb", **storable(document.metadata or {})},
    )


def only(retriever: Retriever, wanted: Conditions) -> Retriever:
    """What a retriever finds, without the documents whose metadata does not meet the conditions."""

    async def retrieve(question: str, k: int) -> list[Document]:
        found = await retriever(question, k)
        kept = [d for d in found if meets({LANG: language_of(d.page_content), **d.metadata}, wanted)]
        if found and not kept:
            meter().warn(f"nothing that your retriever found meets {shown(wanted)}")
        return kept

    return retrieve


def own_grader(given: Any, limits: Limits) -> Grader:
    """A Grader from a callable (question, document) → score in [0, 1], None or a Grade, sync or async.

    A score outside [0, 1] or an exception leaves that document unscored, with the reason.
    """

    async def grade(question: str, document: Document) -> Grade:
        try:
            # A copy: what a grader does to its document is not what the answer is made from.
            result = await called(given, question, document.model_copy(deep=True), limits=limits)
        except Exception as error:  # noqa: BLE001 - somebody else's code; its failure costs one score, not the run
            return _unscored(f"the grader failed: {told(error)}")
        graded: Mapping[str, Any] = result if isinstance(result, Mapping) else {"score": result}
        score, reason = graded.get("score"), graded.get("reason")
        reason = None if reason is None else readable(str(reason))
        if score is None:
            return Grade(score=None, reason=reason or "unscored by the grader")
        try:
            value = float(score)
        except (TypeError, ValueError, OverflowError):
            return _unscored(f"the grader returned {repr(score)[:100]}")
        if not 0 <= value <= 1:
            return _unscored(f"the grader returned {value}, not a score in [0, 1]")
        return Grade(score=value, reason=reason)

    if not callable(given):
        raise SettingsError("grader must be a callable (question, document) → score in [0, 1] or None")
    return grade


def _unscored(why: str) -> Grade:
    meter().warn(f"unscored document: {why}")
    return Grade(score=None, reason=f"unscored: {why}")
