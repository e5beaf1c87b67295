"""OpenAI's chat completions: what a client sends → a question, an answer → what the client expects."""

import json
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from pydantic import BaseModel, ConfigDict

from crag.base.answer import Answer
from crag.base.errors import SettingsError
from crag.base.interfaces import Turn
from crag.serving.asking import Question


class Said(BaseModel):
    """One message; its content is text or parts."""

    model_config = ConfigDict(extra="allow")
    role: str
    content: str | list[dict[str, Any]] | None = None

    def text(self) -> str:
        """What was said, in words."""
        if isinstance(self.content, list):
            return "\n".join(str(part["text"]) for part in self.content if part.get("type") == "text")
        return self.content or ""


class Completion(BaseModel):
    """The body of a request; temperature and the like are the settings' business and passed over."""

    model_config = ConfigDict(extra="allow")
    model: str
    messages: list[Said]
    stream: bool = False
    stream_options: dict[str, Any] | None = None
    n: int | None = 1


def question_of(body: Completion) -> Question:
    """The last message of the user, after the turns before it. Raises SettingsError where there is none."""
    if body.n not in {None, 1}:
        raise SettingsError("n must be 1; there is one answer to a question")
    turns: list[Turn] = []
    asked: str | None = None
    for message in body.messages:
        if message.role == "user":
            asked = message.text()
        elif message.role == "assistant" and asked is not None:
            turns.append(Turn(question=asked, answer=message.text().partition(SOURCES)[0]))
            asked = None
    if asked is None:
        raise SettingsError("messages must end with one of the user")
    return Question(asked, body.model, history=turns)


SOURCES = "\n\n---\n"


def sources(answer: Answer) -> str:
    """The sources as text, for clients that show nothing else."""
    lines = [
        f"[{s.n}] {s.title or s.source}" + (f" · {s.source}" if s.title and s.source else "")
        for s in answer.sources
    ]
    return SOURCES + "\n".join(lines) if lines else ""


def completion(answer: Answer, body: Completion) -> dict[str, Any]:
    """The reply in one piece."""
    message = {
        "role": "assistant",
        "content": answer.answer + sources(answer),
        "refusal": None,
        "annotations": _annotations(answer),
    }
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return _head(body, "chat.completion") | {"choices": [choice], "usage": _usage(answer)}


async def chunks(told: AsyncIterator[Any], body: Completion) -> AsyncIterator[str]:
    """The reply as server-sent events, with usage at the end where it is wanted."""
    head = _head(body, "chat.completion.chunk")

    def sent(delta: dict[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return f"data: {json.dumps(head | {'choices': [choice]})}\n\n"

    begun = False
    async with aclosing(told):  # type: ignore[type-var]
        async for event in told:
            if not begun:
                begun = True
                yield sent({"role": "assistant", "content": ""})
            if isinstance(event, str):
                yield sent({"content": event})
            elif isinstance(event, Answer):
                yield sent({"content": sources(event), "annotations": _annotations(event)})
                yield sent({}, "stop")
                if (body.stream_options or {}).get("include_usage"):
                    yield f"data: {json.dumps(head | {'choices': [], 'usage': _usage(event)})}\n\n"
    yield "data: [DONE]\n\n"


def _head(body: Completion, kind: str) -> dict[str, Any]:
    name = f"chatcmpl-{uuid.uuid4().hex}"
    return {"id": name, "object": kind, "created": int(time.time()), "model": body.model}


def _usage(answer: Answer) -> dict[str, int]:
    """Tokens; the protocol has no way to say unknown, which is 0 here and null in /ask."""
    given, written = answer.usage.input_tokens or 0, answer.usage.output_tokens or 0
    return {"prompt_tokens": given, "completion_tokens": written, "total_tokens": given + written}


def _annotations(answer: Answer) -> list[dict[str, Any]]:
    """Every place where a source is cited, by characters of the answer."""
    found = []
    for source in answer.sources:
        mark, at = f"[{source.n}]", -1
        while (at := answer.answer.find(mark, at + 1)) >= 0:
            cited: dict[str, Any] = {"start_index": at, "end_index": at + len(mark)}
            cited |= {"title": source.title or source.source, "url": source.source}
            found.append({"type": "url_citation", "url_citation": cited})
    return found
