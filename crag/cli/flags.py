"""The flags of `python -m crag.run`, and the settings they make."""

import argparse
from typing import TYPE_CHECKING

from crag.base.errors import SettingsError
from crag.cli.shell import Parser

if TYPE_CHECKING:
    from crag.settings.settings import Settings

DESCRIPTION = """\
Ask a question about your documents. Every retrieved document is scored from 0 to 1 and the verdict on
them decides what happens: correct uses the knowledge base, ambiguous adds the web, incorrect replaces
it by the web. Without a key everything runs on this machine and the answer quotes your documents.
"""

EXAMPLES = """\
examples:
  python -m crag.ingest my-documents/               build the knowledge base, again to update it
  python -m crag.run "Which chunk size fits FAQs?"  ask
  python -m crag.run "什么是 HyDE？" --verbose        ask in Chinese, see every document's score
  echo "What is RRF?" | python -m crag.run --json   one JSON object, for programs
  CRAG_WEB=duckduckgo python -m crag.run "…"        let corrections search the web
  python -m crag.run "…" --where lang=zh --where source=handbook.md   only passages that carry both
  python -m crag.run "And why?" --thread work       go on with a conversation

settings:
  The environment or a .env file (see .env.example): OPENAI_API_KEY, OPENAI_BASE_URL and CRAG_MODEL for
  a model, TAVILY_API_KEY or CRAG_WEB for the web. Flags beat the environment, which beats .env.
  python -m crag.doctor tests them one by one.

exit status:
  0 answered or honestly refused; 1 it could not be done; 2 wrong usage or configuration;
  130 interrupted
"""


def parser() -> argparse.ArgumentParser:
    """The command line, without importing anything heavy."""
    p = Parser("python -m crag.run", DESCRIPTION, EXAMPLES)
    p.add_argument(
        "question", nargs="?", metavar="QUESTION", help="the question; - or a pipe reads standard input"
    )
    add_flags(p)
    p.add_argument("--json", action="store_true", help="one JSON object on standard output")
    p.add_argument(
        "--stream",
        action=argparse.BooleanOptionalAction,
        help="write the answer as it comes (the default on a terminal); with --on-ungrounded retry, once it "
        "has been checked",
    )
    p.add_argument(
        "--verbose", action="store_true", help="show every document with its score, seconds and models"
    )
    return p


def add_flags(p: argparse.ArgumentParser) -> None:
    """The flags of every command that asks, which `settings_of` reads."""
    p.add_argument(
        "--graph",
        metavar="G",
        help="crag (default), batched, agentic, or fixed: no correction",
    )
    p.add_argument("-k", metavar="N", help="documents to retrieve (default 4)")
    p.add_argument("--kb", metavar="DIR", help="folder of the knowledge base (default .crag/kb)")
    p.add_argument(
        "--where",
        action="append",
        metavar="KEY=VALUE",
        help="find only passages that carry this; repeat it for more, all must hold",
    )
    p.add_argument(
        "--model", metavar="NAME", help="model that answers, and grades unless CRAG_GRADER_MODEL is set"
    )
    p.add_argument("--evaluator", metavar="E", help="who scores documents: auto (default), llm or embedded")
    p.add_argument(
        "--upper", metavar="S", help="a score from here on makes the verdict correct (default 0.7)"
    )
    p.add_argument("--lower", metavar="S", help="a score up to here makes it incorrect (default 0.3)")
    p.add_argument("--aggregate", metavar="A", help="how scores become one: max (default) or mean")
    p.add_argument(
        "--calibration",
        metavar="FILE",
        help="thresholds that crag.calibrate found (CRAG_CALIBRATION); or off",
    )
    p.add_argument("--web", metavar="W", help="auto (default), tavily, duckduckgo, searxng, snapshot or off")
    p.add_argument(
        "--web-snapshot", metavar="FILE", help="a JSONL of title, url, text to search instead of the web"
    )
    p.add_argument(
        "--no-web", action="store_true", help="nothing leaves this machine but calls to your model"
    )
    p.add_argument(
        "--check",
        action=argparse.BooleanOptionalAction,
        help="check that the answer says only what its sources say (agentic checks unless told not to)",
    )
    p.add_argument(
        "--on-ungrounded",
        metavar="A",
        help="an answer that fails the check: report (default), or retry: it is written once more from what "
        "its sources support and refused if that fails too; turns the check on",
    )
    p.add_argument(
        "--route",
        action=argparse.BooleanOptionalAction,
        help="answer greetings, thanks and requests to reword the last answer without retrieval",
    )
    p.add_argument("--max-llm-calls", metavar="N", help="at most N requests to models for this question")
    p.add_argument(
        "--max-cost-usd", metavar="USD", help="at most so many dollars, by CRAG_PRICE_INPUT and _OUTPUT"
    )
    p.add_argument(
        "--cache",
        metavar="FILE",
        help="keep replies of models in this file; the same call then costs nothing",
    )
    p.add_argument("--no-cache", action="store_true", help="ask models anew although CRAG_CACHE is set")
    p.add_argument(
        "--thread",
        metavar="ID",
        help="keep a conversation under this name; a follow-up is understood from what was said before "
        "(with a model, one call from the second question on)",
    )


def settings_of(args: argparse.Namespace) -> "Settings":
    """The settings with the flags above the environment. Raises SettingsError."""
    from crag.settings.settings import GRAPHS, Settings

    if args.graph is not None and args.graph not in GRAPHS:
        raise SettingsError(f"no graph named {args.graph!r}; there are {', '.join(GRAPHS)}")
    names = (
        "k",
        "kb",
        "where",
        "model",
        "evaluator",
        "upper",
        "lower",
        "aggregate",
        "calibration",
        "check",
        "on_ungrounded",
        "route",
        "web",
        "web_snapshot",
        "max_llm_calls",
        "max_cost_usd",
        "cache",
    )
    flags = {name: value for name in names if (value := getattr(args, name)) is not None}
    if args.web_snapshot and not args.web:
        flags["web"] = "snapshot"
    if args.no_cache:
        flags["cache"] = None
    if args.no_web:
        flags["web"] = "off"
    settings = Settings(**flags)
    if settings.web == "snapshot" and settings.web_snapshot and not settings.web_snapshot.is_file():
        raise SettingsError(
            f"no web snapshot at {settings.web_snapshot}; give a JSONL file of title, url and text, "
            "or --no-web"
        )
    return settings
