"""`python -m tests.latency`: calls, rounds and seconds of every path, with a model that takes 200 ms a call.

Each path runs once to warm up and once to be measured, through the real client against a loopback server.
A round is a link in the longest chain of model calls and web searches that waited for one another. Beside
each path stands what published systems need for it, by our reading of their code and articles: k documents
as they have them, "+ web" for a search, and all of it in so many rounds.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from langchain_core.documents import Document

from crag import Settings, aask
from tests.support.openai_server import OpenAIServer
from tests.support.rounds import rounds

LATENCY = 0.2


class Path(NamedTuple):
    """A path of a graph, the score that leads onto it, and what others need for it."""

    graph: str
    k: int
    name: str
    score: float
    published: str


_LLM_IN_ACTION = "llm-in-action 15-crag"
_ARTICLE = "batched-evaluator article, raglib-py 2.0"
_RUST = "langchainrust CorrectiveRAG"

PATHS = [
    Path("fixed", 4, "", 0.0, "naive RAG: 1 in 1"),
    Path("crag", 4, "correct", 0.9, f"{_LLM_IN_ACTION}, LangGraph's notebook: 5 in 5"),
    Path("crag", 4, "ambiguous", 0.5, f"{_LLM_IN_ACTION}: 6 + web in 7"),
    Path("crag", 4, "incorrect", 0.1, f"{_LLM_IN_ACTION}, LangGraph's notebook: 6 + web in 7"),
    Path("batched", 5, "correct", 0.9, f"{_ARTICLE}: 3 in 3"),
    Path("batched", 5, "ambiguous", 0.5, f"{_ARTICLE}: 4 + web in 5"),
    Path("batched", 5, "incorrect", 0.1, f"{_ARTICLE}: 3 + web in 4"),
    Path("agentic", 4, "correct", 0.9, f"{_RUST}: 6 in 3"),
    Path("agentic", 4, "corrected", 0.1, f"{_RUST}: up to 19 + web in 6"),
]


class Measured(NamedTuple):
    """Model calls, searches, rounds of both, and seconds of one run."""

    calls: int
    searches: int
    rounds: int
    seconds: float


def model(score: float) -> Callable[[list[dict[str, Any]]], str]:
    """A model that gives every document of the knowledge base the same score, and those of the web .9."""

    def reply(messages: list[dict[str, Any]]) -> str:
        system, user = messages[0]["content"], messages[-1]["content"]
        given = 0.9 if "example.org" in user else score
        if "numbered passages" in system:
            return "\n".join(f"{n}: {round(1 + 4 * given)}" for n in range(1, 6))
        if "numbered sentences" in system:
            return "\n".join(f"{n}: 5" for n in range(1, 40))
        if "First say in one sentence" in system:
            return f"Reason: as it says\nScore: {given}"
        if "Score (0 to 1)" in user:
            return str(given)
        if "other queries" in system:
            return "1. one way\n2. another way\n3. a third way"
        if "check whether an answer" in system:
            return "It is so | [1]\nVerdict: grounded"
        if "pick from numbered web pages" in system:
            return "\n".join(f"[{n}]\nTides follow the moon." for n in range(1, 4))
        return "It is so [1]."

    return reply


async def retrieve(question: str, k: int) -> list[Document]:
    """As many passages as wanted, new ones for each query."""
    return [
        Document(
            id=f"{question} {n}", page_content=f"Passage {n} about {question}.", metadata={"source": "kb"}
        )
        for n in range(k)
    ]


@dataclass
class Search:
    """One web search, seconds as in `rounds`."""

    start: float
    end: float


async def measure(path: Path, *, latency: float = LATENCY) -> Measured:
    """A run of a path, after one to warm up, with a model and a web that take `latency` seconds a call."""
    searches: list[Search] = []

    async def search(query: str, limit: int) -> list[dict[str, str]]:
        begun = time.perf_counter()
        await asyncio.sleep(server.latency)
        searches.append(Search(begun, time.perf_counter()))
        return [
            {
                "title": f"Page {n}",
                "url": f"https://example.org/{n}",
                "content": f"{n}. Tides follow the moon.",
            }
            for n in range(limit)
        ]

    with OpenAIServer(model(path.score)) as server:
        settings = Settings(_env_file=None, base_url=server.url, model="scripted", k=path.k, concurrency=16)
        for server.latency in (0.0, latency):
            server.requests.clear()
            searches.clear()
            answer = await aask(
                "Why?", settings=settings, graph=path.graph, retriever=retrieve, web_search=search
            )
        usage = answer.usage
        return Measured(usage.llm_calls, usage.web_calls, rounds(server, searches), answer.timings.total_s)


def main() -> None:
    """Print the table in Markdown."""
    print_line = sys.stdout.write
    print_line("| graph | k | path | model calls | rounds | seconds | published, calls in rounds |\n")
    print_line("|---|---|---|---|---|---|---|\n")
    for path in PATHS:
        found = asyncio.run(measure(path))
        calls = f"{found.calls} + web" if found.searches else str(found.calls)
        print_line(
            f"| {path.graph} | {path.k} | {path.name} | {calls} | {found.rounds} | {found.seconds:.2f} "
            f"| {path.published} |\n"
        )


if __name__ == "__main__":
    main()
