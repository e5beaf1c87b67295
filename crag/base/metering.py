"""What a run spends and notices, collected where it happens and read where the node ends.

A node opens a `Meter`; whatever is awaited inside it (model calls, embeddings, searches) reports to
the meter of its own node, in parallel tasks and threads alike, because a context variable follows them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NotRequired

from pydantic import BaseModel
from typing_extensions import TypedDict


class Spent(TypedDict):
    """Calls, tokens and the begin and end (seconds, one clock per process) of one node run.

    A token count is None when a server did not report it. `retries` are requests beyond one for each model
    call, `cached_calls` calls that the cache answered; threads of older versions lack both.
    """

    node: str
    llm_calls: int
    input_tokens: int | None
    output_tokens: int | None
    embedding_calls: int
    web_calls: int
    cost_usd: float | None
    retries: NotRequired[int]
    cached_calls: NotRequired[int]
    began: float
    ended: float


class NodeUsage(BaseModel):
    """Calls and tokens; a token count is None when a server did not report it.

    `retries` are requests beyond one for each model call, `cached_calls` calls that the cache answered.
    """

    llm_calls: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    embedding_calls: int = 0
    web_calls: int = 0
    cost_usd: float | None = None
    retries: int = 0
    cached_calls: int = 0

    def count(self, more: "NodeUsage") -> None:
        """Add what another has counted; what one of them does not know of tokens is unknown."""
        self.llm_calls += more.llm_calls
        self.input_tokens = _add_known(self.input_tokens, more.input_tokens)
        self.output_tokens = _add_known(self.output_tokens, more.output_tokens)
        self.embedding_calls += more.embedding_calls
        self.web_calls += more.web_calls
        self.retries += more.retries
        self.cached_calls += more.cached_calls
        if more.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + more.cost_usd

    def counts(self) -> dict[str, Any]:
        """The eight counts by name."""
        return {name: getattr(self, name) for name in NodeUsage.model_fields}


class Meter(NodeUsage):
    """Collects one node's spending and warnings.

    `asked` names the prompts that it has sent, `reply_id` the reply that was streamed as the answer.
    """

    warnings: list[str] = []
    asked: set[str] = set()
    reply_id: str | None = None

    def llm(
        self,
        input_tokens: int | None,
        output_tokens: int | None,
        cost_usd: float | None = None,
    ) -> None:
        """Count one model call; a failed or unreported one makes the token total unknown."""
        self.count(
            NodeUsage(llm_calls=1, input_tokens=input_tokens, output_tokens=output_tokens, cost_usd=cost_usd)
        )

    def add(self, other: "Meter") -> None:
        """Count what another meter counted, its warnings included."""
        self.count(other)
        for warning in other.warnings:
            self.warn(warning)

    def warn(self, message: str) -> None:
        """Note something the reader of the answer should know, once."""
        if message not in self.warnings:
            self.warnings.append(message)


def _add_known(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more


_current: ContextVar[Meter | None] = ContextVar("crag_meter", default=None)


def meter() -> Meter:
    """The meter of the node that is running, or one that nobody reads outside a run."""
    return _current.get() or Meter()


@contextmanager
def metered() -> Iterator[Meter]:
    """Open a meter for the current task and everything it awaits."""
    fresh = Meter()
    token = _current.set(fresh)
    try:
        yield fresh
    finally:
        _current.reset(token)
