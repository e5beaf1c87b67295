"""The only place that chooses: which part does what, from the settings and from what a caller brings."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from crag.aio.calls import Limits, needs
from crag.aio.loops import Later, once
from crag.base.answer import Models
from crag.base.interfaces import Generator, Grader, Retriever, WebSearch
from crag.judging.generation import ModelGenerator
from crag.judging.grading import BatchGrader, EachGrader, LLMGrader, reason_grader
from crag.judging.grounding import ModelChecker
from crag.judging.queries import KeywordRewriter, ModelAlternatives
from crag.judging.refinement import ModelRefiner, ModelStripRefiner
from crag.judging.routing import FixedReplier, ModelReplier, ModelRouter, RuleRouter
from crag.judging.thresholds import embedded_identity, in_force, model_identity
from crag.models.allowance import Ceiling
from crag.models.chat import ChatModel, chat_model
from crag.settings.calibration import EvaluatorIdentity
from crag.settings.conditions import Conditions
from crag.settings.endpoints import Role
from crag.settings.settings import Settings
from crag.wiring.embedded import EmbeddedParts
from crag.wiring.own import only, own_grader, own_retriever
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
    chats = _chats(settings, own)
    grader, helper, generator = chats.grader, chats.helper, chats.generator
    judged = in_force(settings, _evaluator(settings, own, grader))
    embedded = EmbeddedParts(settings, own.embeddings, judged)
    one_grader = _grader(settings, own, grader, embedded)
    rewriter = Later(lambda: KeywordRewriter(helper)) if helper else None
    web = _web(settings, own)
    retriever_where = _retriever_where(settings, own, embedded)
    sized = partial(_sized, chats, embedded)
    return Services(
        retriever=retriever_where(()),
        retriever_where=retriever_where,
        sized=sized,
        grader=one_grader,
        passage_grader=Later(lambda: BatchGrader(grader)) if grader else EachGrader(one_grader),
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
        ceiling=_ceiling(settings),
        thresholds=judged.thresholds,
        thresholds_source=judged.source,
        k=settings.k,
        web_results=settings.web_results,
        context_tokens=settings.context_tokens,
        models=_names(settings, own, chats),
        model_grades=grader is not None,
        model_answers=generator is not None,
        chosen=frozenset(settings.model_fields_set),
        warnings=judged.warnings,
    )


class Chats(NamedTuple):
    """The chat models by role; None where no model has it. The `helper` does what is not streamed."""

    generator: ChatModel | None
    helper: ChatModel | None
    grader: ChatModel | None
    checker: ChatModel | None
    same_checker: bool


def _chats(settings: Settings, own: Own) -> Chats:
    one, other = settings.endpoint("checker"), settings.endpoint("generator")
    same = own.model is not None or (one is not None and other is not None and one[:3] == other[:3])
    return Chats(
        generator=_chat(settings, own, "generator", stream=True),
        helper=_chat(settings, own, "generator"),
        grader=_chat(settings, own, "grader") if _model_grades(settings, own) else None,
        checker=_chat(settings, own, "checker"),
        same_checker=same,
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


def _ceiling(settings: Settings) -> Ceiling | None:
    if settings.max_llm_calls is None and settings.max_cost_usd is None:
        return None
    return Ceiling(
        settings.max_llm_calls,
        settings.max_cost_usd,
        settings.price_input or 0.0,
        settings.price_output or 0.0,
        settings.context_tokens,
    )


def _model_grades(settings: Settings, own: Own) -> bool:
    if own.grader is not None or settings.evaluator == "embedded":
        return False
    return settings.evaluator == "llm" or own.model is not None or settings.endpoint("grader") is not None


def _evaluator(settings: Settings, own: Own, grader: ChatModel | None) -> EvaluatorIdentity | None:
    """Who scores documents, as a calibration must name it; asked only where there is one."""
    if settings.calibrated is None or own.grader is not None:
        return None
    if grader is not None:
        return model_identity(grader.name)
    from crag.encoders.embeddings import embedded_embeddings

    return embedded_identity(embedded_embeddings().model_id)


def _chat(settings: Settings, own: Own, role: Role, *, stream: bool = False) -> ChatModel | None:
    if own.model is not None:
        needs(own.model, "model", "ainvoke", "a LangChain chat model, such as ChatOpenAI")
        return ChatModel.wrap(own.model, role=role, settings=settings, stream=stream)
    endpoint = settings.endpoint(role)
    return chat_model(endpoint, role=role, settings=settings, stream=stream) if endpoint else None


def _retriever_where(
    settings: Settings, own: Own, embedded: EmbeddedParts
) -> Callable[[Conditions], Retriever]:
    if own.retriever is not None:
        brought = own_retriever(own.retriever, _limits(settings))
        always = settings.filter + settings.where
        return lambda where: only(brought, always + where) if always + where else brought
    hybrid = once(embedded.retriever)
    return lambda where: Later(lambda: partial(hybrid(), where=settings.where + where))


def _limits(settings: Settings) -> Limits:
    return Limits(settings.timeout, "CRAG_TIMEOUT", settings.concurrency)


def _grader(settings: Settings, own: Own, grader: ChatModel | None, embedded: EmbeddedParts) -> Grader:
    if own.grader is not None:
        return own_grader(own.grader, _limits(settings))
    return Later(lambda: LLMGrader(grader)) if grader else Later(embedded.grader)


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
