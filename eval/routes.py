"""`python eval/routes.py DIR`: does every question take the right way, and is a gold document ever lost?

DIR holds kb.jsonl (the knowledge base), web.jsonl (the snapshot that stands for the web) and questions.jsonl
with `group`, `lang`, `expect` (use_kb, use_web, abstain) and `gold_kb_ids`. Everything runs embedded through
the product's own ingestion and graph. A route is judged by what was used, whatever the verdict is called:

- use_kb:  the context is of the knowledge base, and the web was not searched;
- use_web: the web was searched;
- abstain: the run refuses.

A gold document is lost where it was retrieved, but is not in the context. Without a model `agentic` goes by
the best score, as the others do by default, and its correction is the web alone: nobody writes other queries.
"""

import argparse
import asyncio
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from crag.base.answer import Answer
from crag.base.choices import Aggregate
from crag.base.errors import CragError
from crag.base.files import json_objects
from crag.pipeline import aask
from crag.settings.settings import GRAPHS, Settings

searched = import_module("crag.eval.data.matching").searched

AT_ONCE = 4

AGGREGATES: dict[str, tuple[Aggregate, ...]] = {"agentic": ("max",), "fixed": ("max",)}
"""Graphs whose aggregate cannot be set, with theirs; the others are run with both."""


@dataclass(frozen=True)
class Outcome:
    """What became of one question; gold fields are None where no gold document exists."""

    group: str
    lang: str
    right: bool
    verdict: str
    gold_retrieved: bool | None
    gold_kept: bool | None
    answered: bool
    answer_holds_gold: bool


def outcome(question: dict[str, Any], answer: Answer, texts: dict[str, str]) -> Outcome:
    """Judge one answer."""
    right = {
        "use_kb": not searched(answer) and any(d.kept and d.origin == "kb" for d in answer.documents),
        "use_web": searched(answer),
        "abstain": not answer.answered,
    }[question["expect"]]
    gold = [_bare(texts[key]) for key in question.get("gold_kb_ids", [])]
    found = [d for d in answer.documents if d.origin == "kb" and _is_gold(d.text, gold)]
    return Outcome(
        group=question["group"],
        lang=question["lang"],
        right=right,
        verdict=answer.verdict or "",
        gold_retrieved=bool(found) if gold else None,
        gold_kept=any(d.kept for d in found) if gold else None,
        answered=answer.answered,
        answer_holds_gold=any(_holds(answer.answer, one) for one in question.get("answers", [])),
    )


def _holds(text: str, alternative: str | list[str]) -> bool:
    parts = [alternative] if isinstance(alternative, str) else alternative
    return all(_bare(part) in _bare(text) for part in parts)


def _bare(text: str) -> str:
    return "".join(text.split()).casefold()


def _is_gold(text: str, gold: Iterable[str]) -> bool:
    """Whether a text is a gold passage, or a part or the refined sentences of one."""
    bare = _bare(text)
    lines = [_bare(line) for line in text.splitlines() if line.strip()]
    return any(whole in bare or all(line in whole for line in lines) for whole in gold)


async def run(
    questions: list[dict[str, Any]], texts: dict[str, str], settings: Settings, graph: str
) -> list[Outcome]:
    """Ask every question, a few at a time."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(question: dict[str, Any]) -> Outcome:
        async with turn:
            return outcome(question, await aask(question["question"], settings=settings, graph=graph), texts)

    return await asyncio.gather(*(one(question) for question in questions))


def table(name: str, outcomes: list[Outcome]) -> str:
    """Markdown: a row per group and language, and the totals."""
    rows = [
        f"| {name} | n | route right | correct / ambiguous / incorrect | gold in top k | gold lost "
        "| answered | gold in answer |",
        "|---|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for o in outcomes:
        groups[o.group, o.lang].append(o)
        groups["all", o.lang].append(o)
        groups["all", ""].append(o)
    for (group, lang), found in sorted(groups.items(), key=lambda item: (item[0][0] == "all", item[0])):
        verdicts = [sum(o.verdict == v for o in found) for v in ("correct", "ambiguous", "incorrect")]
        golden = [o for o in found if o.gold_retrieved is not None]
        recall = _share([bool(o.gold_retrieved) for o in golden])
        lost = _share([bool(o.gold_retrieved) and not o.gold_kept for o in golden])
        rows.append(
            f"| {group} {lang} | {len(found)} | {_share([o.right for o in found])} | "
            f"{' / '.join(map(str, verdicts))} | {recall} | {lost} | {_share([o.answered for o in found])} | "
            f"{_share([o.answer_holds_gold for o in found])} |"
        )
    return "\n".join(rows)


def _share(values: list[bool]) -> str:
    return f"{sum(values) / len(values):.3f}" if values else "–"


def main() -> int:
    """Ingest, ask, print; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "data", type=Path, metavar="DIR", help="folder of kb.jsonl, web.jsonl, questions.jsonl"
    )
    parser.add_argument(
        "--graph", choices=GRAPHS, default="crag", help="the graph to ask (default: %(default)s)"
    )
    parser.add_argument(
        "--kb", type=Path, help="where to build the knowledge base (default: a temporary folder)"
    )
    parser.add_argument("--limit", type=int, help="only the first N questions of each group and language")
    args = parser.parse_args()

    from crag.knowledge.ingestion import ingest

    questions = json_objects(args.data / "questions.jsonl")
    if args.limit:
        seen: dict[tuple[str, str], int] = defaultdict(int)
        chosen = []
        for question in questions:
            key = question["group"], question["lang"]
            seen[key] += 1
            if seen[key] <= args.limit:
                chosen.append(question)
        questions = chosen
    texts = {row["id"]: row["text"] for row in json_objects(args.data / "kb.jsonl")}
    with tempfile.TemporaryDirectory() as scratch:
        base = {
            "kb": args.kb or Path(scratch) / "kb",
            "web_snapshot": args.data / "web.jsonl",
            "web": "snapshot",
        }
        ingest([args.data / "kb.jsonl"], Settings(**base))
        for aggregate in AGGREGATES.get(args.graph, ("max", "mean")):
            settings = Settings(**base, aggregate=aggregate, evaluator="embedded")
            outcomes = asyncio.run(run(questions, texts, settings, args.graph))
            sys.stdout.write(table(f"{args.graph}, {aggregate}", outcomes) + "\n\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CragError as error:
        sys.exit(f"crag: {error}")
