"""The metrics by name: what each of them means, who judges it, and what that takes."""

from collections.abc import Sequence

from crag.base.errors import SettingsError
from crag.base.wording import meant
from crag.settings.settings import Settings

from ..data.records import Metric

_JUDGED = {
    "context_recall": "share of the reference's statements that the context supports (ragas)",
    "context_precision": "how high the useful documents stand in the context: average precision (ragas)",
    "faithfulness": "share of the answer's statements that its context supports (ragas); answered rows only",
    "answer_relevancy": (
        "mean cosine of questions made from the answer to the one asked (ragas); answered rows only"
    ),
}
_LOCAL = {
    "accuracy": "right answer given where there is one, refused where there is none",
    "answer_match": "the answer contains all parts of one of the right answers, word by word",
    "answer_exact": "the answer is one of the right answers and nothing else, but for spelling",
    "answer_f1": "words in common with the nearest right answer: F1, Chinese by characters",
    "string_similarity": "1 - normalised edit distance between answer and reference (ragas)",
    "refusal_accuracy": "refused where no answer exists, answered where one does",
    "refusal_rate": "share of questions that were refused",
    "groundedness": "share of checked answers whose every statement a source supports",
    "route_accuracy": "only the knowledge base used where it knows, the web where that knows, else none",
    "gold_retrieved": "a document that holds the answer was retrieved",
    "gold_kept": "a document that holds the answer and was retrieved reached the answer",
    "id_based_context_precision": "share of the context's documents that hold the answer, by id (ragas)",
    "id_based_context_recall": "share of the documents that hold the answer in the context, by id (ragas)",
    "non_llm_context_precision": "average precision of the context, by edit distance to gold texts (ragas)",
    "non_llm_context_recall": "share of the gold texts in the context, by edit distance (ragas)",
}
_NEITHER = {"refusal_rate"}

METRICS = {
    name: Metric(
        name=name,
        meaning=meaning,
        judged=name in _JUDGED,
        higher_is_better=None if name in _NEITHER else True,
    )
    for name, meaning in {**_LOCAL, **_JUDGED}.items()
}
LOCAL = tuple(_LOCAL)
JUDGED = tuple(_JUDGED)


def metrics(settings: Settings, names: Sequence[str] | None) -> list[Metric]:
    """The metrics called `names`, in that order; None is all that can be had: judged ones need a judge.

    Raises SettingsError for a name that does not exist and for a judged metric without a judge.
    """
    judge = settings.endpoint("judge")
    if names is None:
        return [metric for metric in METRICS.values() if judge or not metric.judged]
    for name in names:
        if name not in METRICS:
            hint = meant(name, METRICS, f"there are: {', '.join(METRICS)}")
            raise SettingsError(f"no metric is called {name!r}; {hint}")
    judged = [name for name in dict.fromkeys(names) if name in _JUDGED]
    if judged and judge is None:
        raise SettingsError(
            f"{', '.join(judged)}: a model must judge; set CRAG_JUDGE_MODEL and CRAG_JUDGE_BASE_URL or "
            "OPENAI_API_KEY, or choose metrics without a judge"
        )
    return [METRICS[name] for name in dict.fromkeys(names)]


def judge_calls(name: str, documents: int) -> int:
    """Calls that one score takes with `documents` in the context, when none has to be repeated."""
    return {
        "context_recall": 1,
        "context_precision": documents,
        "faithfulness": 2,
        "answer_relevancy": 3,
    }.get(name, 0)
