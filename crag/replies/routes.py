"""What routers write: where a message goes, and the question it stands for.

Whatever is not clearly there is None: unread, never guessed. No reader raises, whatever the reply.
"""

import re
from typing import Any, Literal, NamedTuple

from crag.replies.checks import json_values
from crag.replies.numerals import FULLWIDTH
from crag.replies.thinking import ends_in_thought, strip_thinking

Route = Literal["retrieve", "smalltalk", "rephrase"]

LONGEST = 5_000
"""Characters of a reply beyond which it is not read."""

_ROUTES: dict[Route, str] = {
    "retrieve": r"retriev(?:e|al)|search|检索|檢索",
    "smalltalk": r"small[ _-]?talk|chit-?chat|greeting|闲聊|閒聊|寒暄",
    "rephrase": r"re-?phras(?:e|ing)|re-?word(?:ing)?|改写|改寫|转述|轉述",
}
_ANY_ROUTE = "|".join(_ROUTES.values())
_ROUTE_KEY = r"route|去向|路由"
_QUESTION_KEY = (
    r"(?:(?:standalone|rewritten|full|final)[ _]?)?(?:question|message|query)|(?:独立|完整|改写后?)?的?问题"
)
_ROUTED = re.compile(rf"^\W*(?:{_ROUTE_KEY})\s*[:=]\W*(?P<said>[^\n,;]*)", re.IGNORECASE | re.MULTILINE)
_BARE = re.compile(rf"\W*(?P<said>{_ANY_ROUTE})\W*", re.IGNORECASE)
_ASKED = re.compile(
    rf"^[^\w\n]*(?:{_QUESTION_KEY})[*_\s]*[:=](?P<said>[^\n]*)$", re.IGNORECASE | re.MULTILINE
)
_NONE = re.compile(r"[\W_]*(?:(?:none|n/?a|null|无|無|没有)[\W_]*)?", re.IGNORECASE)
_QUOTES = "\"'`*“”‘’「」『』<> \t"


class Routed(NamedTuple):
    """A route and the standalone question that came with it; None for what was not said."""

    route: Route | None
    question: str | None


def read_route(reply: str) -> Routed:
    """The one route and the one question of a reply: labelled lines, JSON, or a route's name alone.

    Several routes, or several questions, that differ are none.
    """
    text = _readable(reply)
    pairs = [pair for value in json_values(text) if isinstance(value, dict) for pair in value.items()]
    if pairs:
        routes = [_text(value) for key, value in pairs if re.fullmatch(_ROUTE_KEY, key, re.IGNORECASE)]
        questions = [_text(value) for key, value in pairs if re.fullmatch(_QUESTION_KEY, key, re.IGNORECASE)]
    else:
        bare = _BARE.fullmatch(text)
        routes = [bare["said"]] if bare else [match["said"] for match in _ROUTED.finditer(text)]
        questions = [match["said"] for match in _ASKED.finditer(text)]
    named = {_route(said) for said in routes}
    return Routed(named.pop() if len(named) == 1 else None, _one_question(questions))


def read_standalone(reply: str) -> str | None:
    """The question of a reply: the one that is labelled, or the only line where that asks."""
    text = _readable(reply)
    found = read_route(reply).question
    if found is None and "\n" not in text and re.search(r"[?？]\W*$", text):
        found = _one_question([text])
    return found


def _readable(reply: str) -> str:
    text = strip_thinking(reply).strip()
    # Full-width punctuation belongs to a Chinese question; only the signs behind labels are made plain.
    text = re.sub(rf"(?im)^(\W*(?:{_ROUTE_KEY}|{_QUESTION_KEY})[*_\s]*)[:：=]", r"\1:", text)
    return "" if ends_in_thought(reply) or len(text) > LONGEST else text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _route(said: str) -> Route | None:
    said = said.translate(FULLWIDTH).strip(_QUOTES + ".。[]()")
    for route, words in _ROUTES.items():
        if re.fullmatch(words, said, re.IGNORECASE):
            return route
    return None


def _one_question(said: list[str]) -> str | None:
    questions = {" ".join(text.split()).strip(_QUOTES) for text in said if not _NONE.fullmatch(text)}
    return questions.pop() if len(questions) == 1 else None
