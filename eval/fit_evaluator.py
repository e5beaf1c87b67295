"""Fits the embedded evaluator: python eval/fit_evaluator.py DATA_DIR [--out FILE] [--encoder e5|use].

DATA_DIR holds JSONL files of {"id", "lang", "question", "passages": [{"text", "relevant"}], "answerable"}.
Two files with the same ids in two languages also give the pairs of a question and passages in the other.

Each file is judged by a fit on the others. Passages whose relevance is unknown (null) are no labels; they
still count for "does any passage answer the question". Relevant and irrelevant passages of each file weigh
the same, across languages one in eight is relevant; then SHIFT moves the log odds to where the default
thresholds .3 and .7 serve best.
"""

import argparse
import asyncio
import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from crag.base.files import json_objects
from crag.base.language import language_of
from crag.embedded.evaluator import FEATURES
from crag.embedded.fitting import Rows, Table, fit, tabulate
from crag.encoders.embeddings import e5_embeddings, use_embeddings
from crag.encoders.passages import PassageVectors

SHIFT = 1.0
"""Added to the log odds of the balanced fit.

Chosen on 420 questions to a knowledge base that holds the answers to 180 of them: the largest share of
questions whose best of four passages scores .7 or more exactly if the answer is there, while fewer than 3 %
of the passages that answer score .3 or less.
"""

NEAREST = 7
"""Passages in another language that a question is shown beside the one that answers it.

Of four retrieved passages one answers, and for half of the questions none does: one in eight.
"""

ABOUT = (
    "Logistic regression by eval/fit_evaluator.py, fitted on samples of XQuAD (CC BY-SA 4.0, DeepMind), "
    "SQuAD 2.0 (CC BY-SA 4.0, Rajpurkar et al.), CMRC 2018 (CC BY-SA 4.0, Cui et al.), DRCD (CC BY-SA 3.0, "
    "Delta Research Center), CLAP NQ (Apache-2.0, IBM; text of Wikipedia, CC BY-SA 3.0) and LIT-RAGBench "
    "(CC BY-SA 4.0, Itai et al.). These are a few numbers about the texts and hold no text of theirs."
)


def judge(table: Table, weights: Any, intercept: float) -> str:
    """One line: passage AUC and Brier score, and how well the best passage tells answerable questions."""
    from sklearn.metrics import balanced_accuracy_score, brier_score_loss, roc_auc_score

    odds = table.values @ weights + intercept
    score = 1 / (1 + np.exp(-odds))
    known = table.relevant >= 0
    auc = brier = balanced = float("nan")
    if len(set(table.relevant[known])) == 2:
        auc = roc_auc_score(table.relevant[known], odds[known])
        brier = brier_score_loss(table.relevant[known], score[known])
    best = np.zeros(len(table.answerable))
    np.maximum.at(best, table.question, score)
    if len(set(table.answerable)) == 2:
        balanced = max(balanced_accuracy_score(table.answerable, best >= t) for t in np.unique(best))
    return f"{len(table.answerable):>9} {known.sum():>8} {auc:>12.3f} {brier:>6.3f} {balanced:>10.3f}"


async def crossed(files: dict[str, Rows], vectors: PassageVectors) -> dict[str, Rows]:
    """Questions in one language with what a retriever would bring them from passages in another.

    That is the passage that answers, and the NEAREST others of its file, as other files may repeat it. The
    files' own irrelevant passages were chosen by shared words, which no two languages share: a fit on
    them takes whatever is nearest for relevant.
    """
    pairs = {}
    for one, own in files.items():
        for other, theirs in files.items():
            language = language_of(theirs[0]["passages"][0]["text"])
            if one == other or language == language_of(own[0]["question"]):
                continue
            pool = sorted({p["text"] for row in theirs for p in row["passages"]})
            answers = {row["id"]: [p for p in row["passages"] if p["relevant"]] for row in theirs}
            rows = [
                row | {"passages": answers[row["id"]] + await nearest(row, answers[row["id"]], pool, vectors)}
                for row in own
                if answers.get(row["id"])
            ]
            if rows:
                pairs[f"{one} on {other}"] = rows
    return pairs


async def nearest(
    row: dict[str, Any], answers: list[dict[str, Any]], pool: list[str], vectors: PassageVectors
) -> list[dict[str, Any]]:
    """The passages of the pool that are nearest to a question, without those that answer it."""
    question = await vectors.of_question(row["question"])
    near = [p.vector @ question + (p.strip_vectors @ question).max() for p in await vectors.of(pool)]
    known = {answer["text"] for answer in answers}
    ranked = [pool[i] for i in np.argsort(near)[::-1] if pool[i] not in known]
    return [{"text": text, "relevant": False} for text in ranked[:NEAREST]]


def sampled(rows: Rows, limit: int) -> Rows:
    """At most `limit` rows, the same each time and, for the same ids, the same in each file."""
    ordered = sorted(rows, key=lambda row: random.Random(str(row["id"])).random())
    return ordered[:limit] if limit else ordered


def read(data: Path, limit: int) -> dict[str, Rows]:
    """The label files of a folder by name, at most `limit` questions of each."""
    return {path.stem: sampled(json_objects(path), limit) for path in sorted(data.glob("*.jsonl"))}


async def run(files: dict[str, Rows], embeddings: Embeddings) -> dict[str, Any]:
    """Print the table and return the lines that fit all files."""
    family = str(embeddings.model_id).partition("/")[0]  # type: ignore[attr-defined]
    vectors = PassageVectors(embeddings)
    lines = {}
    say(f"{'file, fitted on the others':30} questions passages  passage AUC  Brier  answerable")
    for pair, group in (("cross", await crossed(files, vectors)), ("same", files)):
        balanced = pair == "same"
        tables = {name: await tabulate(rows, vectors) for name, rows in group.items()}
        for name, table in tables.items():
            others = [other for key, other in tables.items() if key != name]
            say(f"{name:30} {judge(table, *fit(others, SHIFT, balanced=balanced))}")
        weights, intercept = fit(tables.values(), SHIFT, balanced=balanced)
        lines[pair] = {
            "weights": [round(float(w), 3) for w in weights],
            "intercept": round(intercept, 3),
        }
    return {family: {"encoder": embeddings.model_id, "lines": lines}}  # type: ignore[attr-defined]


def say(line: str) -> None:
    """One line of the report."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Fit one encoder's lines and put them among the others' in FILE."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(".")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("crag/embedded/coefficients.json"))
    parser.add_argument("--encoder", choices=("e5", "use"), default="e5")
    parser.add_argument("--limit", type=int, default=160, help="questions of each file; 0 for all")
    options = parser.parse_args()
    embeddings = e5_embeddings() if options.encoder == "e5" else use_embeddings()
    write(options.out, asyncio.run(run(read(options.data, options.limit), embeddings)))


def write(out: Path, fitted: dict[str, Any]) -> None:
    """Merge the lines into the file."""
    known = json.loads(out.read_text("utf-8"))["models"] if out.exists() else {}
    content = {"about": ABOUT, "features": FEATURES, "shift": SHIFT, "models": known | fitted}
    out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
