"""Blank memory for Chroma, whose index files hold whatever stood in the memory they are written from."""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_PERTURB = -6  # glibc's malloc.h: M_PERTURB
_ZEROS = 0xFF  # new memory is filled with the complement of this

_using = 0
_lock = threading.Lock()


@contextmanager
def blank_memory() -> Iterator[None]:
    """Memory that is handed out meanwhile, to any thread of the process, is filled with zeros.

    Chroma writes `data_level0.bin` as long as the passages it has room for, also when it only reads, and
    the room left is memory as it was found: pieces of requests, with their keys, may stand in a folder that
    is passed on. Only glibc (Linux) can be told, and not of pieces below 1 kB: `length.bin` of a small
    knowledge base keeps 400 bytes of what the index had there before. Elsewhere nothing changes.
    """
    _tell(1)
    try:
        yield
    finally:
        _tell(-1)


def _tell(change: int) -> None:
    global _using
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # another C library; Windows
        return
    with _lock:
        _using += change
        mallopt(_PERTURB, _ZEROS if _using else 0)
