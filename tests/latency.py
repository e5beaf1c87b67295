"""`python -m tests.latency`: calls, rounds and seconds of every path, with a model that takes 200 ms a call.

Each path runs once to warm up and once to be measured, through the real client against a loopback server.
A round is a link in the longest chain of model calls that waited for one another.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from langchain_core.documents import Document

from crag import Settings, aask
from tests.openai_server import OpenAIServer
from tests.rounds import rounds

LATENCY = 0.2
PATHS = [
    ("fixed", 4, "", 0.0),
    ("crag", 4, "correct", 0.9),
    ("crag", 8, "correct", 0.9),
    ("crag", 4, "ambiguous", 0.5),
    ("crag", 4, "incorrect", 0.1),
    ("batched", 5, "correct", 0.9),
    ("batched", 5, "ambiguous", 0.5),
    ("batched", 5, "incorrect", 0.1),
    ("agentic", 4, "correct", 0.9),
    ("agentic", 4, "corrected", 0.1),
]


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
        return "Tides follow the moon." if "pick from a web page" in system else "It is so [1]."

    return reply


async def retrieve(question: str, k: int) -> list[Document]:
    """As many passages as wanted, new ones for each query."""
    return [
        Document(
            id=f"{question} {n}", page_content=f"Passage {n} about {question}.", metadata={"source": "kb"}
        )
        for n in range(k)
    ]


def search(query: str, limit: int) -> list[dict[str, str]]:
    """As many pages as wanted."""
    return [
        {"title": f"Page {n}", "url": f"https://example.org/{n}", "content": f"{n}: Tides follow the moon."}
        for n in range(limit)
    ]


async def measure(graph: str, k: int, score: float) -> tuple[int, int, int, float]:
    """Model calls, searches, rounds and seconds of one path."""
    with OpenAIServer(model(score), latency=LATENCY) as server:
        settings = Settings(_env_file=None, base_url=server.url, model="scripted", k=k, concurrency=16)
        for _ in range(2):
            server.requests.clear()
            answer = await aask("Why?", settings=settings, graph=graph, retriever=retrieve, web_search=search)
        usage = answer.usage
        return usage.llm_calls, usage.web_calls, rounds(server), answer.timings.total_s


def main() -> None:
    """Print the table in Markdown."""
    print_line = sys.stdout.write
    print_line(
        "| graph | k | path | model calls | searches | rounds | seconds |\n|---|---|---|---|---|---|---|\n"
    )
    for graph, k, path, score in PATHS:
        calls, web, chain, seconds = asyncio.run(measure(graph, k, score))
        print_line(f"| {graph} | {k} | {path} | {calls} | {web} | {chain} | {seconds:.2f} |\n")


if __name__ == "__main__":
    main()
