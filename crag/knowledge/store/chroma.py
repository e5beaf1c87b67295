"""Chroma: one client for the folder or server the settings name, shared by all of this process."""

import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crag.base.errors import KnowledgeBaseError
from crag.knowledge.store.chroma_http import server_client
from crag.knowledge.store.errors import missing, place, translated
from crag.settings.complaints import quiet_parser
from crag.settings.settings import Settings

if TYPE_CHECKING:
    from chromadb.api.client import Client

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
