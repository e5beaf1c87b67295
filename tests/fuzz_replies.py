"""`python -m tests.fuzz_replies --replies 100000`: generated replies through every reader, and the outcome.

A misreading is a value other than the truth; what is unread is none, but is counted, so that it stays rare.
Exit status 1 when a reader raised or misread.
"""

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from crag.judging.queries import KeywordRewriter
from crag.replies.checks import read_grounded
from crag.replies.citations import CitationFilter
from crag.replies.claims import read_claims
from crag.replies.judgements import read_judgement
from crag.replies.pages import read_pages
from crag.replies.queries import read_queries
from crag.replies.score_lists import read_scores
from crag.replies.scores import read_score
from crag.replies.thinking import strip_thinking
from tests.support.replies.case import Case, Maker
from tests.support.replies.lists import lists
from tests.support.replies.pages import pages
from tests.support.replies.scores import scores
from tests.support.replies.verdicts import claims, verdicts
from tests.support.replies.writings import answers, queries, query_lists

MAKERS: list[Maker] = [
    scores,
    scores,
    scores,
    lists,
    lists,
    verdicts,
    claims,
    queries,
    query_lists,
    answers,
    pages,
]


class Said:
    """A model that says one thing, its thoughts removed as `ChatModel` removes them."""

    name = "said"

    def __init__(self, reply: str) -> None:
        self._reply = strip_thinking(reply)

    async def __call__(self, _: Any) -> str:
        return self._reply


def _read_list(case: Case) -> tuple[bool, bool]:
    read = read_scores(case.reply, case.size)
    if read is None:
        return any(case.truth), False
    wrong = any(got is not None and got != true for got, true in zip(read, case.truth, strict=True))
    return read != case.truth, wrong


def _read_answer(case: Case) -> tuple[bool, bool]:
    text, cited = case.truth
    whole = CitationFilter(case.size)
    shown = whole.feed(strip_thinking(case.reply)) + whole.end()
    pieces = CitationFilter(case.size, wary=True)
    streamed = (
        "".join(pieces.feed(case.reply[at : at + 5]) for at in range(0, len(case.reply), 5)) + pieces.end()
    )
    return False, (shown, whole.cited) != (text, cited) or streamed != shown


def _one(read: Callable[[str], Any]) -> Callable[[Case], tuple[bool, bool]]:
    def outcome(case: Case) -> tuple[bool, bool]:
        got = read(case.reply)
        return got is None and case.truth is not None, got is not None and got != case.truth

    return outcome


def _read_claims(reply: str) -> list[tuple[str, list[int]]] | None:
    found = read_claims(reply)
    return None if found is None else [(claim["text"], claim["supported_by"]) for claim in found]


def _rewritten(reply: str) -> str | None:
    # A loop would cost more than the reading; nothing in here waits.
    try:
        KeywordRewriter(Said(reply))("?").send(None)
    except StopIteration as done:
        return None if done.value == "?" else str(done.value)
    raise AssertionError("the rewriter waited for something")


def _judged(case: Case) -> tuple[bool, bool]:
    """A score reply as the reason grader reads it; words alone have a worth of their own there."""
    judged = read_judgement(case.reply)
    unread = judged is None or judged.ambiguous
    wrong = case.truth is not None and judged is not None and not unread and judged.score != case.truth
    return unread and case.truth is not None, wrong


def _read_pages(case: Case) -> tuple[bool, bool]:
    texts, truth = case.truth
    got = read_pages(strip_thinking(case.reply), texts)
    pairs = list(zip(got, truth, strict=True))
    unread = any(found is None and share is not None for found, share in pairs)
    # The order of a page's lines is the reply's; what was copied is what counts.
    wrong = (
        found is not None and (share is None or sorted(found) != sorted(share)) for found, share in pairs
    )
    return unread, any(wrong)


READERS: dict[str, Callable[[Case], tuple[bool, bool]]] = {
    "score": _one(read_score),
    "list": _read_list,
    "verdict": _one(read_grounded),
    "claims": _one(_read_claims),
    "query": _one(_rewritten),
    "queries": _one(lambda reply: read_queries(reply) or None),
    "answer": _read_answer,
    "judgement": _judged,
    "pages": _read_pages,
}


@dataclass
class Tally:
    """What became of the replies of one kind."""

    replies: int = 0
    unread: int = 0
    misread: list[Case] = field(default_factory=list)
    unread_cases: list[Case] = field(default_factory=list)
    raised: list[tuple[Case, str]] = field(default_factory=list)


def cases(seed: int) -> Iterator[Case]:
    """All kinds in turn; every third score is also read as a judgement with a reason."""
    random = Random(seed)
    streams = [make(random) for make in MAKERS]
    while True:
        for stream in streams:
            case = next(stream)
            yield case
            if case.reader == "score" and random.random() < 0.3:
                yield case._replace(reader="judgement")


def run(replies: int, seed: int) -> dict[tuple[str, str], Tally]:
    """Read so many generated replies; tallies by reader and kind."""
    tallies: defaultdict[tuple[str, str], Tally] = defaultdict(Tally)
    for case, _ in zip(cases(seed), range(replies), strict=False):
        tally = tallies[case.reader, case.kind]
        tally.replies += 1
        try:
            unread, misread = READERS[case.reader](case)
        except Exception as error:  # noqa: BLE001 - whatever a reader raises is what is looked for
            tally.raised.append((case, f"{type(error).__name__}: {error}"))
            continue
        tally.unread += unread
        if unread:
            tally.unread_cases.append(case)
        if misread:
            tally.misread.append(case)
    return dict(tallies)


def report(tallies: dict[tuple[str, str], Tally], *, kinds: bool) -> str:
    """A table by reader, or by reader and kind, with examples of what went wrong."""
    rows: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for (reader, kind), tally in sorted(tallies.items()):
        row = rows[f"{reader}: {kind}" if kinds else reader]
        row.update(
            replies=tally.replies, unread=tally.unread, misread=len(tally.misread), raised=len(tally.raised)
        )
    lines = [f"{'':44}{'replies':>9}{'unread':>9}{'misread':>9}{'raised':>8}"]
    for name, row in rows.items():
        share = f"{row['unread'] / row['replies']:.1%}"
        lines.append(f"{name:44}{row['replies']:9}{share:>9}{row['misread']:9}{row['raised']:8}")
    for (reader, kind), tally in sorted(tallies.items()):
        lines += [f"raised  {reader}: {kind}: {error} {case.reply!r}" for case, error in tally.raised[:3]]
        lines += [f"misread {reader}: {kind}: {case.truth!r} {case.reply!r}" for case in tally.misread[:3]]
        if kinds:
            lines += [
                f"unread  {reader}: {kind}: {case.truth!r} {case.reply!r}" for case in tally.unread_cases[:3]
            ]
    return "\n".join(lines)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz_replies", description=__doc__)
    parser.add_argument("--replies", type=int, default=100_000, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--kinds", action="store_true", help="a row and unread examples for each kind")
    args = parser.parse_args()
    began = time.perf_counter()
    tallies = run(args.replies, args.seed)
    sys.stdout.write(report(tallies, kinds=args.kinds) + "\n")
    sys.stdout.write(f"{args.replies} replies in {time.perf_counter() - began:.0f} s, seed {args.seed}\n")
    return int(any(tally.raised or tally.misread for tally in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
