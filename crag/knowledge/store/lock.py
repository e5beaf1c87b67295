"""One writer at a time: several writers on one folder lose vectors silently."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from crag.base.errors import KnowledgeBaseError
from crag.knowledge.store.chroma import HOLDER, LOCK
from crag.settings.settings import Settings


@contextmanager
def alone(settings: Settings, notify: Callable[[str], None], wait: float) -> Iterator[None]:
    """Keep every other writer out of an embedded folder; a Chroma server takes several writers by itself.

    `notify` is told of a wait. Raises KnowledgeBaseError when another one is at work after `wait` seconds.
    """
    if settings.chroma_url:
        yield
        return
    from filelock import FileLock, Timeout

    folder = settings.kb.absolute()
    lock = FileLock(folder / LOCK)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            notify(
                f"another process{_holder(folder)} is writing to {folder}; waiting up to {wait:.0f} s for it"
            )
            lock.acquire(timeout=wait)
        (folder / HOLDER).write_text(f"process {os.getpid()}, since {time.strftime('%H:%M:%S')}", "utf-8")
    except Timeout:
        raise KnowledgeBaseError(
            f"the knowledge base at {folder} is busy: another ingest{_holder(folder)} is writing; "
            "run again when it is done"
        ) from None
    except OSError as error:
        raise KnowledgeBaseError(
            f"the folder {folder} cannot be written ({error.strerror}); choose another with --kb DIR"
        ) from None
    try:
        yield
    finally:
        with suppress(OSError):
            (folder / HOLDER).unlink()
        lock.release()


def _holder(folder: Path) -> str:
    """Which process holds the lock, as it said itself."""
    with suppress(OSError, UnicodeDecodeError):
        return f" ({(folder / HOLDER).read_text('utf-8')})"
    return ""
