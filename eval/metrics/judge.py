"""The judge: scores rows with a model, one by one, and says of each score that is missing why."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from crag.base.errors import CragError, ModelError
from crag.base.http import OPENAI_URL, host_of
from crag.base.language import Language
from crag.base.metering import metered
from crag.base.redaction import redact
from crag.judging.grounding import without_citations
from crag.knowledge.passages import settings_embeddings
from crag.knowledge.store.schema import model_id
from crag.settings.settings import Settings

from ..data.records import Metric, Row, Sample, Score
from .asking import Judgements, UnreadableError
from .catalogue import metrics
from .chinese import fingerprint
from .loading import engine

_OF_CONTEXT = {"context_recall", "context_precision", "faithfulness"}
_OF_REFERENCE = {"context_recall", "context_precision"}
_OF_ANSWER = {"faithfulness", "answer_relevancy"}
_TRIAL: dict[str, Any] = {
    "user_input": "How often do spring tides come?",
    "retrieved_contexts": ["Spring tides come twice a month, at new moon and at full moon."],
    "response": "Spring tides come twice a month.",
    "reference": "Spring tides come twice a month.",
}


class Judge:
    """Judges rows by those of the metrics `names` that a model judges, each `repeats` times.

    Model and server are those of CRAG_JUDGE_*, by default the generator's; embeddings are the settings' own
    or the embedded ones, never a vendor's that was not chosen. Raises SettingsError without a judge.
    """

    def __init__(self, settings: Settings, names: Sequence[str], repeats: int = 1) -> None:
        self.names = [metric.name for metric in metrics(settings, names) if metric.judged]
        self.repeats = repeats
        endpoint = settings.endpoint("judge")
        self.facts: dict[str, str] = {}
        """What judgements depend on: model, server, temperature, embeddings, prompts; for the provenance."""
        if endpoint is None or not self.names:
            return
        self._judgements = Judgements(settings, endpoint)
        embedding = settings.endpoint("embedding")
        self._embeddings = settings_embeddings(settings)
        self._metrics: dict[tuple[str, Language], Any] = {}
        self.facts = {
            "model": endpoint.model,
            "server": host_of(endpoint.base_url or OPENAI_URL),
            "temperature": "server's default" if settings.temperature is None else str(settings.temperature),
            "embedding": embedding.model if embedding else f"embedded: {model_id(self._embeddings)}",
            "repeats": str(repeats),
            "chinese_prompts": fingerprint(),
        }

    def wanted(self) -> list[tuple[str, int]]:
        """Every metric and repeat that a row is to be judged by."""
        return [(name, repeat) for name in self.names for repeat in range(self.repeats)]

    async def self_test(self) -> None:
        """Judge one small row by every metric. Raises CragError: one line with what fails and the remedy."""
        tried = await asyncio.gather(*(self._judge(name, "en", _TRIAL) for name in self.names))
        for name, (value, reason, call_failed) in zip(self.names, tried, strict=True):
            if value is None:
                remedy = "" if call_failed else "; set CRAG_JUDGE_MODEL to a model that can write JSON"
                raise ModelError(
                    f"the judge {self.facts['model']} failed its test row ({name}): {reason}{remedy}"
                )

    async def scores(
        self, sample: Sample, row: Row, missing: Sequence[tuple[str, int]]
    ) -> AsyncIterator[Score]:
        """A score for each metric and repeat that is `missing`, as soon as it is known; raises nothing."""
        tasks = [asyncio.create_task(self._score(sample, row, name, repeat)) for name, repeat in missing]
        try:
            for task in asyncio.as_completed(tasks):
                yield await task
        finally:
            for task in tasks:
                task.cancel()

    async def _score(self, sample: Sample, row: Row, name: str, repeat: int) -> Score:
        score = Score(system=row.system, id=row.id, metric=name, repeat=repeat, value=None)
        if not _applies(score, sample, row):
            return score
        columns = {
            "user_input": sample.question,
            "response": without_citations(row.answer.answer) if row.answer else "",
            "retrieved_contexts": row.context,
            "reference": sample.reference,
        }
        with metered() as spent:
            score.value, score.reason, score.again = await self._judge(name, sample.lang, columns)
        score.calls, score.cost_usd = spent.llm_calls, spent.cost_usd
        score.input_tokens, score.output_tokens = spent.input_tokens, spent.output_tokens
        return score

    async def _judge(
        self, name: str, lang: Language, columns: dict[str, Any]
    ) -> tuple[float | None, str | None, bool]:
        """The value, else why there is none and whether that may pass."""
        try:
            metric = self._metrics.get((name, lang))
            if metric is None:
                loaded = await asyncio.to_thread(engine)
                metric = loaded.judged(name, lang, self._judgements.ask, self._embeddings)
                self._metrics[name, lang] = metric
            value = await metric.score(columns)
        except UnreadableError as error:
            return None, str(error), False
        except CragError as error:
            return None, str(error), True
        except Exception as error:  # noqa: BLE001 - whatever ragas trips over costs this score, never the run
            said = redact(f"{type(error).__name__}: {error}", self._judgements.secrets)
            return None, f"ragas could not compute it: {said}", False
        if value is None:
            return None, "the judge found no statement to judge", False
        return round(value, 6), None, False


def _applies(score: Score, sample: Sample, row: Row) -> bool:
    """Whether there is something to judge; else the score says why not.

    A refusal is no failure and is counted as a refusal; an answer from no context is a row to look at, as
    any context metric would flatter or hurt it by accident.
    """
    if row.answer is None:
        score.reason = "no answer"
    elif score.metric in _OF_REFERENCE and sample.answerable is False:
        score.applies, score.reason = False, "no answer exists"
    elif score.metric in _OF_REFERENCE and not sample.reference:
        score.applies, score.reason = False, "no reference"
    elif not row.answer.answered and (score.metric in _OF_ANSWER or not row.context):
        score.applies, score.reason = False, "refused"
    elif score.metric in _OF_CONTEXT and not row.context:
        score.reason = "no context"
    elif score.metric in _OF_ANSWER and not row.answer.answer.strip():
        score.reason = "empty answer"
    else:
        return True
    return False


def unjudged(measured: Sequence[Metric], scores: Sequence[Score]) -> str | None:
    """Which metrics the judge failed on every row that it was asked about, and why; None without any."""
    lost: dict[str, str] = {}
    for metric in measured:
        asked = [s for s in scores if s.metric == metric.name and (s.calls or s.again or s.value is not None)]
        if metric.judged and asked and all(s.value is None for s in asked):
            lost[metric.name] = asked[-1].reason or "no reason given"
    return f"no row could be judged by {', '.join(lost)}: {next(iter(lost.values()))}" if lost else None
