"""What goes wrong with a knowledge base, as one line of ours: where it is, what happened, what to do."""

import errno
import os
import shlex
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from crag.base.errors import KnowledgeBaseError
from crag.base.http import bare_url
from crag.base.wording import first_line
from crag.settings.complaints import quiet_parser
from crag.settings.settings import Settings

_NOT_APPLIED = "failed to apply logs"
"""What Chroma says when its log cannot be applied: the disk is full, or an entry is beyond its limits."""
_PROBE = 2_000_000  # bytes


def place(settings: Settings) -> str:
    """Where the knowledge base is, in a person's words: the absolute folder, or the server's address."""
    return bare_url(settings.chroma_url) if settings.chroma_url else str(settings.kb.absolute())


def ingest_command(settings: Settings, paths: str = "PATH") -> str:
    """The command that fills this knowledge base."""
    if settings.chroma_url:
        address = shlex.quote(bare_url(settings.chroma_url))
        return f"CRAG_CHROMA_URL={address} python -m crag.ingest {paths}"
    return f"python -m crag.ingest {paths} --kb {shlex.quote(str(settings.kb))}"


def missing(settings: Settings, found: list[str] | None = None) -> KnowledgeBaseError:
    """The error for a knowledge base, or a collection in it, that is not there."""
    if found:
        return KnowledgeBaseError(
            f"no collection {settings.collection} at {place(settings)}, found: {', '.join(found)}; "
            f"set CRAG_COLLECTION or run: {ingest_command(settings)}"
        )
    return KnowledgeBaseError(f"no knowledge base at {place(settings)}; run: {ingest_command(settings)}")


class UnsettledError(KnowledgeBaseError):
    """A read that failed while another process may be writing; opened afresh the folder may be readable."""


@contextmanager
def translated(settings: Settings) -> Iterator[None]:
    """Turn what Chroma, SQLite, the disk and the network raise into KnowledgeBaseError, in one line."""
    import httpx

    try:
        with quiet_parser():  # chromadb reads .env for itself, again and again
            from chromadb.errors import ChromaError
    except RuntimeError as error:
        raise KnowledgeBaseError(
            f"Chroma cannot run here ({first_line(error)}); use a Python with SQLite 3.35 or newer, "
            "or a Chroma server by CRAG_CHROMA_URL"
        ) from None
    try:
        yield
    except (ChromaError, sqlite3.Error, OSError, httpx.HTTPError, RuntimeError, ValueError) as error:
        raise _explained(settings, error) from error


def _explained(settings: Settings, error: Exception) -> KnowledgeBaseError:
    text, where = first_line(error), place(settings)
    low = text.lower()
    if settings.chroma_url and isinstance(error, TimeoutError):
        return KnowledgeBaseError(
            f"the Chroma server at {where} gave no reply within {settings.timeout:g} s; look at it or raise "
            "CRAG_TIMEOUT"
        )
    if settings.chroma_url and ("unauthorized" in low or "forbidden" in low):
        return KnowledgeBaseError(
            f"the Chroma server at {where} refuses the login ({text}); set CRAG_CHROMA_URL to "
            "http://USER:PASSWORD@HOST:PORT with one that it takes"
        )
    if "locked" in low:
        return UnsettledError(
            f"the knowledge base at {where} is busy: another process is writing; try again when it is done"
        )
    trouble = _trouble(settings, error, text, where)
    if trouble:
        return KnowledgeBaseError(trouble)
    return UnsettledError(f"the knowledge base at {where} failed: {text}")


def _trouble(settings: Settings, error: Exception, text: str, where: str) -> str | None:
    low = text.lower()
    if _NOT_APPLIED in low and _has_room(settings):
        again = ingest_command(settings)
        return (
            f"the knowledge base at {where} is stuck ({text}): it was handed something that it cannot store, "
            f"and will take nothing more; there is room on the disk. Delete it and run: {again}"
        )
    if _NOT_APPLIED in low or _is_full(error, low):
        return (
            f"the knowledge base at {where} could not be written ({text}): the disk is full or failing; "
            "make room and run again"
        )
    if "malformed" in low or "not a database" in low or "no such table" in low:
        again = ingest_command(settings)
        return f"the knowledge base at {where} is damaged ({text}); delete it and run: {again}"
    if "readonly" in low or "read-only" in low or isinstance(error, PermissionError):
        return f"the knowledge base at {where} cannot be written ({text}); choose another with --kb DIR"
    if "dimension" in low:
        return (
            f"the knowledge base at {where} holds other embeddings ({text}); run: {ingest_command(settings)}"
        )
    return None


def _has_room(settings: Settings) -> bool:
    """Whether the folder takes what a store writes at once, and a file as large as the largest in it."""
    if settings.chroma_url:
        return False
    folder = settings.kb.absolute()
    try:
        largest = max((path.stat().st_size for path in folder.rglob("*") if path.is_file()), default=0)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_PROBE))
            file.seek(largest + _PROBE)
            file.write(b"\0")
            file.flush()
            os.fsync(file.fileno())
        return shutil.disk_usage(folder).free > _PROBE
    except OSError:
        return False


def _is_full(error: Exception, text: str) -> bool:
    return getattr(error, "errno", None) in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG} or any(
        said in text
        for said in (
            "no space left",
            "disk is full",
            "disk full",
            "file too large",
            "quota exceeded",
            "disk i/o",
        )
    )
