"""`python eval/benchmark.py`, `python -m crag.eval.benchmark`: systems compared on a set of questions."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

DESCRIPTION = """\
Find out what correction is worth on your questions. Every system answers every question from the same
knowledge base; the answers are measured, and the differences come with intervals that say whether they are
more than noise. Each answer is kept as soon as it is there, so a run that was stopped goes on by --resume.
Without --dataset the sample questions are asked about the sample documents: no key, no network.
"""

EXAMPLES = """\
examples:
  python eval/benchmark.py                                            the sample set, fixed against crag
  python eval/benchmark.py --dataset my.jsonl --kb .crag/kb            your questions, your documents
  python eval/benchmark.py --systems fixed,crag,crag:aggregate=mean    a third system with another setting
  python eval/benchmark.py --group article                             only that group of the sample set
  python eval/benchmark.py --metrics answer_match,refusal_accuracy     only these
  python eval/benchmark.py --repeats 3 --max-cost 2                    the judge's noise, for $2 at most
  python eval/benchmark.py --resume --out DIR                          go on after Ctrl-C or a crash
  python eval/benchmark.py --record-web web.jsonl                      search the live web once, ...
  python eval/benchmark.py --web-snapshot web.jsonl                    ... and what it found from then on
  python eval/benchmark.py --baseline old/result.json --max-drop answer_match=0.02 --fail-under accuracy=0.8

question sets (JSONL, JSON or CSV):
  {"question": "…", "answers": ["…"], "reference": "…", "in_kb": true, "gold_ids": ["…"]}, where all but the
  question may be missing; RAGAS's column names are read too. See docs/benchmark.md.

judge:
  RAGAS's metrics need a model that judges: CRAG_JUDGE_MODEL, CRAG_JUDGE_BASE_URL, CRAG_JUDGE_API_KEY, by
  default the one that answers. Without one, everything else is measured.

exit status:
  0 done; 1 a gate failed, or it could not be done; 2 wrong usage or configuration; 130 interrupted
"""


def parser() -> argparse.ArgumentParser:
    """The command line, without importing anything heavy."""
    from crag.cli.shell import Parser, value

    p = Parser(prog="python eval/benchmark.py", description=DESCRIPTION, epilog=EXAMPLES)
    p.allow_abbrev = False  # the line that tells how to resume must know the flags
    add = p.add_argument
    add("--dataset", metavar="FILE", type=value, help="the questions (default: the sample set)")
    add(
        "--kb",
        metavar="DIR",
        type=value,
        help="folder of the knowledge base (default: CRAG_KB, or the sample's own)",
    )
    add(
        "--systems",
        metavar="S,…",
        type=value,
        default="fixed,crag",
        help="graphs, with settings of their own as in crag:aggregate=mean,k=8; the first is the baseline "
        "(default fixed,crag)",
    )
    add("--metrics", metavar="M,…", type=value, help="what to measure (default: all that can be)")
    add("--judge", action=argparse.BooleanOptionalAction, help="insist on the judge, or do without it")
    add("--repeats", metavar="N", type=_positive, default=1, help="judge each answer N times (default 1)")
    add("--group", metavar="G,…", type=value, help="only the questions of these groups")
    add("--limit", metavar="N", type=_positive, help="only N questions, spread over groups and languages")
    add("--out", metavar="DIR", type=value, help="where results go (default .crag/benchmark/TIME)")
    add("--resume", action="store_true", help="go on with what --out (default: the latest run) lacks")
    add(
        "--web-snapshot",
        metavar="FILE",
        type=value,
        help="a JSONL of title, url, text that stands for the web",
    )
    add(
        "--record-web",
        metavar="FILE",
        type=value,
        help="search the live web and write what it says as a snapshot",
    )
    add("--max-cost", metavar="USD", type=_dollars, help="stop when this much is spent, the judge included")
    add("--baseline", metavar="FILE", type=value, help="an earlier result.json, for --max-drop")
    add(
        "--fail-under",
        metavar="METRIC=V",
        action="append",
        default=[],
        help="exit 1 if a mean is worse than V; METRIC of the last system, or SYSTEM.METRIC; repeatable",
    )
    add(
        "--max-drop",
        metavar="METRIC=V",
        action="append",
        default=[],
        help="exit 1 if a mean is worse than the baseline's by more than V; repeatable",
    )
    return p


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 on")
    return number


def _dollars(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = -1.0
    if not 0 <= amount < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount of dollars")
    return amount


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    from crag.cli.shell import attempt

    return attempt(parser(), arguments, _run)


def _run(args: argparse.Namespace) -> int:
    from .comparing.session import run

    return run(args)


if __name__ == "__main__":
    if __package__:
        from crag.cli.shell import finish

        finish(main)
    # Run as a file, the folder of this file comes first where modules are looked for, and hides some of
    # Python's own; the package is found where it is installed.
    here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != here]
    import runpy
    from importlib.util import find_spec

    if find_spec("crag") is None:
        sys.exit(
            "crag: not installed for this Python; run make setup, then .venv/bin/python eval/benchmark.py"
        )
    runpy.run_module("crag.eval.benchmark", run_name="__main__")
