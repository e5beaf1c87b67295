"""`python -m crag.calibrate`: fit the evaluator and its thresholds to labelled questions of your own."""

import argparse
from collections.abc import Sequence

from crag.cli.shell import Parser, attempt, finish, value

DESCRIPTION = """\
Choose when a retrieval is correct, ambiguous or incorrect from questions of your own whose answers you know,
and fit the evaluator that needs no model to them where that is better. Writes a small file; with
CRAG_CALIBRATION=FILE every answer uses it and says so ("thresholds": {"source": "calibration"}).
"""

EXAMPLES = """\
examples:
  python -m crag.calibrate labels.jsonl                     your questions with labelled passages
  python -m crag.calibrate questions.jsonl --kb my-kb       questions whose documents you know: runs retrieval
  python -m crag.calibrate records.jsonl questions.jsonl    what a benchmark retrieved, with its question set
  python -m crag.calibrate labels.jsonl --max-lost 0.05 --max-web 0.25
  python -m crag.calibrate labels.jsonl --evaluator llm --estimate   calls and cost of grading by your model

reads, one JSON object a line, told apart by their keys:
  {"id", "question", "passages": [{"id", "text", "relevant": true|false|null}], "answerable"?}
  {"id", "question", "gold_ids": ["handbook.md"], "answers"?, "in_kb"?}
  records.jsonl of a benchmark, beside its question set
  null is unknown: no label and no loss. "answerable" tells whether any of these passages answers.

how many labels:
  2 % lost can be promised from 49 answerable questions on, 5 % from 19; with fewer the promise is weaker and
  the report says which. Below 50 of either kind shares are rough. Coefficients are fitted from 20 relevant
  and 20 irrelevant passages on, kept near the shipped ones, and used only if cross-validation by document
  says that they are better. Label passages as your retriever brings them, in every language you ask in.

exit status:
  0 done; 1 the wish cannot be met or the scores cannot be told apart (nothing is written unless
  --write-anyway), or it could not be done; 2 wrong usage, labels or configuration
"""


def parser() -> argparse.ArgumentParser:
    """The command line, without importing anything heavy."""
    p = Parser("python -m crag.calibrate", DESCRIPTION, EXAMPLES)
    p.add_argument(
        "files", nargs="+", type=value, metavar="LABELLED.jsonl", help="labels, question sets, records"
    )
    p.add_argument(
        "--max-lost",
        type=_share,
        default=0.02,
        metavar="S",
        help="drop the passage that answers for at most this share of answerable questions (default 0.02)",
    )
    p.add_argument(
        "--max-web",
        type=_share,
        metavar="S",
        help="search the web on at most this share of questions (default: whatever tells them apart best)",
    )
    p.add_argument("--aggregate", choices=("max", "mean"), help="how scores become one (default: the better)")
    p.add_argument(
        "--evaluator",
        choices=("llm", "embedded"),
        help="whose scores: the grading model's, each paid for once, or the one without a model",
    )
    p.add_argument(
        "--kb", type=value, metavar="DIR", help="knowledge base to run question sets on (default .crag/kb)"
    )
    p.add_argument("-k", metavar="N", help="documents to retrieve for question sets (default 4)")
    p.add_argument("--no-fit", action="store_true", help="choose thresholds only, keep the coefficients")
    p.add_argument(
        "--out", type=value, default=".crag/calibration.json", metavar="FILE", help="default: %(default)s"
    )
    p.add_argument(
        "--plot", type=value, metavar="FILE", help="HTML page of the trade-off (default: beside --out)"
    )
    p.add_argument("--no-plot", action="store_true", help="draw nothing")
    p.add_argument("--write-anyway", action="store_true", help="write the file although the wish is not met")
    p.add_argument(
        "--grades",
        type=value,
        default=".crag/grades.jsonl",
        metavar="FILE",
        help="where a model's grades are kept (default: %(default)s)",
    )
    p.add_argument("--estimate", action="store_true", help="with a grading model: tell calls and cost, stop")
    p.add_argument("--json", action="store_true", help="the figures as one JSON object on standard output")
    return p


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is no share; 0.02 is two in a hundred")
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    kept = "interrupted; grades that were paid for are kept, run again to go on"
    return attempt(parser(), arguments, _run, kept)


def _run(args: argparse.Namespace) -> int:
    from importlib import import_module

    # By name: type checkers cannot follow a package whose folder stands elsewhere.
    status: int = import_module("crag.eval.calibrating.run").run(args)
    return status


if __name__ == "__main__":
    finish(main)
