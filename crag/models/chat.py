"""Chat models: one way to call them, whatever the vendor, loop or thread.

Vendors' errors become ModelError here, every call is metered, and thoughts never leave this room.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, Self

from langchain_core.messages import AIMessage, BaseMessage

from crag.aio.loops import Slots
from crag.base.errors import CeilingError, ModelError
from crag.base.http import OPENAI_URL, host_of
from crag.base.language import readable
from crag.base.metering import meter
from crag.base.redaction import remember
from crag.models.allowance import allowance
from crag.models.cache import ReplyCache
from crag.models.client import OpenAIClient
from crag.models.errors import model_error, pause
from crag.models.reply import is_used_up, is_whole, length, text_of, tokens, used_up, warn_of_window
from crag.models.request import THOUGHTS, Request
from crag.settings.endpoints import Endpoint, Names, Role
from crag.settings.settings import Settings

if TYPE_CHECKING:  # a second of imports that a run without a model does not need
    from langchain_core.language_models.chat_models import BaseChatModel

_slots = Slots()

LONGEST_STREAM = 5
"""How many times `settings.timeout` an answer may take that is still being written."""

LEAST_CAP, TIMES = 4096, 4
"""Tokens of the second try where thinking used a reply up: so many, or so many times what was used."""


def chat_model(endpoint: Endpoint, *, role: Role, settings: Settings, stream: bool = False) -> "ChatModel":
    """The model behind an endpoint, for a role. Nothing is imported or connected before the first call.

    `stream` makes the reply visible to LangGraph's stream_mode="messages"; it is for the model that answers.
    """
    base_url = endpoint.base_url or OPENAI_URL
    return ChatModel(
        OpenAIClient(endpoint, base_url, settings, stream=stream),
        name=endpoint.model,
        host=host_of(base_url),
        role=role,
        settings=settings,
        stream=stream,
        temperature=settings.temperature,
        retries=settings.retries,
        cache=ReplyCache(settings.cache) if settings.cache else None,
        address=base_url,
        secrets=[endpoint.api_key.get_secret_value()] if endpoint.api_key else [],
        compatible=base_url != OPENAI_URL,
        names=endpoint.names,
    )


class ChatModel:
    """An `interfaces.Chat`: messages in, text without thoughts out; raises ModelError.

    At most `settings.concurrency` calls run at once, all ChatModels of an event loop together. A model
    belongs to the loop of its first call, so `connect` gives the one of the running loop.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable["BaseChatModel"]],
        *,
        name: str,
        host: str,
        role: Role,
        settings: Settings,
        stream: bool = False,
        temperature: float | None = None,
        retries: int = 0,
        cache: ReplyCache | None = None,
        address: str = "",
        secrets: Iterable[str] = (),
        compatible: bool = False,
        names: Names | None = None,
    ) -> None:
        self.name = name
        self._connect = connect
        self._host = host
        self._role: Role = role
        self._settings = settings
        self._stream = stream
        self._temperature = temperature
        self._request = Request(host, name, stream, temperature, compatible)
        self._retries = retries
        self._cache = cache
        self._address = address
        self._secrets = list(secrets)
        remember(self._secrets)
        self._names = names

    @classmethod
    def wrap(
        cls, model: "BaseChatModel", *, role: Role = "generator", settings: Settings, stream: bool = False
    ) -> Self:
        """A ChatModel around any LangChain chat model, called with the settings it was made with.

        Retries and a cache are its own, too: nobody else knows all that its replies depend on.
        """
        name = getattr(model, "model_name", None) or getattr(model, "model", None) or type(model).__name__

        async def connect() -> "BaseChatModel":
            return model

        return cls(
            connect,
            name=str(name),
            host=type(model).__name__,
            role=role,
            settings=settings,
            stream=stream,
            names=Names("the model you brought", "its address", "its key"),
        )

    async def __call__(self, messages: list[BaseMessage]) -> str:
        """The reply's text, possibly empty. Raises ModelError."""
        known = await self._cached(messages)
        if known is not None:
            meter().cached_calls += 1
            return await self._replayed(messages, known)
        async with await _slots.of(self._settings.concurrency):
            reply = await self._metered(messages)
            if is_used_up(reply):
                reply = await self._metered(messages, cap=max(LEAST_CAP, TIMES * (tokens(reply)[1] or 0)))
        text = self._text(reply)
        if self._stream:
            meter().reply_id = reply.id
        if self._cache and text and is_whole(reply):
            await self._cache.keep(messages, self._identity(), text)
        return text

    async def _cached(self, messages: list[BaseMessage]) -> str | None:
        if not self._cache:
            return None
        key = self._cache.key(messages, self._identity())
        asked_again = key in meter().asked
        meter().asked.add(key)
        # Who asks again had no use for the first reply.
        return None if asked_again else await self._cache.reply(messages, self._identity())

    def _identity(self) -> str:
        """What a reply depends on beside the messages."""
        return json.dumps([self._address, self.name, self._temperature])

    async def _replayed(self, messages: list[BaseMessage], text: str) -> str:
        """A known reply, shown to whoever follows the stream of messages as a new one would be."""
        if self._stream:
            from langchain_core.language_models import FakeMessagesListChatModel

            replay = FakeMessagesListChatModel(responses=[AIMessage(text)])
            # It was cleaned before it was kept.
            shown = await replay.ainvoke(messages, {"metadata": {THOUGHTS: "apart"}})
            meter().reply_id = shown.id
        return text

    async def _metered(self, messages: list[BaseMessage], *, cap: int | None = None) -> BaseMessage:
        """The reply of one call with its further tries, counted."""
        began = time.monotonic()
        failure: ModelError | None = None
        for tried in count(1):
            try:
                reply = await self._allowed(messages, cap, again=tried > 1)
            except CeilingError:
                if failure:
                    meter().llm(None, None)
                    meter().warn(str(failure))
                raise
            except Exception as error:  # noqa: BLE001 - each vendor raises its own; all become one of ours
                failure = self._error(used_up() if cap else error)
                left = self._settings.timeout - (time.monotonic() - began)
                wait = pause(error, failure, retries=self._retries, tried=tried, left=left)
                if wait is None:
                    meter().llm(None, None)
                    # A vendor's traceback may echo the request with its key.
                    raise failure from None
                await asyncio.sleep(wait)
            else:
                meter().llm(*tokens(reply), self._price(reply))
                warn_of_window(messages, reply, name=self.name)
                return reply
        raise AssertionError

    async def _allowed(self, messages: list[BaseMessage], cap: int | None, *, again: bool) -> BaseMessage:
        """The reply to one request, within the question's allowance and the time a request may take."""
        model = await self._connect()
        allowed = allowance()
        reserved = allowed.reserve(length(messages), answer=self._stream) if allowed else 0.0
        meter().retries += again
        async with asyncio.timeout(self._longest()):
            reply = await self._request.send(model, messages, cap)
        if not isinstance(reply, BaseMessage):
            raise ModelError(f"it returned {type(reply).__name__} instead of a message; bring a chat model")
        if allowed:
            allowed.settle(reserved, self._price(reply))
        return reply

    def _longest(self) -> float:
        """Seconds until a request must have ended, even if its server keeps sending a little."""
        # The pieces of an answer that is being written are each within the connection's own limit.
        return self._settings.timeout * (LONGEST_STREAM if self._stream else 1)

    def _price(self, reply: BaseMessage) -> float | None:
        """Dollars, None where a count or a price is unknown."""
        read, written = tokens(reply)
        prices = self._settings.price_input, self._settings.price_output
        if read is None or written is None or prices[0] is None or prices[1] is None:
            return None
        return (read * prices[0] + written * prices[1]) / 1_000_000

    def _text(self, reply: BaseMessage) -> str:
        try:
            text = text_of(reply, role=self._role, name=self.name)
        except ModelError as error:
            raise self._error(error) from None
        self._request.learn(readable(str(reply.text)))
        return text

    def _error(self, error: Exception) -> ModelError:
        return model_error(
            error,
            role=self._role,
            model=self.name,
            host=self._host,
            timeout=self._longest() if type(error) is TimeoutError else self._settings.timeout,
            secrets=self._secrets,
            names=self._names,
        )


class Chats(NamedTuple):
    """The chat models by role; None where no model has it. The `helper` does what is not streamed."""

    generator: ChatModel | None
    helper: ChatModel | None
    grader: ChatModel | None
    checker: ChatModel | None
    same_checker: bool


def chats_of(settings: Settings, model: "BaseChatModel | None", *, grades: bool) -> Chats:
    """The chat models that the settings name, or the caller's `model` in every role.

    One grades where the settings ask for it, or leave it open and a model is there, unless the caller's own
    grader does (`grades` False).
    """

    answers, judges, checks = (settings.endpoint(role) for role in ("generator", "grader", "checker"))

    def chat(role: Role, endpoint: Endpoint | None, *, stream: bool = False) -> ChatModel | None:
        if model is not None:
            return ChatModel.wrap(model, role=role, settings=settings, stream=stream)
        return chat_model(endpoint, role=role, settings=settings, stream=stream) if endpoint else None

    named = settings.evaluator == "llm" or model is not None or judges is not None
    return Chats(
        generator=chat("generator", answers, stream=True),
        helper=chat("generator", answers),
        grader=chat("grader", judges) if grades and named and settings.evaluator != "embedded" else None,
        checker=chat("checker", checks),
        same_checker=model is not None
        or (checks is not None and answers is not None and checks[:3] == answers[:3]),
    )
