"""The one layer that tries a call again: what is worth it, after how long, and when to give up."""

import random

from crag.base.errors import ModelError
from crag.models.errors import is_lost_connection

FIRST_PAUSE = 0.5
"""Seconds before the second try where the server names none; they double with each further one."""


def pause(error: Exception, failure: ModelError, *, retries: int, tried: int, left: float) -> float | None:
    """Seconds to wait before a call is tried again, or None where it is not.

    A rate limit, a server's own failure and a connection that came to nothing may pass. A call that ran out
    of time is not repeated: it would take as long again. `tried` counts the tries there were, `left` the
    seconds that tries and pauses may still take; a server that asks for a longer pause is not waited for.
    """
    may_pass = failure.passing if hasattr(error, "status_code") else is_lost_connection(error)
    if not may_pass or tried > retries:
        return None
    wait = FIRST_PAUSE * 2 ** (tried - 1) if failure.wait is None else failure.wait
    # Calls that were turned away together must not come back together.
    wait *= 1 + random.random() / 4
    return wait if wait < left else None
