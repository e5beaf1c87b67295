"""Replies of chat servers, brought into the one shape that the client reads, whatever the server makes of it.

What cannot be is a ModelError with the server's own words, or a ValueError that names what is missing.
"""

import asyncio
import math
import re
from collections.abc import AsyncIterator
from typing import Any

from crag.base.errors import ModelError

_KEYS = (
    "message",
    "msg",
    "detail",
    "error",
    "error_msg",
    "error_message",
    "status_msg",
    "base_resp",
    "errors",
)
_PAGE = re.compile(r"^\s*<|<html", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>([^<]{1,200})", re.IGNORECASE)
_DEEPEST = 6


class ToldError(ModelError):
    """A server answered with an error in place of a reply; `words` are its own."""

    def __init__(self, words: str) -> None:
        super().__init__(
            f"the server answered with an error: {words}; try again, or check the server and the plan"
        )


def words_of(body: Any, depth: int = _DEEPEST) -> str:
    """The server's own words in a parsed reply, in one line, or ""; of a web page its title."""
    if isinstance(body, str):
        page = _TITLE.search(body) if _PAGE.search(body) else None
        return " ".join(page[1].split() if page else [] if _PAGE.search(body) else body.split())
    if not depth:
        return ""
    if isinstance(body, list):
        return "; ".join(said for item in body[:3] if (said := words_of(item, depth - 1)))
    if not isinstance(body, dict):
        return ""
    said = next((words for key in _KEYS if (words := words_of(body.get(key), depth - 1))), "")
    place = body.get("loc")
    # FastAPI names the field beside what is wrong with it.
    return f"{'.'.join(map(str, place))}: {said}" if said and isinstance(place, list) else said


UNFINISHED = "unfinished"
"""The finish reason of a stream that ended without one: it may have been cut off."""

WITHHELD = {"content_filter", "sensitive"}
"""Finish reasons of replies that a filter withheld."""

_TOLD = WITHHELD | {"length"}
"""Finish reasons that tell by themselves why a reply holds no text."""

_LEAST_REPEATED = 20
"""Characters of a last piece from which on it is the whole text again and not a word said twice."""


class NotStreamedError(ModelError):
    """A server answered a request for a stream with something else."""


class StalledError(TimeoutError):
    """No piece of a streamed reply came in time."""


def completion(reply: Any) -> dict[str, Any]:
    """A whole reply with one choice: its text, its finish reason and its counts of tokens."""
    body = _dumped(reply)
    choice = _choice(body)
    if choice is None:
        raise ValueError("it has no choices")
    message = choice.get("message") or {"content": choice.get("text")}
    if not isinstance(message, dict):
        raise ValueError("its message is none")
    text = _text(message.get("content"))
    finish = choice.get("finish_reason")
    if not text.strip() and finish not in _TOLD:
        _refuse(message)
    return {
        "model": body.get("model"),
        "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": finish}],
        "usage": _usage(body),
    }


class Pieces:
    """The pieces of a streamed reply: an async context manager and iterator of chunks.

    `gap` is how many seconds a piece may take. Counts of tokens come once, at the end, because some servers
    repeat them with each piece. Raises NotStreamedError where nothing came, StalledError, ModelError.
    """

    def __init__(self, stream: Any, *, gap: float) -> None:
        self._stream = stream
        self._gap = gap

    async def __aenter__(self) -> "Pieces":
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stream.__aexit__(*error)

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        written, half, finish, usage = "", "", None, None
        said: dict[str, Any] = {}
        async for body in self._bodies():
            usage = _usage(body) or usage
            choice = _choice(body)
            if choice is None:
                continue
            delta = choice.get("delta")
            if delta is None:
                delta = choice.get("message") or {"content": choice.get("text")}
            if not isinstance(delta, dict):
                continue
            finish = choice.get("finish_reason") or finish
            refused = said.get("refusal", "") + str(delta.get("refusal") or "")
            said |= {key: value for key, value in delta.items() if value} | {"refusal": refused}
            piece, half = _joined(half + _text(delta.get("content")))
            if choice.get("finish_reason") and piece == written and len(piece) >= _LEAST_REPEATED:
                continue
            written += piece
            if piece:
                yield _chunk(piece)
        if not written.strip() and finish not in _TOLD:
            _refuse(said)
        if finish is None and not written.strip():
            raise NotStreamedError("its stream was empty")
        # The client adds counts up and takes an unknown one for 0.
        known = usage and None not in usage.values()
        yield _chunk(half, finish or UNFINISHED) | {"usage": usage if known else None}

    async def _bodies(self) -> AsyncIterator[dict[str, Any]]:
        pieces = aiter(self._stream)
        while True:
            try:
                async with asyncio.timeout(self._gap):
                    piece = await anext(pieces)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise StalledError from None
            yield _dumped(piece)


class Completions:
    """The client's `chat.completions` whose streams are `Pieces`."""

    def __init__(self, completions: Any, *, gap: float) -> None:
        self._completions = completions
        self._gap = gap

    def __getattr__(self, name: str) -> Any:
        return getattr(self._completions, name)

    async def create(self, **request: Any) -> Any:
        """What the client's own gives, streams in their one shape."""
        reply = await self._completions.create(**request)
        return Pieces(reply, gap=self._gap) if request.get("stream") else reply


def _dumped(reply: Any) -> dict[str, Any]:
    body = reply.model_dump(warnings=False) if hasattr(reply, "model_dump") else reply
    if isinstance(body, dict):
        return body
    items = [item.model_dump(warnings=False) if hasattr(item, "model_dump") else item for item in _list(body)]
    said = words_of(items)
    raise ToldError(said) if said else ValueError(f"it is {'a list' if items else 'no JSON object'}")


def _choice(body: dict[str, Any]) -> dict[str, Any] | None:
    """The first choice; further ones were never asked for."""
    choices = body.get("choices")
    if not choices and (said := words_of(body)):
        raise ToldError(said)
    if body.get("error"):
        raise ToldError(words_of(body) or str(body["error"]))
    # A piece of another choice may stand between those of the first.
    return next((c for c in _list(choices) if isinstance(c, dict) and not c.get("index")), None)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _refuse(message: dict[str, Any]) -> None:
    """Raise ModelError where a message without text tells why it has none."""
    if refusal := message.get("refusal"):
        raise ModelError(f"it refused: {refusal}; rephrase or use another model")
    if message.get("tool_calls") or message.get("function_call"):
        raise ModelError("it wrote nothing but a call of a tool, though none is offered; use another model")
    if message.get("reasoning_content") or message.get("reasoning"):
        raise ModelError("it wrote nothing but thoughts; turn thinking off, or raise the token limit")


def _text(content: Any) -> str:
    """The text of a message's content: a text, or parts of which some are thoughts or pictures."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        return "".join(_text(part) for part in content)
    if isinstance(content, dict):
        return _text(content.get("text")) if content.get("type", "text") in {"text", "output_text"} else ""
    if isinstance(content, int | float) and not isinstance(content, bool) and math.isfinite(content):
        return str(content)
    raise ValueError(f"its content is {content!r}")


def _usage(body: dict[str, Any]) -> dict[str, int | None] | None:
    """The counts of tokens; None for what is no count."""
    told = body.get("usage")
    if not isinstance(told, dict):
        return None
    return {name: _count(told.get(name)) for name in ("prompt_tokens", "completion_tokens")}


def _count(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _joined(text: str) -> tuple[str, str]:
    """The text, and the half of a character pair at its end, whose other half comes with the next piece."""
    half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
    return text[: len(text) - len(half)].encode("utf-16", "surrogatepass").decode("utf-16", "replace"), half


def _chunk(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"delta": {"role": "assistant", "content": text}, "finish_reason": finish}]}
