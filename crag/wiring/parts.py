"""What a run is made of: every part, ready to be called, and those that a caller brings instead."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from crag.base.answer import Models
from crag.base.choices import Origin
from crag.base.interfaces import (
    Alternatives,
    Checker,
    Generator,
    Grader,
    PassageGrader,
    Refiner,
    Replier,
    Retriever,
    Rewriter,
    Router,
    WebSearch,
)
from crag.judging.grading import Thresholds
from crag.models.allowance import Ceiling
from crag.settings.conditions import Conditions


@dataclass(frozen=True)
class Own:
    """What the caller brings instead of ours; None keeps ours."""

    retriever: Any = None
    model: Any = None
    embeddings: Any = None
    web_search: Any = None
    grader: Any = None


@dataclass(frozen=True)
class Services:
    """Every part of a run, ready to be called; parts that load something load it at their first call.

    `retriever_where` makes retrievers that see only what meets more conditions than the settings', `sized`
    the parts whose prompts hold `context_tokens` of documents, for another number of them.
    `chosen` names the settings that somebody set; `model_grades` and `model_answers` tell whether a
    chat model judges relevance and writes the answer.
    `last_resort` answers where the `ceiling` of a question leaves no call for the model that should.
    With `retry`, which needs `check`, an ungrounded answer is written once more. Without `route` the router
    only makes follow-ups standalone.
    """

    retriever: Retriever
    retriever_where: Callable[[Conditions], Retriever]
    sized: Callable[[int], dict[str, Any]]
    grader: Grader
    passage_grader: PassageGrader
    reason_grader: Grader
    alternatives: Alternatives | None
    rewriter: Rewriter | None
    web: WebSearch | None
    web_hint: str | None
    refiner: Refiner
    strip_refiner: Refiner
    generator: Generator
    reasons_generator: Generator
    checker: Checker
    check: bool | None
    retry: bool
    route: bool
    router: Router
    last_resort: Generator
    ceiling: Ceiling | None
    replier: Replier
    thresholds: Thresholds
    thresholds_source: Origin
    k: int
    web_results: int
    context_tokens: int
    models: Models
    model_grades: bool
    model_answers: bool
    chosen: frozenset[str]
    warnings: tuple[str, ...] = ()

    @property
    def source_without_calibration(self) -> Origin:
        """Where the thresholds of a graph come from whose scores are others than those calibrated."""
        return "default" if self.thresholds_source == "calibration" else self.thresholds_source
