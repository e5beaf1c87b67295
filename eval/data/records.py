"""What a benchmark writes down: questions, a row for each question and system, and how systems compare.

The journal (`records.jsonl`) gets one line for each thing that was paid for, as soon as it is: a `Row` for a
question that is answered, a `Score` for a metric that is judged. Its first line is a `Provenance`. Everything
else is computed from these.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field
from pydantic_core import PydanticSerializationError

from crag.base.answer import Answer
from crag.base.language import readable
from crag.base.metering import NodeUsage

Finding = Literal["better", "worse", "different", "within noise", "not comparable"]
"""What a difference says; "different" where more is neither better nor worse in itself."""


def _alternatives(given: Any) -> Any:
    """A string is an alternative of one part; what is no list is left for pydantic to refuse."""
    if isinstance(given, str):
        given = [given]
    return [[one] if isinstance(one, str) else one for one in given] if isinstance(given, list) else given


Alternatives = Annotated[list[list[str]], BeforeValidator(_alternatives)]


class Sample(BaseModel):
    """One question of a set and what is known about its answer; what is not known is None or empty.

    `answers` are alternatives, any of which is right; each is a list of short strings that must all occur (a
    plain string is a list of one). `reference` is a whole right answer. `answerable` False means that a
    refusal is right. `in_kb` and `in_web` tell whether the knowledge base and the web hold the answer.
    `gold_ids` are the ids of documents or passages, or the sources of documents, that hold it;
    `reference_contexts` are their texts.
    """

    id: str
    question: str
    answers: Alternatives = []
    reference: str | None = None
    lang: Literal["en", "zh"] = "en"
    group: str | None = None
    in_kb: bool | None = None
    in_web: bool | None = None
    answerable: bool | None = None
    gold_ids: list[str] = []
    reference_contexts: list[str] = []


class Row(BaseModel):
    """What one system made of one question: an answer, or the error that prevented it.

    `context` is the text of each document that the answer was given, as the system handed it over and in the
    order in which it could be cited.
    """

    kind: Literal["row"] = "row"
    system: str
    id: str
    answer: Answer | None
    context: list[str] = []
    error: str | None = None


class Score(BaseModel):
    """One metric of one row in [0, 1], or None ("unscored") with the reason; `repeat` counts from 0.

    `applies` False: the metric says nothing about this row (no gold ids, no reference), which is no failure.
    `again` tells that the reason may have passed (a timeout, a refused call), so that a resumed run tries
    again. Calls and tokens are the judge's.
    """

    kind: Literal["score"] = "score"
    system: str
    id: str
    metric: str
    repeat: int = Field(default=0, ge=0)
    value: float | None = Field(ge=0, le=1, allow_inf_nan=False)
    reason: str | None = None
    applies: bool = True
    again: bool = False
    calls: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cost_usd: float | None = None


class Metric(BaseModel):
    """What a metric is called, means, and whether a model judges it.

    `higher_is_better` is None where more is neither better nor worse in itself (how often it refuses).
    """

    name: str
    meaning: str
    judged: bool
    higher_is_better: bool | None = True


class Estimate(BaseModel):
    """A mean with its 95 % interval; None where nothing was scored."""

    mean: float | None
    low: float | None = None
    high: float | None = None


class MetricResult(BaseModel):
    """One metric of one system over a group of rows ("all" is every row).

    `unscored` counts failures by reason; rows that the metric does not apply to are in neither count.
    `noise` is the mean standard deviation between repeats of the judge on one row, None without repeats.
    """

    system: str
    metric: str
    group: str
    value: Estimate
    scored: int
    unscored: dict[str, int] = {}
    noise: float | None = None


class Difference(BaseModel):
    """`system` minus `baseline` on those rows of a group where both were scored; a paired 95 % interval."""

    metric: str
    group: str
    baseline: str
    system: str
    value: Estimate
    pairs: int
    finding: Finding


class Spending(NodeUsage):
    """What one system cost over the set; seconds of one question at the 50th and 95th percentile.

    `seconds_by_node` is the mean over all answered questions, those that did not pass a node included.

    Token counts and cost are None when a server did not report them or no price is set.
    """

    system: str
    questions: int
    errors: int
    seconds_p50: float
    seconds_p95: float
    seconds_by_node: dict[str, float] = Field(default_factory=dict)
    verdicts: dict[str, int] = Field(default_factory=dict)
    judge_calls: int = 0
    judge_cost_usd: float | None = None


class Provenance(BaseModel):
    """What a result depends on, so that only like is compared with like.

    `corpus` is the fingerprint of the knowledge base, `web` that of the snapshot ("off" without one);
    `systems` maps each system to its graph and every setting that is not a secret.
    """

    kind: Literal["provenance"] = "provenance"
    created: str
    dataset: str
    dataset_sha256: str
    questions: int
    corpus: str
    web: str
    systems: dict[str, dict[str, str]]
    models: dict[str, dict[str, str]]
    judge: dict[str, str] = {}
    versions: dict[str, str] = {}
    prompts: dict[str, str] = {}


class Result(BaseModel):
    """`result.json`: the whole comparison."""

    provenance: Provenance
    metrics: list[Metric]
    values: list[MetricResult]
    differences: list[Difference]
    spending: list[Spending]
    notes: list[str] = []


def as_json(record: BaseModel, indent: int | None = None) -> str:
    """A record as JSON; what no file can hold, as half a character that a model wrote, is a question mark."""
    try:
        return record.model_dump_json(indent=indent)
    except PydanticSerializationError:
        return type(record).model_validate(_readable(record.model_dump())).model_dump_json(indent=indent)


def _readable(value: Any) -> Any:
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, dict):
        return {_readable(key): _readable(item) for key, item in value.items()}
    return [_readable(item) for item in value] if isinstance(value, list) else value
