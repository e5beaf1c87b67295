"""Fitting the embedded evaluator: labelled pairs as numbers, and lines through them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from crag.embedded.evaluator import Line, comparable, features, pair_of, read_question
from crag.encoders.passages import PassageVectors

STRENGTH = 10.0
"""How firmly a fit is held to the line it starts from: as firmly as forty labels hold it, as one label has a
curvature of at most 1/4 of its weight."""

Rows = list[dict[str, Any]]


class Table(NamedTuple):
    """Question-passage pairs: features (pairs, FEATURES), relevance 1, 0 or -1 for unknown.

    `cross` marks pairs in two languages, `comparable` those that the evaluator compares at all (others score
    0); `answerable` has one entry for each question.
    """

    values: Any
    relevant: Any
    question: Any
    answerable: Any
    cross: Any
    comparable: Any


async def tabulate(
    rows: Rows, vectors: PassageVectors, progress: Callable[[int, int], None] | None = None
) -> Table:
    """The features of every pair; rows of {"question", "passages": [{"text", "relevant"}], "answerable"?}.

    Raises ModelError when the encoder fails. `progress` is told the rows done and all rows.
    """
    values, relevant, question, cross, compared = [], [], [], [], []
    information: Any = vectors.embeddings.information  # type: ignore[attr-defined]
    for number, row in enumerate(rows):
        asked = read_question(row["question"], await vectors.of_question(row["question"]), information)
        texts = [p["text"] for p in row["passages"]]
        for given, passage in zip(row["passages"], await vectors.of(texts, asked.coverage), strict=True):
            values.append(features(asked, passage))
            relevant.append(-1 if given["relevant"] is None else int(given["relevant"]))
            question.append(number)
            cross.append(pair_of(asked, passage.text) == "cross")
            compared.append(comparable(asked, passage.text))
        if progress:
            progress(number + 1, len(rows))
    answerable = np.array([bool(row.get("answerable")) for row in rows])
    return Table(
        np.array(values),
        np.array(relevant),
        np.array(question),
        answerable,
        np.array(cross, bool),
        np.array(compared, bool),
    )


def fit(tables: Iterable[Table], shift: float = 0.0, *, balanced: bool = True) -> tuple[Any, float]:
    """Weights and intercept of the log odds; files weigh the same and, if `balanced`, both answers."""
    from sklearn.linear_model import LogisticRegression

    labelled = [(t.values[t.relevant >= 0], t.relevant[t.relevant >= 0]) for t in tables]
    labelled = [(x, y) for x, y in labelled if len(set(y)) == 2]
    x, y = np.vstack([x for x, _ in labelled]), np.concatenate([y for _, y in labelled])
    weight = np.concatenate(
        [1 / np.bincount(y)[y] if balanced else np.full(len(y), 1 / len(y)) for _, y in labelled]
    )
    mean, scale = x.mean(0), np.maximum(x.std(0), 1e-9)
    model = LogisticRegression(max_iter=3000).fit((x - mean) / scale, y, weight * len(y) / weight.sum())
    weights = model.coef_[0] / scale
    return weights, float(model.intercept_[0] - weights @ mean) + shift


def refit(line: Line, values: Any, relevant: Any, *, shift: float, strength: float = STRENGTH) -> Line:
    """A line moved from `line` towards labels (1 or 0, both present); few labels move it little.

    The maximum a posteriori of a logistic regression whose normal prior is centred on `line` (the transfer
    of Chelba and Acero, "Adaptation of maximum entropy capitalizer", 2006), in features of unit variance.
    Both answers weigh the same, with as much weight in total as the rarer one warrants. `shift` is what the
    log odds of `line` were moved by after a balanced fit; the result is moved alike.
    """
    y = np.asarray(relevant, float)
    ones, zeros = y.sum(), (1 - y).sum()
    weight = np.where(y == 1, 2 * zeros, 2 * ones) / (ones + zeros)
    mean, scale = values.mean(0), np.maximum(values.std(0), 1e-9)
    design = np.column_stack([(values - mean) / scale, np.ones(len(y))])
    offset = log_odds(line, values) - shift
    moved = np.zeros(design.shape[1])
    for _ in range(100):
        p = _probability(offset + design @ moved)
        gradient = design.T @ (weight * (p - y)) + strength * moved
        curvature = (design.T * (weight * p * (1 - p))) @ design + strength * np.eye(len(moved))
        step = np.linalg.solve(curvature, gradient)
        moved -= step * min(1.0, 1.0 / max(1e-12, float(np.abs(step).max())))
        if np.abs(step).max() < 1e-8:
            break
    change = moved[:-1] / scale
    weights = np.asarray(line.weights, float) + change
    return Line(weights.tolist(), float(line.intercept + moved[-1] - change @ mean))


def scores(lines: Mapping[str, Line], table: Table) -> Any:
    """What the evaluator with these lines says of each pair, in [0, 1]."""
    odds = np.where(
        table.cross, log_odds(lines["cross"], table.values), log_odds(lines["same"], table.values)
    )
    return np.where(table.comparable, _probability(odds), 0.0)


def log_odds(line: Line, values: Any) -> Any:
    """Shape (pairs,)."""
    weights: Sequence[float] = line.weights
    return values @ np.asarray(weights) + line.intercept


def _probability(odds: Any) -> Any:
    return 1 / (1 + np.exp(-np.clip(odds, -30, 30)))
