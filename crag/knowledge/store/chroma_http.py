"""A Chroma server: its client, which waits no longer than told, and what answers in a server's place."""

import base64
import ssl
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import SplitResult, unquote, urlsplit

from crag.aio.aside import within
from crag.base.errors import KnowledgeBaseError
from crag.base.http import bare_url, is_loopback
from crag.base.wording import first_line

if TYPE_CHECKING:
    from chromadb.api.client import Client

_REPLY_TIME = 10.0  # seconds for a server's first sign of life


def server_client(url: str, seconds: float, options: Any) -> "Client":
    """The client of the server at `url`, each of whose requests may take `seconds`, its whole reply included.

    User and password of the URL are sent. Raises KnowledgeBaseError, and TimeoutError for a server that
    begins to answer and never ends.
    """
    import chromadb
    import httpx

    parts = urlsplit(url if "//" in url else f"http://{url}")
    secure = parts.scheme == "https"
    headers = _login(parts)
    base = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    try:
        within(2 * _REPLY_TIME, lambda: _greet(base, headers))
        client: Any = within(
            min(seconds, 2 * _REPLY_TIME),
            lambda: chromadb.HttpClient(
                host=parts.hostname or "",
                port=parts.port or (443 if secure else 80),
                ssl=secure,
                headers=headers,
                settings=options,
            ),
        )
    except (TimeoutError, httpx.TimeoutException):
        raise _odd(url, "gave no whole reply in time; look at it and any proxy between") from None
    except httpx.HTTPStatusError as error:
        raise _odd(url, _refusal(error.response.status_code)) from None
    except (KeyError, TypeError):
        raise _odd(url, "is no Chroma server, or a damaged one; check CRAG_CHROMA_URL") from None
    except ValueError as error:  # an error of Chroma's own is none
        raise _odd(
            url, f"cannot be read ({first_line(error)}); check CRAG_CHROMA_URL and the server"
        ) from None
    except (FileNotFoundError, ssl.SSLError) as error:
        raise KnowledgeBaseError(
            f"the certificates cannot be read ({first_line(error)}); check SSL_CERT_FILE and SSL_CERT_DIR"
        ) from None
    except httpx.HTTPError as error:
        raise KnowledgeBaseError(
            f"no Chroma server answers at {bare_url(url)} ({first_line(error)}); "
            "start it (chroma run --path DIR) or unset CRAG_CHROMA_URL"
        ) from None
    _limit(client, seconds)
    return cast("Client", client)


def _login(parts: SplitResult) -> dict[str, str]:
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _greet(base: str, headers: dict[str, str]) -> None:
    """Ask whether it lives. Raises what httpx raises, ValueError, KeyError or TypeError for no Chroma."""
    import httpx

    # A system proxy cannot reach this machine's own servers.
    reply = httpx.get(
        f"{base}/api/v2/heartbeat", headers=headers, timeout=_REPLY_TIME, trust_env=not is_loopback(base)
    )
    reply.raise_for_status()
    reply.json()["nanosecond heartbeat"]


def _limit(client: Any, seconds: float) -> None:
    """Give each request of a client, which has no limit of its own, so many seconds."""
    session = client._server._session
    request = session.request
    session.request = lambda *given, **more: within(seconds, lambda: request(*given, **more))


def _odd(url: str, what: str) -> KnowledgeBaseError:
    return KnowledgeBaseError(f"what answers at {bare_url(url)} {what}")


def _refusal(status: int) -> str:
    if status in {401, 403}:
        return (
            f"refuses the login ({status}); set CRAG_CHROMA_URL to http://USER:PASSWORD@HOST:PORT with one "
            "that it takes"
        )
    if status in {404, 405, 410}:
        return f"is no Chroma server, or one older than 1.0 ({status}); check CRAG_CHROMA_URL or upgrade it"
    return f"failed ({status}); look at the server and any proxy between"
