"""Calibrate on one half of labelled questions, check on the other: python eval/calibration_check.py DIR.

DIR holds label files (JSONL of questions with labelled passages). The halves share no document that a
question is about, and lines score no passage of a document they were fitted on. Each file is halved several
times, both halves serve in turn, and the table shows means over all of that; ranges are over the halvings.
"""

import argparse
import asyncio
import hashlib
import sys
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from crag.embedded.evaluator import coefficients, shipped_shift
from crag.embedded.fitting import Table, tabulate
from crag.encoders.embeddings import embedded_embeddings
from crag.encoders.passages import PassageVectors

# By name: this file is a script, and its neighbours are modules of the package.
fit_evaluator, labels, learning, scored, scoring, thresholds = (
    import_module(f"crag.eval.{name}")
    for name in (
        "fit_evaluator",
        "calibrating.labels",
        "calibrating.learning",
        "calibrating.scored",
        "calibrating.scoring",
        "calibrating.thresholds",
    )
)

HALVINGS = 10
HEAD = "| file | n | | lost | caught | web, answerable | gain | fitted |\n|---|---|---|---|---|---|---|---|"


def table_of(path: Path, rows: list[dict[str, Any]], vectors: PassageVectors, cache: Path | None) -> Table:
    """The features of a file's questions, kept in `cache` as they take minutes."""
    model = getattr(vectors.embeddings, "model_id", "")
    name = hashlib.sha256(f"{model}{[row['id'] for row in rows]}".encode()).hexdigest()[:16]
    kept = cache / f"{path.stem}-{name}.npz" if cache else None
    if kept and kept.exists():
        with np.load(kept) as stored:
            return Table(*(stored[field] for field in Table._fields))
    table = asyncio.run(tabulate(rows, vectors))
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(kept, **table._asdict())
    return table


def check(name: str, questions: list[Any], table: Table, lines: Any, max_lost: float) -> Iterable[str]:
    """The rows of one file: default thresholds, thresholds alone, thresholds with fitted lines."""
    data = scoring.labelled(questions, table, lines, shipped_shift())
    every = np.ones(len(questions), bool)
    default = scored.shares(data.scored(data.fixed, every, "max"), thresholds.UPPER, thresholds.LOWER)
    yield f"| {name} | {len(questions)} | default .7 / .3 | {_told([default])} | |"
    wish = thresholds.Wish(max_lost)
    for kind, used in (("thresholds", replace(data, table=None)), ("and fit", data)):
        halves = [learning.cross_validate(used, wish, None, folds=2, seed=seed) for seed in range(HALVINGS)]
        fitted = f"{sum(half.fitted for half in halves)} of {2 * HALVINGS}" if kind == "and fit" else ""
        yield f"| | | {kind} | {_told([half.shares for half in halves])} | {fitted} |"


def _told(found: list[Any]) -> str:
    columns = []
    for name in ("lost", "caught", "in_vain", "gain"):
        values = [v for s in found if (v := getattr(s, name)) is not None]
        if not values:
            columns.append("–")
        elif len(values) == 1:
            columns.append(f"{values[0]:.3f}")
        else:
            columns.append(f"{np.mean(values):.3f} ({min(values):.3f}–{max(values):.3f})")
    return " | ".join(columns)


def main() -> int:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, metavar="DIR")
    parser.add_argument("--limit", type=int, default=160, help="questions of each file; 0 for all")
    parser.add_argument("--max-lost", type=float, default=0.02, help="the wish (default %(default)s)")
    parser.add_argument("--cache", type=Path, metavar="DIR", help="keep features here for the next time")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="these files alone, without .jsonl")
    options = parser.parse_args()
    embeddings = embedded_embeddings()
    lines = coefficients(embeddings.model_id)
    sys.stdout.write(HEAD + "\n")
    for path in sorted(options.data.glob("*.jsonl")):
        if options.only and path.stem not in options.only:
            continue
        every = {q.id: q for q in labels.read_labels([path]).questions}
        chosen = fit_evaluator.sampled([{"id": key} for key in every], options.limit)
        questions = [every[row["id"]] for row in chosen]
        rows = [question.model_dump() for question in questions]
        table = table_of(path, rows, PassageVectors(embeddings), options.cache)
        for line in check(path.stem, questions, table, lines, options.max_lost):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
