"""LangSmith's tracing, as the environment asks for it: where it can work, and without a flood of failures."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

_LOGGER = "langsmith.client"


def without_key() -> str | None:
    """Why tracing that is switched on cannot work, or None: LangSmith's own server wants a key."""
    if not _asked_for() or _set("API_KEY") or _set("ENDPOINT"):
        return None
    return "LANGSMITH_TRACING is on without LANGSMITH_API_KEY: nothing was traced; set the key or unset it"


@contextmanager
def traced(*, wanted: bool) -> Iterator[None]:
    """Inside, runs are traced as the environment says, or not at all unless `wanted`."""
    if wanted or not _asked_for():
        yield
        return
    from langsmith.run_helpers import tracing_context

    with tracing_context(enabled=False):
        yield


def tell_once() -> None:
    """Let this process say only once that traces cannot be sent; the client says it for every batch."""
    logger = logging.getLogger(_LOGGER)
    if _once not in logger.filters:
        logger.addFilter(_once)


def _asked_for() -> bool:
    return any(_set(name) == "true" for name in ("TRACING_V2", "TRACING"))


def _set(name: str) -> str:
    values = (os.environ.get(f"{vendor}_{name}", "").strip() for vendor in ("LANGSMITH", "LANGCHAIN"))
    return next(filter(None, values), "")


class _Once(logging.Filter):
    """Lets the first failure pass, in words without the beginning of the key that the client shows."""

    told = False

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        first, self.told = not self.told, True
        record.msg, record.args = (
            "crag: warning: LangSmith refuses traces or cannot be reached; check LANGSMITH_API_KEY and "
            "LANGSMITH_ENDPOINT, or unset LANGSMITH_TRACING (the answer needs none of them)",
            (),
        )
        return first


_once = _Once()
