"""Chroma: one client for the folder or server the settings name, shared by all of this process."""

import base64
import os
import shutil
import ssl
import tempfile
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import SplitResult, unquote, urlsplit

from crag.aio.calls import within
from crag.base.errors import KnowledgeBaseError
from crag.base.http import bare_url, is_loopback
from crag.base.wording import first_line
from crag.knowledge.store.errors import missing, place, translated
from crag.settings.complaints import quiet_parser
from crag.settings.settings import Settings

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


LEXICAL, LOCK, HOLDER = "lexical", ".writing.lock", ".writing.by"
"""What stands in the folder beside Chroma's own files: the lexical index, the lock and who holds it."""

_DATABASE = "chroma.sqlite3"
_NOT_CHROMA = frozenset({LEXICAL, LOCK, HOLDER})


class Connection:
    """One client for one place, shared by all who use it in this process.

    Chroma keeps a folder's index in memory and does not notice what other processes write. Whoever
    notices a change calls `renew`, and everybody asks for the collection again when `generation` moved.
    Hold `lock` while using the client: `renew` closes it.
    """

    def __init__(self, settings: Settings, *, create: bool) -> None:
        self._settings = settings
        self.lock = threading.RLock()
        self.generation = 0
        self._open(create=create)

    def _open(self, *, create: bool) -> None:
        self._discard_copy: Callable[[], object] | None = None
        with quiet_parser():
            self.client, copy = _client(self._settings, create=create)
        if copy:
            self._discard_copy = weakref.finalize(self, shutil.rmtree, copy, ignore_errors=True)
        self._state = _state(self._settings, copied=bool(copy))
        self._seen: dict[str, str] = {}
        self._fresh = True

    def renew(self, *, create: bool = False) -> None:
        """Open the folder again, to see what another process wrote."""
        with self.lock:
            self.client.close()
            if self._discard_copy:
                self._discard_copy()
            self._open(create=create)
            self.generation += 1

    def check(self, *, create: bool) -> None:
        """Notice that the folder was deleted or replaced since it was opened, or changed since copied."""
        if not self._settings.chroma_url:
            _same_process()
        with self.lock:
            if _state(self._settings, copied=bool(self._discard_copy)) != self._state:
                self.renew(create=create)

    def changed(self, collection: str, marker: str) -> None:
        """Take note of what a collection says about its state; a folder not seen in that state is renewed."""
        with self.lock:
            stale = self._seen.get(collection) != marker and not (
                self._fresh and collection not in self._seen
            )
            if stale and self._settings.chroma_url is None:
                self.renew()
            self._seen[collection] = marker
            self._fresh = False

    def written(self) -> None:
        """Take note that this process is about to write: what is in memory is no longer as opened."""
        self._fresh = False


_connections: dict[str, Connection] = {}
_connecting = threading.Lock()


def connect(settings: Settings, *, create: bool) -> Connection:
    """The connection to a place; with `create` a folder is made, without it a missing one is an error.

    A folder that cannot be written is opened as a temporary copy, because Chroma writes when it opens.
    Raises KnowledgeBaseError.
    """
    with _connecting, translated(settings):
        where = place(settings)
        if where in _connections:
            _connections[where].check(create=create)
        else:
            _connections[where] = Connection(settings, create=create)
        return _connections[where]


def _client(settings: Settings, *, create: bool) -> "tuple[Client, Path | None]":
    """The client and, where the folder may not be written, the copy of it that the client works on."""
    if settings.chroma_url:
        return server_client(settings.chroma_url, settings.timeout, _options()), None
    folder = settings.kb.absolute()
    if create:
        folder.mkdir(parents=True, exist_ok=True)
    elif not (folder / _DATABASE).is_file():
        raise missing(settings)
    if os.access(folder, os.W_OK) and (
        not (folder / _DATABASE).exists() or os.access(folder / _DATABASE, os.W_OK)
    ):
        return _persistent(folder), None
    if create:
        raise KnowledgeBaseError(f"the folder {folder} is read-only; choose another with --kb DIR")
    copy = _copy(folder)
    return _persistent(copy), copy


def _state(settings: Settings, *, copied: bool) -> tuple[int, ...]:
    """What tells that another database stands in the folder; of a copy also that its original changed."""
    if settings.chroma_url:
        return ()
    try:
        found = (settings.kb.absolute() / _DATABASE).stat()
    except OSError:
        return ()
    return (found.st_ino, found.st_mtime_ns, found.st_size) if copied else (found.st_ino,)


def _options() -> Any:
    from chromadb.config import Settings as ChromaSettings

    return ChromaSettings(anonymized_telemetry=False)


def _copy(folder: Path) -> Path:
    """A temporary copy that may be written and removed, whatever the original's permissions."""
    copy = Path(tempfile.mkdtemp(prefix="crag-kb-"))
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if inside.parts[0] in _NOT_CHROMA:
            continue
        if path.is_dir():
            (copy / inside).mkdir()
        else:
            shutil.copyfile(path, copy / inside)
    return copy


_opened_by: set[int] = set()
"""The process that has opened a folder, also in those forked from it."""


def _same_process() -> None:
    """Raise KnowledgeBaseError in a forked process, where Chroma would wait for threads that are gone."""
    if not _opened_by:
        _opened_by.add(os.getpid())
    if os.getpid() not in _opened_by:
        raise KnowledgeBaseError(
            "this process was forked from one that had opened a knowledge base; Chroma cannot go on in it: "
            "start workers by spawn, or ask for the first time after the fork"
        )


def _persistent(folder: Path) -> "Client":
    import chromadb

    _same_process()

    client: Client = chromadb.PersistentClient(str(folder), settings=_options())  # type: ignore[assignment]
    return client
