"""The client of an OpenAI-compatible server, built for one event loop."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from crag.servers import NO_KEY, is_loopback
from crag.settings import Endpoint, Settings

if TYPE_CHECKING:  # a second of imports that a run without a model does not need
    from langchain_core.language_models.chat_models import BaseChatModel


class Client(NamedTuple):
    """A chat model and what closes its connections."""

    model: "BaseChatModel"
    close: Callable[[], Awaitable[None]] | None = None


async def close(client: Client) -> None:
    """Close the connections of a client that has any of its own."""
    if client.close:
        await client.close()


def openai_client(endpoint: Endpoint, base_url: str, settings: Settings, *, stream: bool) -> Client:
    """A client without a network call; imports and certificates take a second, so build it in a thread."""
    import openai
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    # A system proxy cannot reach this machine's own servers.
    environment = not is_loopback(base_url)
    # Own clients: the library shares its own among all loops of a process, where they fail on the second.
    http = openai.DefaultAsyncHttpxClient(trust_env=environment, timeout=settings.timeout)
    model = ChatOpenAI(
        model=endpoint.model,
        base_url=base_url,
        api_key=endpoint.api_key or SecretStr(NO_KEY),
        timeout=settings.timeout,
        max_retries=settings.retries,
        stream_usage=True,
        disable_streaming=not stream,
        use_responses_api=False,
        openai_proxy="",
        http_async_client=http,
        http_client=openai.DefaultHttpxClient(trust_env=environment, timeout=settings.timeout),
    )
    return Client(model, http.aclose)
