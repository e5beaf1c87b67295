"""Asks every question of every system, has the answers judged, and keeps each result when it is there."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crag.base.answer import Answer
from crag.base.errors import CragError
from crag.base.redaction import redact
from crag.pipeline import RunError, aask
from crag.settings.settings import Settings

from ..data.journal import Journal
from ..data.records import Row, Sample, Score
from .systems import System

if TYPE_CHECKING:
    from ..metrics import Judge

GIVE_UP = 10
"""Questions in a row that fail, after which no other is tried: something is wrong with all of them."""

OnProgress = Callable[[str], None]


class StoppedError(CragError):
    """The run ended before all was done; what was done is kept."""


@dataclass
class Run:
    """One benchmark in one process. `own` are parts of one's own for every question, as `aask` takes them.

    `max_cost` in US dollars counts everything in the journal, earlier parts of the run included.
    """

    samples: Sequence[Sample]
    systems: Sequence[System]
    settings: Mapping[str, Settings]
    journal: Journal
    judge: "Judge | None" = None
    max_cost: float | None = None
    at_once: int = 1
    own: dict[str, Any] = field(default_factory=dict)
    progress: OnProgress = lambda what: None

    def __post_init__(self) -> None:
        self._failures = 0
        self._stop: str | None = None
        self._lost = 0.0
        self._judged_at_once = max(s.concurrency for s in self.settings.values())

    async def finish(self) -> None:
        """Do all that is still to do. Raises StoppedError when that is not possible, CragError for the judge.

        A question that fails is a row with the error. Systems take turns, so that whatever else the machine
        does meanwhile weighs on all of them alike.
        """
        work = [pair for pair in self.pairs() if self.to_ask(*pair) or self.missing(*pair)]
        if self.judge and any(self.missing(*pair) for pair in work):
            await self.judge.self_test()
        await self._warm_up(work)
        asking = asyncio.Semaphore(self.at_once)
        queue = iter(work)

        async def worker() -> None:
            for sample, system in queue:
                self._check_cost()
                if self._stop:
                    return
                await self._one(sample, system, asking)
                self.progress(f"{system.name}: {sample.question}")

        count = max(self.at_once, self._judged_at_once if self.judge else 0)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(count, len(work))):
                    group.create_task(worker())
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        if self._stop:
            left = sum(self.to_ask(*pair) for pair in self.pairs())
            raise StoppedError(f"{self._stop}; {left} answers are missing")

    async def _warm_up(self, work: Sequence[tuple[Sample, System]]) -> None:
        """Load what runs on this machine, or the first questions would seem slow; nothing is paid for it."""
        asked = {id(self.settings[system.name]): (sample, system) for sample, system in work}
        for sample, system in asked.values():
            settings = self.settings[system.name]
            if not (self.own or settings.endpoint("generator") or settings.endpoint("embedding")):
                with suppress(CragError):  # the question's own turn will tell
                    await aask(sample.question, settings=settings, graph=system.graph)

    def pairs(self) -> list[tuple[Sample, System]]:
        """Every question with every system."""
        return [(sample, system) for sample in self.samples for system in self.systems]

    def to_ask(self, sample: Sample, system: System) -> bool:
        """Whether there is no answer yet; a question that failed is asked again."""
        row = self.journal.records.rows.get((system.name, sample.id))
        return row is None or row.answer is None

    def missing(self, sample: Sample, system: System) -> list[tuple[str, int]]:
        """The judgements (metric, repeat) that a row lacks, or whose failure may have passed."""
        if self.judge is None:
            return []
        scores = self.journal.records.scores
        found = [(key, scores.get((system.name, sample.id, *key))) for key in self.judge.wanted()]
        return [key for key, score in found if score is None or score.again]

    async def _one(self, sample: Sample, system: System, asking: asyncio.Semaphore) -> None:
        row = self.journal.records.rows.get((system.name, sample.id))
        if row is None or row.answer is None:
            async with asking:
                row = await self._ask(sample, system)
            # Shielded: what is paid for gets onto the disk also while the run is being interrupted.
            await asyncio.shield(asyncio.to_thread(self.journal.row, row))
        missing = self.missing(sample, system)
        if self.judge and missing and row.answer is not None:
            async for score in self.judge.scores(sample, row, missing):
                await asyncio.shield(asyncio.to_thread(self.journal.score, score))

    async def _ask(self, sample: Sample, system: System) -> Row:
        settings = self.settings[system.name]
        row = Row(system=system.name, id=sample.id, answer=None)
        try:
            row.answer = await aask(sample.question, settings=settings, graph=system.graph, **self.own)
        except RunError as error:
            row.error = str(error)
            self._lost += error.answer.usage.cost_usd or 0.0
        except CragError as error:
            row.error = str(error)
        except Exception as error:  # noqa: BLE001 - one question must not cost the others their answers
            row.error = f"{type(error).__name__}: {error}"
        if row.answer is None:
            row.error = redact(row.error or "", _secrets(settings))
            self._failed(row.error)
        else:
            self._failures = 0
            row.context = context_of(row.answer)
        return row

    def _failed(self, error: str) -> None:
        self._failures += 1
        if self._failures >= GIVE_UP and not self._stop:
            self._stop = f"{self._failures} questions in a row failed, the last with: {error}"

    def _check_cost(self) -> None:
        if self.max_cost is None or self._stop:
            return
        spent = cost_of(list(self.journal.records.rows.values()), list(self.journal.records.scores.values()))
        if spent is None:
            self._stop = "a server does not report its tokens, so --max-cost cannot be held"
        elif spent + self._lost >= self.max_cost:
            self._stop = f"${spent + self._lost:.4f} are spent, which is --max-cost {self.max_cost:g}"


def context_of(answer: Answer) -> list[str]:
    """The texts that an answer was given, in the order in which it could cite them."""
    kept = [document for document in answer.documents if document.n is not None]
    return [document.text for document in sorted(kept, key=lambda document: document.n or 0)]


def cost_of(rows: Sequence[Row], scores: Sequence[Score]) -> float | None:
    """US dollars of answers and judgements; None when a call's price is not known."""
    total = 0.0
    for row in rows:
        if row.answer and row.answer.usage.llm_calls:
            usage = row.answer.usage
            if usage.cost_usd is None or usage.input_tokens is None:
                return None
            total += usage.cost_usd
    for score in scores:
        if score.calls and (score.cost_usd is None or score.input_tokens is None) and score.value is not None:
            return None
        total += score.cost_usd or 0.0
    return total


def _secrets(settings: Settings) -> list[str]:
    values = dict(settings).values()
    return [value.get_secret_value() for value in values if hasattr(value, "get_secret_value")]
