"""One question to the judge: asked until it is answered or there is no more reason to hope."""

import asyncio
import time
from typing import TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel

from crag.aio.loops import Slots
from crag.base.errors import CragError, ModelError
from crag.base.metering import Meter, meter, metered
from crag.base.redaction import redact
from crag.models.chat import chat_model
from crag.settings.endpoints import Endpoint
from crag.settings.settings import Settings

from .reading import read_json

M = TypeVar("M", bound=BaseModel)
_AGAIN = "That was not the JSON asked for. Reply with the JSON object alone, without any other word."
_SHOWN = 60
_LONGEST_PAUSE = 30.0
_SLOW_START = 30.0  # seconds that a busy machine may take to import a client


class UnreadableError(CragError):
    """The judge answered, but not what it was asked for; asking again would not help."""


class Judgements:
    """Asks a judge for JSON. No reply format is requested, as many servers refuse one, and no length.

    A rate limit is waited out, by all calls together, for as long as `settings.timeout` seconds, but only
    once: a judge that stays away that long is given no more time until it answers. Other failures that may
    pass are tried again `settings.retries` times. Each try is metered.
    """

    def __init__(self, settings: Settings, endpoint: Endpoint) -> None:
        # Tries are repeated here, where they are counted.
        self._chat = chat_model(endpoint, role="judge", settings=settings.model_copy(update={"retries": 0}))
        self.secrets = [endpoint.api_key.get_secret_value()] if endpoint.api_key else []
        self._timeout = settings.timeout
        self._patience = 3 * settings.timeout + _SLOW_START
        self._retries = settings.retries
        self._slots = Slots()
        self._at_once = settings.concurrency
        self._not_before = 0.0
        self._patient = True

    async def ask(self, prompt: str, model: type[M]) -> M:
        """The reply as a `model`. Raises ModelError when none came, UnreadableError when it is none."""
        total = meter()
        with metered() as spent:
            try:
                return await self._ask([HumanMessage(prompt)], model, spent)
            finally:
                total.add(spent)

    async def _ask(self, messages: list[BaseMessage], model: type[M], spent: Meter) -> M:
        reply = await self._reply(messages, spent)
        read = read_json(reply, model)
        if read is None and not spent.warnings:
            reply = await self._reply([*messages, AIMessage(reply or "-"), HumanMessage(_AGAIN)], spent)
            read = read_json(reply, model)
        if read is not None:
            return read
        if spent.warnings:
            raise UnreadableError(
                "the judge's reply was cut off at its token limit; raise the server's limit"
            )
        excerpt = redact(reply, self.secrets)
        shown = excerpt if len(excerpt) <= _SHOWN else excerpt[:_SHOWN] + "…"
        raise UnreadableError(f'the judge did not reply with the JSON asked for: "{shown}"')

    async def _reply(self, messages: list[BaseMessage], spent: Meter) -> str:
        failures, waited = 0, 0.0
        while True:
            await asyncio.sleep(max(0.0, self._not_before - time.monotonic()))
            try:
                reply = await self._call(messages, spent)
            except ModelError as error:
                pause = min(error.wait if error.wait is not None else 0.5 * 2**failures, _LONGEST_PAUSE)
                failures += 1
                if error.limited:
                    waited += pause
                    if waited > self._timeout or not self._patient:
                        self._patient = False
                        raise
                    self._not_before = max(self._not_before, time.monotonic() + pause)
                elif not error.passing or failures > self._retries:
                    raise
                else:
                    await asyncio.sleep(pause)
            else:
                self._patient = True
                return reply

    async def _call(self, messages: list[BaseMessage], spent: Meter) -> str:
        async with await self._slots.of(self._at_once):
            with metered() as one:
                try:
                    # The client's own limit starts anew with every byte that arrives.
                    async with asyncio.timeout(self._patience):
                        return await self._chat(messages)
                except TimeoutError:
                    one.llm(None, None)
                    late = ModelError(
                        f"judge model {self._chat.name}: no reply within {3 * self._timeout:g} s"
                    )
                    late.passing = True
                    raise late from None
                except ModelError as error:
                    if error.limited:
                        one.input_tokens = one.output_tokens = 0  # turned away before a token was read
                    raise
                finally:
                    spent.add(one)
