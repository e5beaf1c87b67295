"""The only place that chooses: which part does what, from the settings and from what a caller brings."""

from functools import partial
from typing import Any

from crag.aio.calls import Limits, needs
from crag.aio.loops import Later, once
from crag.base.answer import Models
from crag.base.interfaces import Generator, Grader, WebSearch
from crag.judging.generation import ModelGenerator
from crag.judging.grading import BatchGrader, EachGrader, LLMGrader, reason_grader
from crag.judging.grounding import ModelChecker
from crag.judging.queries import KeywordRewriter, ModelAlternatives
from crag.judging.refinement import ModelRefiner, ModelStripRefiner
from crag.judging.routing import FixedReplier, ModelReplier, ModelRouter, RuleRouter
from crag.judging.thresholds import embedded_identity, in_force, model_identity
from crag.models.allowance import ceiling_of
from crag.models.chat import ChatModel, Chats, chats_of
from crag.settings.calibration import EvaluatorIdentity
from crag.settings.settings import Settings
from crag.wiring.embedded import EmbeddedParts
from crag.wiring.own import limits, own_grader, retriever_of
from crag.wiring.parts import Own, Services

EMBEDDED = "embedded"
WEB_HINT = (
    "web search is off; set TAVILY_API_KEY, or CRAG_WEB to duckduckgo, searxng or snapshot, "
    "to let corrections look beyond the knowledge base"
)


def from_environment() -> Services:
    """The services that the environment and `.env` describe."""
    return build_services(Settings(), Own())


def build_services(settings: Settings, own: Own) -> Services:
    """Choose the parts. Opens nothing and connects to nothing. Raises SettingsError."""
    if own.embeddings is not None:
        needs(own.embeddings, "embeddings", "embed_query", "LangChain embeddings")
    if own.model is not None:
        needs(own.model, "model", "ainvoke", "a LangChain chat model, such as ChatOpenAI")
    chats = chats_of(settings, own.model, grades=own.grader is None)
    grader, helper, generator = chats.grader, chats.helper, chats.generator
    evaluator = _evaluator(settings, own, grader)
    judged = in_force(settings, evaluator)
    embedded = EmbeddedParts(settings, own.embeddings, judged)
    names = _names(settings, own, chats)
    web = _web(settings, own)
    retriever_where = retriever_of(settings, own.retriever, once(embedded.retriever))
    one_grader = _grader(settings, own, grader, embedded)
    passage_grader = Later(lambda: BatchGrader(grader)) if grader else EachGrader(one_grader)
    rewriter = Later(lambda: KeywordRewriter(helper)) if helper else None
    sized = partial(_sized, chats, embedded)
    return Services(
        retriever=retriever_where(()),
        retriever_where=retriever_where,
        sized=sized,
        grader=one_grader,
        passage_grader=passage_grader,
        reason_grader=Later(lambda: reason_grader(grader)) if grader else one_grader,
        alternatives=Later(lambda: ModelAlternatives(helper, rewriter)) if helper and rewriter else None,
        rewriter=rewriter,
        web=web,
        web_hint=WEB_HINT if web is None and settings.web == "auto" else None,
        strip_refiner=Later(lambda: ModelStripRefiner(grader)) if grader else Later(embedded.refiner),
        **sized(settings.context_tokens),
        # A retry follows from a check, so asking for one asks for the other.
        check=True if settings.on_ungrounded == "retry" else settings.check,
        # Quotations stand in the documents word for word; there is no better answer to try for.
        retry=settings.on_ungrounded == "retry" and generator is not None,
        route=settings.route,
        router=Later(lambda: ModelRouter(helper, route=settings.route))
        if helper
        else RuleRouter(settings.route),
        last_resort=Later(embedded.last_resort),
        ceiling=ceiling_of(settings),
        thresholds=judged.thresholds,
        thresholds_source=judged.source,
        k=settings.k,
        web_results=settings.web_results,
        context_tokens=settings.context_tokens,
        models=names,
        model_grades=grader is not None,
        model_answers=generator is not None,
        chosen=frozenset(settings.model_fields_set),
        warnings=judged.warnings,
    )


def _sized(chats: Chats, embedded: EmbeddedParts, tokens: int) -> dict[str, Any]:
    """The parts of Services whose prompts hold `tokens` of documents."""
    helper, generator, checker = chats.helper, chats.generator, chats.checker

    def answering(*, reasons: bool) -> Generator:
        if generator is None:
            return Later(embedded.generator)
        return Later(lambda: ModelGenerator(generator, tokens, reasons=reasons))

    return {
        "refiner": Later(lambda: ModelRefiner(helper, tokens)) if helper else Later(embedded.refiner),
        "generator": answering(reasons=False),
        "reasons_generator": answering(reasons=True),
        "replier": Later(lambda: ModelReplier(generator, tokens)) if generator else FixedReplier(),
        "checker": Later(lambda: ModelChecker(checker, tokens, same_model=chats.same_checker))
        if checker
        else Later(embedded.checker),
    }


def _evaluator(settings: Settings, own: Own, grader: ChatModel | None) -> EvaluatorIdentity | None:
    """Who scores documents, as a calibration must name it; asked only where there is one."""
    if settings.calibrated is None or own.grader is not None:
        return None
    if grader is not None:
        return model_identity(grader.name)
    from crag.encoders.embeddings import embedded_embeddings

    return embedded_identity(embedded_embeddings().model_id)


def _grader(settings: Settings, own: Own, chat: ChatModel | None, embedded: EmbeddedParts) -> Grader:
    if own.grader is not None:
        return own_grader(own.grader, limits(settings))
    return Later(lambda: LLMGrader(chat)) if chat else Later(embedded.grader)


def _web(settings: Settings, own: Own) -> WebSearch | None:
    if own.web_search is not None:
        from crag.web import from_callable

        return from_callable(
            own.web_search, Limits(settings.web_timeout, "CRAG_WEB_TIMEOUT", settings.concurrency)
        )
    if settings.web == "off" or (settings.web == "auto" and settings.tavily_api_key is None):
        return None

    def build() -> WebSearch:
        from crag.web import web_search

        found = web_search(settings)
        assert found is not None
        return found

    return Later(build)


def _names(settings: Settings, own: Own, chats: Chats) -> Models:
    if own.retriever is not None:
        embedding = "own retriever"
    elif own.embeddings is not None:
        embedding = getattr(own.embeddings, "model_id", type(own.embeddings).__name__)
    else:
        embedding = settings.embedding_model or EMBEDDED
    generator, checker = chats.generator, chats.checker
    return Models(
        grader="own grader" if own.grader is not None else chats.grader.name if chats.grader else EMBEDDED,
        generator=generator.name if generator else "embedded: quotes",
        checker=checker.name if checker else EMBEDDED,
        embedding=embedding,
    )
