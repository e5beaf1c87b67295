"""Fits the embedded grounding check: python eval/fit_grounding.py DATA_DIR [--out FILE].

DATA_DIR holds JSONL files of {"context", "answer", "grounded", "question"?}. Printed is the balanced accuracy
per file: of plain overlap (share of the answer's terms in the context) at the file's own best threshold,
which flatters it, and at the threshold that is best for all files together; of the check fitted on all
files, other documents (five folds); and of the check fitted on the other files alone.

A sentence is not labelled, only its answer. All sentences of a grounded answer are taken as grounded, of
another the one that is covered least; the trees judge whole answers. Files, and in a file both labels, weigh
the same, so that the threshold of .5 assumes that half of all such answers are grounded.
"""

import argparse
import asyncio
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings

from crag.base.files import Object, json_objects
from crag.embedded.evaluator import Line
from crag.embedded.forest import WHOLE, Forest, whole
from crag.embedded.grounding import LEXICAL, EmbeddedChecker, Measured, measure, supported
from crag.embedded.support import PHRASE, STATEMENT
from crag.encoders.embeddings import e5_embeddings
from crag.encoders.passages import PassageVectors
from crag.judging.facts import missing_facts
from crag.text.sentences import split_strips
from crag.text.terms import content_terms

ABOUT = (
    "Logistic regressions and boosted trees by eval/fit_grounding.py on {files}. Fitted on samples of BEGIN "
    "(CC BY 4.0, Google), FEVER Symmetric (CC BY-SA 3.0, Schuster et al.), HaluEval (MIT, RUCAIBox; text of "
    "HotpotQA, CC BY-SA 4.0), MT-RAG (Apache-2.0, IBM), and of SQuAD 2.0 (CC BY-SA 4.0, Rajpurkar et al.), "
    "CMRC 2018 (CC BY-SA 4.0, Cui et al.) and DRCD (CC BY-SA 3.0, Delta Research Center) with answers "
    "swapped. These are a few numbers about the texts; no text of theirs is contained."
)
NAMES = {"statement": STATEMENT, "phrase": PHRASE}
CALM = 0.3
"""Inverse strength of the regularisation, in standardised features."""


class Answer(NamedTuple):
    """One labelled answer; `fold` is the same for answers about the same context."""

    grounded: bool
    missing: bool  # whether a number, date or quotation is not in the context
    overlap: float
    whole: list[float]
    sentences: list[Measured]
    fold: int


Files = dict[str, list[Answer]]


class Models(NamedTuple):
    """What judges sentences, by kind, and what judges whole answers."""

    lines: dict[str, Line]
    forest: Forest


async def read(rows: Sequence[Object], checker: EmbeddedChecker) -> list[Answer]:
    """The answers of labelled rows with their features."""
    answers = []
    for row in rows:
        context = await checker.context(row.get("question") or "", {1: row["context"]})
        strips = split_strips(row["answer"])
        terms = set(content_terms(row["answer"]))
        overlap = len(terms & set(content_terms(row["context"]))) / max(1, len(terms))
        missing = bool(missing_facts(row["answer"], row["context"]))
        fold = zlib.crc32(str(row.get("doc") or row["context"][:80]).encode()) % 5
        answers.append(
            Answer(
                bool(row["grounded"]),
                missing,
                overlap,
                whole(strips, context),
                measure(strips, context),
                fold,
            )
        )
    return answers


def fit(files: Sequence[Sequence[Answer]]) -> Models:
    """The regressions on all sentences of these answers, and the trees on the answers."""
    return Models(fit_lines(files), fit_forest(files))


def fit_forest(files: Iterable[Sequence[Answer]]) -> Forest:
    """Small trees, each on a part of the answers and of the features."""
    from sklearn.ensemble import GradientBoostingClassifier

    x, y, weight = [], [], []
    for answers in files:
        share = {label: sum(a.grounded == label for a in answers) for label in (True, False)}
        x += [a.whole for a in answers]
        y += [int(a.grounded) for a in answers]
        weight += [300 / share[a.grounded] for a in answers]
    model = GradientBoostingClassifier(
        n_estimators=120,
        max_depth=3,
        learning_rate=0.08,
        subsample=0.7,
        max_features=0.5,
        min_samples_leaf=5,
        random_state=0,
    ).fit(x, y, weight)
    trees = []
    for (regressor,) in model.estimators_:
        tree = regressor.tree_
        values = tree.value[:, 0, 0] * model.learning_rate
        leaf = tree.children_left < 0
        trees.append(
            (
                np.where(leaf, -1, tree.feature).tolist(),
                [round(float(n), 5) for n in np.where(leaf, values, tree.threshold)],
                tree.children_left.tolist(),
                tree.children_right.tolist(),
            )
        )
    prior = model.init_.class_prior_
    return Forest(round(float(np.log(prior[1] / prior[0])), 5), trees)


def fit_lines(files: Iterable[Sequence[Answer]]) -> dict[str, Line]:
    """The regressions on all sentences of these answers."""
    from sklearn.linear_model import LogisticRegression

    tables: dict[str, list[tuple[list[float], int, float]]] = {kind: [] for kind in NAMES}
    for answers in files:
        for answer in answers:
            for kind, table in tables.items():
                # A restated question is judged as a phrase too, but says nothing of phrases.
                chosen = [
                    s[kind] for s in answer.sentences if kind in s and (kind == "statement" or len(s) == 1)
                ]
                if answer.grounded:
                    table += [(values, 1, 1 / len(chosen) / len(answers)) for values in chosen]
                elif chosen and (kind == "statement" or len(answer.sentences) == len(chosen)):
                    table.append((min(chosen), 0, 1 / len(answers)))
    models = {}
    for kind, table in tables.items():
        x, y = np.array([row[0] for row in table]), np.array([row[1] for row in table])
        weight = np.array([row[2] for row in table])
        for label in (0, 1):
            weight[y == label] *= 300 / weight[y == label].sum()
        mean, scale = x.mean(0), np.maximum(x.std(0), 1e-9)
        model = LogisticRegression(C=CALM, max_iter=3000).fit((x - mean) / scale, y, weight)
        weights = model.coef_[0] / scale
        models[kind] = Line(weights.tolist(), float(model.intercept_[0] - weights @ mean))
    return models


def predict(models: Models, answer: Answer) -> bool:
    """What the check says."""
    odds = models.forest.log_odds(answer.whole)
    return not answer.missing and all(supported(answer.sentences, models.lines, odds))


def balanced(answers: Sequence[Answer], says: Callable[[Answer], bool]) -> float:
    """Balanced accuracy."""
    rates = [
        [says(answer) == label for answer in answers if answer.grounded == label] for label in (True, False)
    ]
    return float(np.mean([np.mean(rate) for rate in rates]))


def report(files: Files) -> None:
    """Print the table."""
    thresholds = np.linspace(0, 1, 41)
    floors = {
        name: [balanced(answers, lambda a, t=t: a.overlap >= t) for t in thresholds]  # type: ignore[misc]
        for name, answers in files.items()
    }
    common = int(np.argmax(np.sum(list(floors.values()), axis=0)))
    say(f"{'':28}overlap  at {thresholds[common]:.2f}  folds  other files  grounded found  ungrounded found")
    for name, answers in files.items():
        folds = [fit([[a for a in each if a.fold != fold] for each in files.values()]) for fold in range(5)]
        others = fit([each for other, each in files.items() if other != name])
        says = {id(answer): predict(folds[answer.fold], answer) for answer in answers}
        found = [
            np.mean([says[id(a)] == label for a in answers if a.grounded == label]) for label in (True, False)
        ]
        alone = balanced(answers, lambda a, lines=others: predict(lines, a))  # type: ignore[misc]
        say(
            f"{name:28}{max(floors[name]):7.3f}{floors[name][common]:9.3f}{np.mean(found):7.3f}{alone:13.3f}"
            f"{found[0]:16.3f}{found[1]:18.3f}"
        )


async def run(texts: dict[str, list[Object]], embeddings: Embeddings) -> dict[str, object]:
    """Fit every family, print its table and return the coefficients; `texts` are the rows by file."""
    families = {}
    for family in ("multilingual-e5-small", LEXICAL):
        checker = EmbeddedChecker(PassageVectors(embeddings), family=family)
        files = {name: await read(text, checker) for name, text in texts.items()}
        say(f"\n{family}")
        report(files)
        models = fit(list(files.values()))
        families[family] = {
            kind: {"weights": [round(w, 3) for w in line.weights], "intercept": round(line.intercept, 3)}
            for kind, line in models.lines.items()
        }
        say(json.dumps(families[family]))
    # The trees use no vectors: they are the same for every family.
    return {
        "about": ABOUT.format(files=", ".join(texts)),
        "features": NAMES | {"whole": WHOLE},
        "families": families,
        "whole": {"bias": models.forest.bias, "trees": models.forest.trees},
    }


def _compact(fitted: object) -> str:
    """JSON with a line for each list of numbers."""
    text = json.dumps(fitted, indent=1)
    return re.sub(r"\[[^\[\]\"]*\]", lambda found: " ".join(found[0].split()), text)


def say(line: str) -> None:
    """Print a line of the report."""
    sys.stdout.write(line + "\n")


def main(argv: Sequence[str]) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(argv)
    texts = {path.stem: json_objects(path) for path in sorted(given.data.glob("*.jsonl"))}
    fitted = asyncio.run(run(texts, e5_embeddings()))
    if given.out:
        given.out.write_text(_compact(fitted) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
