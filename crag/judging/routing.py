"""Routing: whether a message needs the documents at all, and what a follow-up means by itself.

Retrieval is where everything in doubt goes. The conversation is data to a model, as documents are.
"""

import re
from collections.abc import Sequence

from crag.base.errors import ModelError
from crag.base.interfaces import Chat, Direct, Draft, Routing, Turn
from crag.base.language import Language, han_count, language_of
from crag.base.metering import meter
from crag.judging.conversation_rules import Talk, asks_rephrasing, made_standalone, small_talk
from crag.judging.generation import cleaner
from crag.judging.grounding import without_citations
from crag.models.prompting import External, prompt
from crag.replies.routes import read_route, read_standalone
from crag.text.budget import AROUND, LEAST, count_tokens, shorten
from crag.text.terms import terms

TURNS = 6
HISTORY_TOKENS = 1500
"""What a router sees of a conversation: at most so many of its last turns, within so many tokens."""

LONGEST_QUESTION = 600
"""Characters beyond which a model's rewriting is taken for something else than a question."""

SHORT: dict[Direct, int] = {"smalltalk": 12, "rephrase": 40}
"""Words (two Chinese characters count as one) that a message without retrieval has at most."""

_ASKS = re.compile(
    r"\b(?:what|who|whom|whose|when|where|why|which|how)\b|(?:^|[.!?,;]\s*)(?:is|are|was|were|do|does|did|has|have|had"
    r"|should|must|may)\b|什么|甚么|谁|哪|何时|为何|怎么|怎样|如何|多少|几[个年月天点次]|多[高长大久远重快]|是否|是不是|有没有",
    re.IGNORECASE,
)
_WANTS = re.compile(
    r"[?？]|\b(?:tell|show|list|explain|describe|define|give|find|compare|look up)\b"
    r"|告诉|说明|解释|介绍|列出|比较|描述|查",
    re.IGNORECASE,
)
_NOTHING: dict[Language, str] = {"en": "(none)", "zh": "（无）"}
_ROUTE_ORDER = re.compile(
    r"\b(?:route[rd]?|routing|small-?talk|rephrase)\s*(?:[:=]|to\b|as\b|is\b)|去向|路由|闲聊\s*[：:]",
    re.IGNORECASE,
)
_REPLIES: dict[Language, dict[Talk, str]] = {
    "en": {
        "greeting": "Hello! I answer questions about your documents and name the sources of every answer. "
        "What would you like to know?",
        "thanks": "You are welcome! I am here for any other question about your documents.",
        "farewell": "Goodbye! I am here when you have another question about your documents.",
    },
    "zh": {
        "greeting": "您好！我根据您的文档回答问题，并注明每个回答的来源。您想了解什么？",
        "thanks": "不客气！关于您的文档，还有问题请随时提出。",
        "farewell": "再见！关于您的文档，有问题请随时再来。",
    },
}
_NO_MODEL: dict[Language, str] = {
    "en": "Rewording an answer needs a language model, and none is configured. "
    "Set OPENAI_API_KEY, or OPENAI_BASE_URL for another server.",
    "zh": "改写回答需要语言模型，目前没有配置。请设置 OPENAI_API_KEY，或用 OPENAI_BASE_URL 指定其他服务器。",
}


def recent(history: Sequence[Turn], tokens: int) -> list[External]:
    """The last turns that fit into `tokens`, oldest first; the oldest of them may be cut short.

    Their citations are left out: they are numbers of documents that nobody is shown here.
    """
    kept: list[External] = []
    for turn in reversed(history[-TURNS:]):
        text = f"Q: {turn['question']}\nA: {without_citations(turn['answer'])}"
        room = tokens - AROUND
        if room < LEAST:
            break
        text = shorten(text, room)
        tokens = room - count_tokens(text)
        kept.append(External(text))
    return kept[::-1]


class ModelRouter:
    """An `interfaces.Router`: one model call, which routes (with `route`) and makes follow-ups standalone.

    A failed call or an unreadable reply is retrieval with the question as it stands, and a warning.
    """

    def __init__(self, chat: Chat, *, route: bool) -> None:
        self._chat = chat
        self._route = route
        self._prompt = prompt("route" if route else "standalone")

    async def __call__(self, question: str, history: Sequence[Turn]) -> Routing:
        """Where the question goes, and its standalone form where it has another one."""
        language = language_of(question)
        turns = recent(history, HISTORY_TOKENS) or _NOTHING[language]
        try:
            reply = await self._chat(self._prompt.render(language, history=turns, message=External(question)))
        except ModelError as error:
            meter().warn(f"the question was taken as it stands: {error}")
            return Routing(None, None)
        if not self._route:
            return Routing(None, self._standalone(question, read_standalone(reply)))
        routed = read_route(reply)
        if routed.route is None:
            self._warn("wrote no route that can be read")
            return Routing(None, None)
        if routed.route == "retrieve":
            return Routing(None, self._standalone(question, routed.question) if history else None)
        if may_do_without(question, routed.route, history):
            return Routing(routed.route, None)
        self._warn(f"saw {routed.route} in a message that may be a question")
        return Routing(None, None)

    def _standalone(self, question: str, written: str | None) -> str | None:
        if written is None or not keeps(question, written):
            self._warn("wrote no standalone question that can be used")
            return None
        return None if terms(written) == terms(question) else written

    def _warn(self, why: str) -> None:
        meter().warn(f"the question was taken as it stands: {self._chat.name} {why}")


def may_do_without(question: str, kind: Direct, history: Sequence[Turn]) -> bool:
    """Whether a model's word that a message needs no documents is to be believed.

    Not for a long message, nor for one that speaks of routes, which may have talked the model into it; nor
    for one that asks something, as an earlier answer may have talked the model into it. Nothing can be
    reworded before there is an answer.
    """
    han = han_count(question)
    words = len(re.findall(r"[^\W_]+", re.sub(r"[\u3400-\u9fff]", " ", question))) + han / 2
    if words > SHORT[kind] or _ROUTE_ORDER.search(question):
        return False
    if kind == "smalltalk":
        return bool(small_talk(question) or not (_ASKS.search(question) or _WANTS.search(question)))
    return bool(history) and bool(asks_rephrasing(question) or not _ASKS.search(question))


def keeps(question: str, written: str) -> bool:
    """Whether a rewriting can stand for its question: the same language, and every code and number in it."""
    codes = {term for term in terms(question) if any(char.isdigit() for char in term)}
    return (
        len(written) <= LONGEST_QUESTION
        and language_of(written) == language_of(question)
        and codes <= set(terms(written))
    )


class RuleRouter:
    """An `interfaces.Router` without a model: only what `small_talk` and `follow_ups` are sure of."""

    def __init__(self, route: bool) -> None:
        self._route = route

    async def __call__(self, question: str, history: Sequence[Turn]) -> Routing:
        """Retrieval, but for whole messages of small talk and wishes to have the last answer reworded."""
        if self._route and small_talk(question):
            return Routing("smalltalk", None)
        if self._route and history and asks_rephrasing(question):
            return Routing("rephrase", None)
        return Routing(None, made_standalone(question, [turn["question"] for turn in history]))


class ModelReplier:
    """An `interfaces.Replier`: one model call, which sees the conversation within `tokens`."""

    def __init__(self, chat: Chat, tokens: int) -> None:
        self._chat = chat
        self._tokens = tokens
        self._prompt = prompt("direct")

    async def __call__(self, question: str, history: Sequence[Turn], kind: Direct) -> Draft:
        """The reply, cleaned as `CitationFilter` cleans it: it cites nothing. Raises ModelError."""
        language = language_of(question)
        turns = recent(history, self._tokens) or _NOTHING[language]
        reply = await self._chat(self._prompt.render(language, history=turns, message=External(question)))
        clean = cleaner(question, [])
        text = clean.feed(reply) + clean.end()
        if not text:
            raise ModelError(
                f"generator model {self._chat.name} wrote nothing; try again or use another model"
            )
        return Draft(text, answered=True)


class FixedReplier:
    """An `interfaces.Replier` without a model: sentences that say what this program does."""

    async def __call__(self, question: str, history: Sequence[Turn], kind: Direct) -> Draft:
        """A friendly sentence in the message's language; that rewording needs a model is no answer."""
        language = language_of(question)
        if kind == "rephrase":
            return Draft(_NO_MODEL[language], answered=False)
        return Draft(_REPLIES[language][small_talk(question) or "greeting"], answered=True)
