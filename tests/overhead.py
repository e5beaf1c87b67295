"""`python -m tests.overhead`: what the graphs themselves cost a question, beside bare ones of as many steps.

Parts that answer at once stand in for retrieval, grading and writing: what is left is the graph and the
bookkeeping. The bare graph has empty steps, as many as the question's path, and a task for each document.
"""

import asyncio
import sys
import time
from operator import add
from statistics import median
from typing import Annotated, Any, TypedDict

from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from crag import Settings, aask

QUESTIONS, ROUNDS = 100, 5
SHELF = [Document(f"Passage {n} says that HyDE writes a hypothetical answer.", id=str(n)) for n in range(4)]
STEPS = {"crag": 4, "batched": 5, "agentic": 5, "fixed": 2}
"""Steps on the path of a question that its documents answer."""


class State(TypedDict, total=False):
    question: str
    path: Annotated[list[str], add]


def bare(steps: int, tasks: int) -> Any:
    """A graph of empty steps one after the other; behind the first one `tasks` run side by side."""
    graph = StateGraph(State)

    async def nothing(state: State) -> State:
        return {"path": ["step"]}

    names = [f"step{n}" for n in range(steps)]
    for name in [*names, "task"]:
        graph.add_node(name, nothing)
    graph.add_edge(START, names[0])
    graph.add_conditional_edges(
        names[0], lambda state: [Send("task", state)] * tasks or names[1], ["task", names[1]]
    )
    graph.add_edge("task", names[1])
    for one, other in zip(names[1:], [*names[2:], END], strict=True):
        graph.add_edge(one, other)
    return graph.compile()


async def per_question(ask: Any) -> float:
    """Milliseconds a question, the median of ROUNDS."""
    await ask()
    took = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for _ in range(QUESTIONS):
            await ask()
        took.append((time.perf_counter() - began) / QUESTIONS * 1000)
    return median(took)


async def main() -> None:
    """Print a line for each graph."""
    settings = Settings(_env_file=None, web="off", check=False)
    model = FakeListChatModel(responses=["HyDE writes a hypothetical answer [1]."])

    def retrieve(question: str, k: int) -> list[Document]:
        return SHELF[:k]

    for name, steps in STEPS.items():

        async def ours(name: str = name) -> None:
            await aask(
                "What does HyDE write?",
                settings=settings,
                graph=name,
                retriever=retrieve,
                grader=lambda question, document: 0.9,
                model=model,
            )

        runnable = bare(steps, 0 if name in {"fixed", "batched"} else len(SHELF))

        async def theirs(runnable: Any = runnable) -> None:
            await runnable.ainvoke({"question": "What does HyDE write?"})

        mine, bare_one = await per_question(ours), await per_question(theirs)
        sys.stdout.write(
            f"{name:8} {mine:6.2f} ms a question; bare graph of {steps} steps {bare_one:5.2f} ms\n"
        )


if __name__ == "__main__":
    asyncio.run(main())
