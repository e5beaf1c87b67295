"""How well a whole answer is supported: boosted trees over what it has in common with its context."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from crag.embedded.support import Context, roots

WHOLE = (
    "covered", "least_coverage", "mean_coverage", "least_new_coverage", "mean_new_coverage", "echo",
    "log_terms", "log_new", "log_missing", "log_sentences", "verbatim", "nearness", "fact_missing",
    "name_missing", "altered", "own_voice", "negation",
)  # fmt: skip
"""Of an answer: the share of its terms that the context has; the least and the mean of its sentences' values
of STATEMENT; the share of its terms that the question has; logarithms of how many terms it has, how many are
not the question's, how many are neither the question's nor the context's, and how many sentences; whether
all of it stands in the context; the least nearness of its phrases, .5 without any; whether one sentence has
a fact or name of its own, the most altered one, whether one speaks of "I" and "you"; whether it denies where
the context does not."""

_DENIAL = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|only|without|neither|nor|unable|cannot|refuse[sd]|fail(?:s|ed)|"
    r"lack(?:s|ed)|least|less|zero|incapable)\b|n't\b|[不没无未非勿莫]",
    re.IGNORECASE,
)


class Forest(NamedTuple):
    """Boosted regression trees; log odds are `bias` plus each tree's leaf.

    A tree is four lists by node: the feature (below 0 at a leaf), the threshold, or a leaf's value, and the
    nodes to go to when the feature is at most the threshold and when it is above.
    """

    bias: float
    trees: Sequence[tuple[Sequence[int], Sequence[float], Sequence[int], Sequence[int]]]

    def log_odds(self, values: Sequence[float]) -> float:
        """Log odds that an answer with these values of WHOLE is supported."""
        total = self.bias
        for feature, number, left, right in self.trees:
            node = 0
            while feature[node] >= 0:
                node = left[node] if values[feature[node]] <= number[node] else right[node]
            total += number[node]
        return total

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Forest":
        """A forest as `grounding.json` holds it."""
        return cls(data["bias"], [tuple(tree) for tree in data["trees"]])


@cache
def forest() -> Forest:
    """The trees that eval/fit_grounding.py fitted."""
    text = files("crag.embedded").joinpath("grounding.json").read_text(encoding="utf-8")
    return Forest.read(json.loads(text)["whole"])


def whole(sentences: Sequence[str], context: Context) -> list[float]:
    """The values of WHOLE; `sentences` are all of an answer, at least one."""
    measured = np.array([context.statement(sentence) for sentence in sentences])
    answer = [root for sentence in sentences for root in roots(sentence)]
    said, asked = set(answer), set(context.question)
    phrases = [s for s in sentences if context.is_phrase(s) or context.restates(s)]
    nearness = min((context.phrase(phrase)[0] for phrase in phrases), default=0.5)
    text = " ".join(sentences)
    return [
        len(said & context.all) / max(1, len(said)),
        measured[:, 0].min(),
        measured[:, 0].mean(),
        measured[:, 1].min(),
        measured[:, 1].mean(),
        len(said & asked) / max(1, len(said)),
        math.log1p(len(said)),
        math.log1p(len(said - asked)),
        math.log1p(len(said - asked - context.all)),
        math.log(len(sentences)),
        float(all(context.holders(sentence) for sentence in sentences)),
        nearness,
        *measured[:, 2:6].max(0),
        float(bool(_DENIAL.search(text)) and not _DENIAL.search(context.text)),
    ]
