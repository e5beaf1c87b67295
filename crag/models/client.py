"""Clients of OpenAI-compatible servers. All of an event loop share the connections of one HTTP client."""

from typing import TYPE_CHECKING, Any

from crag.aio.loops import PerLoop
from crag.base.http import LARGEST_CHAT, NO_KEY, is_loopback, keep_to_server, limit_reply
from crag.settings.endpoints import Endpoint
from crag.settings.settings import Settings

if TYPE_CHECKING:  # a second of imports that a run without a model does not need
    from langchain_core.language_models.chat_models import BaseChatModel

CONNECT = 10.0
"""Seconds in which a server must take a connection, whatever time it may take for its reply."""


def _http(*, environment: bool) -> Any:
    import openai

    async def stay(response: Any) -> None:
        keep_to_server(response)
        limit_reply(response, LARGEST_CHAT)

    return openai.DefaultAsyncHttpxClient(trust_env=environment, event_hooks={"response": [stay]})


async def _close(http: Any) -> None:
    await http.aclose()


# The library shares its own among all loops of a process, where they fail on the second.
_REMOTE: PerLoop[Any] = PerLoop(lambda: _http(environment=True), _close)
_LOOPBACK: PerLoop[Any] = PerLoop(lambda: _http(environment=False), _close)


class OpenAIClient:
    """The LangChain model of an endpoint, one for each event loop, made at its first call there."""

    def __init__(self, endpoint: Endpoint, base_url: str, settings: Settings, *, stream: bool) -> None:
        self._endpoint = endpoint
        self._base_url = base_url
        self._settings = settings
        self._stream = stream
        # A system proxy cannot reach this machine's own servers.
        self._http = _LOOPBACK if is_loopback(base_url) else _REMOTE
        self._models: PerLoop[BaseChatModel] = PerLoop(self._build)

    async def __call__(self) -> "BaseChatModel":
        """The model of the running loop; imports and certificates take a second, so a thread makes it."""
        return await self._models.get(await self._http.get())

    def _build(self, http: Any) -> "BaseChatModel":
        import openai

        from crag.models.openai import LeanChatOpenAI
        from crag.models.shape import Completions

        timeout = self._settings.timeout
        key = self._endpoint.api_key.get_secret_value() if self._endpoint.api_key else NO_KEY

        async def api_key() -> str:
            return key

        model = LeanChatOpenAI(
            model=self._endpoint.model,
            base_url=self._base_url,
            api_key=api_key,  # an async one keeps the library from making a client for sync calls too
            timeout=openai.Timeout(timeout, connect=min(timeout, CONNECT)),
            stream_chunk_timeout=None,  # it writes to the log; `Pieces` have a limit of their own
            max_retries=0,  # `llm_retry` counts them
            stream_usage=True,
            disable_streaming=not self._stream,
            use_responses_api=False,
            openai_proxy="",
            http_async_client=http,
            http_socket_options=(),  # the client has its own transport
        )
        # A little later than the connection's own limit, which keep-alive comments put off.
        model.async_client = Completions(model.async_client, gap=1.1 * timeout + 0.1)
        return model
