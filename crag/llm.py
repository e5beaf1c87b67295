"""Chat models: one way to call them, whatever the vendor, loop or thread.

Vendors' errors become ModelError here, every call is metered, and thoughts never leave this room.
"""

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, Self

from langchain_core.messages import AIMessage, BaseMessage

from crag.allowance import allowance
from crag.budget import count_tokens
from crag.endpoints import Endpoint, Names, Role
from crag.errors import CeilingError, ModelError
from crag.language import readable
from crag.llm_client import OpenAIClient
from crag.llm_errors import model_error, refused_parameter
from crag.llm_retry import pause
from crag.llm_shape import UNFINISHED, WITHHELD
from crag.loops import PerLoop
from crag.metering import meter
from crag.redaction import remember
from crag.reply_cache import ReplyCache
from crag.servers import OPENAI_URL, host_of
from crag.settings import Settings
from crag.thinking import begins_in_thought, strip_thinking

if TYPE_CHECKING:  # a second of imports that a run without a model does not need
    from langchain_core.language_models.chat_models import BaseChatModel

NOSTREAM = "nostream"
"""LangGraph's tag for model calls that stream_mode="messages" leaves out."""

# By limit, because two Settings of one process may differ.
_slots: PerLoop[dict[int, asyncio.Semaphore]] = PerLoop(dict)
_refused: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
"""Optional parameters that a server's model does not take, by host and model."""

THOUGHTS = "crag_thoughts"
"""The name in a streamed call's metadata under which a `Thoughts` says how careful a stream must be."""
Thoughts = Literal["apart", "mixed", "unknown"]
"""Whether a model's thoughts come with tags or not at all, or are known to come without an opening tag."""
_thoughts: dict[tuple[str, str], Thoughts] = {}

LEAST_WINDOW = 512
"""Tokens read below which a count is no window: servers that count nothing say 0 or 1."""

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
        self._compatible = compatible
        self._connect = connect
        self._host = host
        self._role: Role = role
        self._settings = settings
        self._stream = stream
        self._temperature = temperature
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
        slots = await _slots.get()
        limit = self._settings.concurrency
        async with slots.setdefault(limit, asyncio.Semaphore(limit)):
            reply = await self._metered(messages)
            if _is_used_up(reply):
                reply = await self._metered(messages, cap=max(LEAST_CAP, TIMES * (_tokens(reply)[1] or 0)))
        text = self._text(reply)
        if (
            self._cache
            and text
            and reply.response_metadata.get("finish_reason") not in {"length", UNFINISHED}
        ):
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
            await replay.ainvoke(messages, {"metadata": {THOUGHTS: "apart"}})
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
                failure = self._error(_used_up() if cap else error)
                left = self._settings.timeout - (time.monotonic() - began)
                wait = pause(error, failure, retries=self._retries, tried=tried, left=left)
                if wait is None:
                    meter().llm(None, None)
                    # A vendor's traceback may echo the request with its key.
                    raise failure from None
                await asyncio.sleep(wait)
            else:
                self._count(reply)
                self._warn_of_window(messages, reply)
                return reply
        raise AssertionError

    def _warn_of_window(self, messages: list[BaseMessage], reply: BaseMessage) -> None:
        """Ollama cuts long prompts without a word; only the count of what it read tells."""
        read = _tokens(reply)[0]
        if read is None or read < LEAST_WINDOW:
            return
        sent = _length(messages)
        # The estimate is up to a third too high; a count that is a window's very size leaves less doubt.
        if sent > read * (1.1 if read % 1024 == 0 else 1.5):
            meter().warn(
                f"{self.name} read {read} of about {sent} prompt tokens: raise its window, num_ctx "
                "(Ollama: OLLAMA_CONTEXT_LENGTH) or lower CRAG_CONTEXT_TOKENS"
            )

    async def _allowed(self, messages: list[BaseMessage], cap: int | None, *, again: bool) -> BaseMessage:
        """The reply to one request, within the question's allowance and the time a request may take."""
        model = await self._connect()
        allowed = allowance()
        reserved = allowed.reserve(_length(messages), answer=self._stream) if allowed else 0.0
        meter().retries += again
        async with asyncio.timeout(self._longest()):
            reply = await self._invoke(model, messages, cap)
        if not isinstance(reply, BaseMessage):
            raise ModelError(f"it returned {type(reply).__name__} instead of a message; bring a chat model")
        if allowed:
            allowed.settle(reserved, self._price(reply))
        return reply

    def _longest(self) -> float:
        """Seconds until a request must have ended, even if its server keeps sending a little."""
        # The pieces of an answer that is being written are each within the connection's own limit.
        return self._settings.timeout * (LONGEST_STREAM if self._stream else 1)

    async def _invoke(
        self, model: "BaseChatModel", messages: list[BaseMessage], cap: int | None
    ) -> BaseMessage:
        config: Any = {"metadata": {THOUGHTS: self._caution()}} if self._stream else {"tags": [NOSTREAM]}
        refused = _refused[self._host, self.name]
        while True:
            # Calls side by side learn of a refusal together.
            without = frozenset(refused)
            try:
                return await model.ainvoke(messages, config, **self._options(without, cap))
            except Exception as error:
                parameter = refused_parameter(error)
                if parameter is None or parameter in without:
                    raise
                refused.add(parameter)

    def _options(self, refused: frozenset[str], cap: int | None) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if self._temperature is not None and "temperature" not in refused:
            options["temperature"] = self._temperature
        if self._stream and "stream" in refused:
            options["stream"] = False
        elif self._stream and "stream_options" in refused:
            options["stream_usage"] = False
        if cap and "max_tokens" in refused:
            options["extra_body"] = {"max_completion_tokens": cap}
        elif cap:
            # The client renames it for OpenAI, whose name for it other servers do not know.
            options |= {"extra_body": {"max_tokens": cap}} if self._compatible else {"max_tokens": cap}
        return options

    def _count(self, reply: BaseMessage) -> None:
        meter().llm(*_tokens(reply), self._price(reply))

    def _price(self, reply: BaseMessage) -> float | None:
        """Dollars, None where a count or a price is unknown."""
        read, written = _tokens(reply)
        prices = self._settings.price_input, self._settings.price_output
        if read is None or written is None or prices[0] is None or prices[1] is None:
            return None
        return (read * prices[0] + written * prices[1]) / 1_000_000

    def _text(self, reply: BaseMessage) -> str:
        raw = readable(str(reply.text))
        text = strip_thinking(raw)
        if not any(char.isprintable() and not char.isspace() for char in text):
            text = ""
        finish = reply.response_metadata.get("finish_reason")
        if finish in WITHHELD:
            raise self._error(
                ModelError("its content filter withheld the reply; rephrase or use another model")
            )
        if finish == "length":
            if not text:
                raise self._error(_used_up())
            meter().warn(f"the {self._role} model {self.name} was cut off at its token limit")
        if finish == UNFINISHED and text:
            meter().warn(f"the stream of {self.name} ended without saying so; the answer may be cut off")
        self._learn(raw)
        return text

    def _caution(self) -> Thoughts:
        known = _thoughts.get((self._host, self.name), "unknown")
        return "apart" if self._host == host_of(OPENAI_URL) else known

    def _learn(self, raw: str) -> None:
        """Remember whether a reply held thoughts without an opening tag, which a stream cannot tell apart."""
        if begins_in_thought(raw):
            _thoughts[self._host, self.name] = "mixed"
            if self._stream:
                meter().warn(
                    f"{self.name} sends its thoughts without an opening tag, so its answers cannot be shown "
                    "while they are written; switch on the server's reasoning parser"
                )
        elif self._stream:
            # Only what streams proves it: a grader may be asked without thinking.
            _thoughts.setdefault((self._host, self.name), "apart")

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


def _is_used_up(reply: BaseMessage) -> bool:
    """Whether a reply ended at its token limit before it said anything but thoughts."""
    return reply.response_metadata.get("finish_reason") == "length" and not strip_thinking(str(reply.text))


def _used_up() -> ModelError:
    return ModelError("the reply was used up by thinking; raise the token limit or turn thinking off")


def _length(messages: list[BaseMessage]) -> int:
    """About how many tokens messages are."""
    return sum(count_tokens(str(message.text)) for message in messages)


def _tokens(reply: BaseMessage) -> tuple[int | None, int | None]:
    """Tokens read and written; None for what the server did not tell, or told as no count."""
    usage = getattr(reply, "usage_metadata", None) or {}
    told = reply.response_metadata.get("token_usage") or {}
    counts = []
    for name, server_name in (("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens")):
        count = usage.get(name)
        known = isinstance(count, int) and count >= 0 and told.get(server_name, count) is not None
        counts.append(count if known else None)
    return counts[0], counts[1]
