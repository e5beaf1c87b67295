"""What one question may spend: calls and dollars are reserved before each request, so that none goes beyond.

Requests that run side by side draw on one allowance. Until the answer has been asked for, the last call is
kept for it: an answer from what has been judged so far is worth more than one more judgement.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from crag.base.errors import CeilingError
from crag.base.metering import meter
from crag.settings.settings import Settings

WRITTEN, KEPT = 100, 500
"""Tokens that a reply is taken to be until its server counts them, and that are kept for the answer."""

_RUNS = 4096
"""Runs of graphs whose allowance is remembered at once."""


class Ceiling(NamedTuple):
    """What a question may cost: requests to models, dollars (None: no limit); prices a million tokens."""

    calls: int | None
    cost_usd: float | None
    price_input: float
    price_output: float
    context_tokens: int


def ceiling_of(settings: Settings) -> Ceiling | None:
    """The ceiling that the settings name, None without one."""
    if settings.max_llm_calls is None and settings.max_cost_usd is None:
        return None
    return Ceiling(
        settings.max_llm_calls,
        settings.max_cost_usd,
        settings.price_input or 0.0,
        settings.price_output or 0.0,
        settings.context_tokens,
    )


class Allowance:
    """What is left of a ceiling for one question."""

    def __init__(self, ceiling: Ceiling) -> None:
        self._ceiling = ceiling
        self._calls = 0
        self._cost = 0.0
        self._shown = 0  # tokens of prompts so far, about what the answer's prompt will hold
        self._asked = False
        self.reached: str | None = None
        """The limit that a request was refused for, once one was."""
        self.told = False

    def reserve(self, prompt_tokens: int, *, answer: bool) -> float:
        """Dollars set aside for a request, to be given to `settle`. Raises CeilingError."""
        ceiling = self._ceiling
        self._shown = min(self._shown + prompt_tokens, ceiling.context_tokens)
        kept = not (answer or self._asked)
        if ceiling.calls is not None and self._calls + 1 + kept > ceiling.calls:
            raise self._refusal(f"{ceiling.calls} model calls", "CRAG_MAX_LLM_CALLS")
        cost = self._dollars(prompt_tokens, WRITTEN)
        for_answer = self._dollars(self._shown, KEPT) if kept else 0.0
        if ceiling.cost_usd is not None and self._cost + cost + for_answer > ceiling.cost_usd:
            raise self._refusal(f"${ceiling.cost_usd:g}", "CRAG_MAX_COST_USD")
        self._calls += 1
        self._cost += cost
        self._asked = self._asked or answer
        return cost

    def settle(self, reserved: float, cost_usd: float | None) -> None:
        """Replace what was set aside by what a request cost, where that is known."""
        if cost_usd is not None:
            self._cost += cost_usd - reserved

    def _dollars(self, read: int, written: int) -> float:
        return (read * self._ceiling.price_input + written * self._ceiling.price_output) / 1_000_000

    def _refusal(self, limit: str, setting: str) -> CeilingError:
        self.reached = limit
        meter().warn(f"stopped at the ceiling of {limit} for a question ({setting})")
        return CeilingError(f"stopped at the ceiling of {limit} ({setting})")


_current: ContextVar[Allowance | None] = ContextVar("crag_allowance", default=None)
_runs: "OrderedDict[object, Allowance]" = OrderedDict()


def allowance() -> Allowance | None:
    """The allowance of the question that is being answered, if it has a ceiling."""
    return _current.get()


def of_run(run: object, ceiling: Ceiling, *, first: bool) -> Allowance:
    """The allowance of a graph's run, new at its `first` step; `run` is one object all the run through."""
    known = None if first else _runs.get(run)
    if known is None:
        known = _runs[run] = Allowance(ceiling)
        if len(_runs) > _RUNS:
            _runs.popitem(last=False)
    return known


@contextmanager
def within(given: Allowance | None) -> Iterator[None]:
    """Let everything that is awaited inside draw on an allowance."""
    token = _current.set(given)
    try:
        yield
    finally:
        _current.reset(token)
