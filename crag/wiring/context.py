"""The numbers of one run: what a question may set for itself, given to a graph as `context=`."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from crag.base.choices import Aggregate
from crag.base.errors import SettingsError
from crag.judging.grading import Thresholds
from crag.settings.complaints import in_words, no_setting
from crag.settings.conditions import Conditions, conditions
from crag.settings.kinds import Unit
from crag.wiring.parts import Services


class Context(BaseModel):
    """What a run may set for itself; what is not given comes from the settings.

    Raises SettingsError, one line naming the field and what it must be.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    k: int | None = Field(
        None, ge=1, le=100, description="Documents to retrieve: CRAG_K, else 4 (batched: 5)"
    )
    upper: Unit | None = Field(
        None,
        description="Score from which a retrieval is correct: CRAG_UPPER, a calibration, else 0.7 "
        "(batched: 0.75; agentic: 0.6, and every document from it up is kept)",
    )
    lower: Unit | None = Field(
        None,
        description="Score up to which a retrieval is incorrect, and from which its documents are kept: "
        "CRAG_LOWER, a calibration, else 0.3 (batched: 0.25; agentic has one threshold, upper)",
    )
    aggregate: Aggregate | None = Field(
        None, description="Whether the best score of a question's documents decides, or their mean"
    )
    web: bool | None = Field(None, description="false keeps this question off the web, whatever CRAG_WEB is")
    web_results: int | None = Field(
        None, ge=1, le=20, description="Web pages to ask for: CRAG_WEB_RESULTS, else 3"
    )
    where: dict[str, Any] | list[str] | str | None = Field(
        None,
        description='Conditions on the passages\' metadata, such as {"lang": "zh"} or "source=handbook.md"; '
        "they narrow CRAG_FILTER and CRAG_WHERE, never widen them",
    )
    check: bool | None = Field(
        None, description="Whether the answer is checked against its documents (agentic: it is)"
    )
    on_ungrounded: Literal["report", "retry"] | None = Field(
        None, description="What follows where a check finds an answer not grounded; retry asks for the check"
    )
    context_tokens: int | None = Field(
        None,
        ge=200,
        description="Tokens of documents that the answer is written from: CRAG_CONTEXT_TOKENS, else 6000",
    )

    def __init__(self, **given: Any) -> None:
        unknown = [name for name in given if name not in type(self).model_fields]
        if unknown:
            told = no_setting(unknown[0], type(self).model_fields.keys())
            raise SettingsError(
                f"context: {told.replace('is not a setting', 'is nothing that a run can set', 1)}"
            )
        try:
            super().__init__(**given)
        except ValidationError as error:
            first = error.errors()[0]
            where = str(first["loc"][0]) if first["loc"] else ""
            told = in_words(first, secret=False)
            raise SettingsError(f"context: {where} {told}" if where else f"context: {told}") from None

    @model_validator(mode="after")
    def _meet(self) -> "Context":
        self.conditions()
        if self.upper is not None and self.lower is not None and not self.lower < self.upper:
            raise ValueError(f"lower ({self.lower:g}) must be less than upper ({self.upper:g})")
        return self

    def conditions(self) -> Conditions:
        """`where` as conditions. Raises SettingsError."""
        try:
            return conditions(self.where) if self.where else ()
        except ValueError as error:
            raise SettingsError(f"where: {error}") from None


class Bound:
    """The services of a graph, as one run of it uses them.

    `tuned` gives a graph its own numbers where nobody chose others; a run's context chooses.
    """

    def __init__(
        self, services: Services, tuned: Callable[[Services], Services] = lambda given: given
    ) -> None:
        self._services = services
        self._tuned = tuned
        self.usual = tuned(services)

    def of(self, given: "Context | None") -> Services:
        """The services with the numbers of a run in them. Raises SettingsError."""
        return self.usual if given is None else self._tuned(_narrowed(self._services, given))

    def of_run(self, runtime: "Runtime[Context]", config: RunnableConfig | None = None) -> Services:
        """The services of the run that a node belongs to.

        What stands in `configurable` counts too: programs written before there was a context put it there.
        """
        context: Any = runtime.context
        if context is None and config:
            given = {name: value for name, value in config.get("configurable", {}).items() if name in _FIELDS}
            context = Context(**given) if given else None
        elif isinstance(context, dict):
            context = Context(**context)
        elif context is not None and not isinstance(context, Context):
            raise SettingsError(f"context must be a dict or crag's Context, not {type(context).__name__}")
        return self.of(context)


_FIELDS = frozenset(Context.model_fields)


def _narrowed(services: Services, given: Context) -> Services:
    named = given.model_fields_set & {name for name in _FIELDS if getattr(given, name) is not None}
    changes: dict[str, Any] = {name: getattr(given, name) for name in named & {"k", "web_results", "check"}}
    if "context_tokens" in named and given.context_tokens != services.context_tokens:
        changes |= {"context_tokens": given.context_tokens, **services.sized(given.context_tokens or 0)}
    if given.where:
        changes["retriever"] = services.retriever_where(given.conditions())
    if given.web is False:
        changes |= {"web": None, "web_hint": None}
    if given.on_ungrounded is not None:
        retry = given.on_ungrounded == "retry"
        changes["retry"] = retry and services.model_answers
        changes["check"] = True if retry else given.check if "check" in named else services.check
    elif given.check is False:
        changes["retry"] = False
    if named & {"upper", "lower", "aggregate"}:
        changes |= {"thresholds": _thresholds(services.thresholds, given), "thresholds_source": "flag"}
    return replace(services, chosen=services.chosen | named, **changes)


def _thresholds(usual: Thresholds, given: Context) -> Thresholds:
    """A threshold that is given alone moves the other out of its way: together they must leave room."""
    upper = usual.upper if given.upper is None else given.upper
    lower = usual.lower if given.lower is None else given.lower
    if lower >= upper:
        upper, lower = (upper, min(lower, upper)) if given.lower is None else (max(lower, upper), lower)
    return Thresholds(upper=upper, lower=lower, aggregate=given.aggregate or usual.aggregate)
