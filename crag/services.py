"""The only place that chooses: which part does what, from the settings and from what a caller brings."""

from dataclasses import dataclass
from typing import Any

from crag.answer import Models
from crag.grading import LLMGrader, Thresholds
from crag.interfaces import Generator, Grader, Refiner, Retriever, Rewriter, WebSearch
from crag.later import Later, once
from crag.llm import ChatModel, chat_model
from crag.own import own_grader, own_retriever
from crag.settings import Origin, Settings

WEB_HINT = (
    "web search is off; set TAVILY_API_KEY, or CRAG_WEB to duckduckgo, searxng or snapshot, "
    "to let corrections look beyond the knowledge base"
)


@dataclass(frozen=True)
class Own:
    """What the caller brings instead of ours; None keeps ours."""

    retriever: Any = None
    model: Any = None
    embeddings: Any = None
    web_search: Any = None
    grader: Any = None


@dataclass(frozen=True)
class Services:
    """Every part of a run, ready to be called; parts that load something load it at their first call."""

    retriever: Retriever
    grader: Grader
    rewriter: Rewriter | None
    web: WebSearch | None
    web_hint: str | None
    refiner: Refiner
    generator: Generator
    thresholds: Thresholds
    thresholds_source: Origin
    k: int
    web_results: int
    context_tokens: int
    models: Models


def from_environment() -> Services:
    """The services that the environment and `.env` describe."""
    return build_services(Settings(), Own())


def build_services(settings: Settings, own: Own) -> Services:
    """Choose the parts. Opens nothing and connects to nothing. Raises SettingsError."""
    embedded = _Embedded(settings, own)
    generator = _chat(settings, own, "generator", stream=True)
    grader = _chat(settings, own, "grader") if _model_grades(settings, own) else None
    helper = _chat(settings, own, "generator")
    web = _web(settings, own)
    return Services(
        retriever=own_retriever(own.retriever) if own.retriever is not None else Later(embedded.retriever),
        grader=_grader(own, grader, embedded),
        rewriter=_rewriter(helper),
        web=web,
        web_hint=WEB_HINT if web is None and settings.web == "auto" else None,
        refiner=_refiner(helper, settings) if helper else Later(embedded.refiner),
        generator=_generator(generator) if generator else Later(embedded.generator),
        thresholds=Thresholds(upper=settings.upper, lower=settings.lower, aggregate=settings.aggregate),
        thresholds_source=settings.thresholds_source,
        k=settings.k,
        web_results=settings.web_results,
        context_tokens=settings.context_tokens,
        models=_names(settings, own, grader, generator),
    )
