"""A scripted model that tells crag's calls apart, and a tiny knowledge base: for whole conversations."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from langchain_core.documents import Document

from crag import Answer, Settings, aask
from tests.support.openai_server import OpenAIServer, Reply

TEXTS = {
    "tower": "The tower was built in 1889 by an engineer from Dijon and his company. "
    "It is 330 metres high with the antennas that stand on top of it. "
    "Painters repaint all of the ironwork every seven years by hand.",
    "bridge": "The bridge opened in 1932 after eight years of work. It has a toll for cars that go south.",
    "塔": "这座塔由一位来自第戎的工程师和他的公司建于1889年。算上塔顶的天线，这座铁塔的总高度达到了330米。"
    "油漆工人每七年就要用手工把全部钢铁构件重新刷一遍漆。",
}

CALLS = {
    "route": ("Choose one route", "选择一个去向"),
    "standalone": ("You rewrite the last message", "改写成脱离对话"),
    "direct": ("You speak for a program", "程序说话"),
    "check": ("check whether an answer", "负责核查一个回答"),
    "grade_batch": ("numbered passages", "段带编号的文字"),
    "grade_strips": ("numbered sentences", "个带编号的句子"),
    "grade": ("one document answers", "一篇文档"),
    "alternatives": ("other queries for the same need", "不同的查询"),
    "rewrite": ("query for a web search engine", "搜索引擎的查询词"),
    "generate": ("from the sources below", "依据下面的资料"),
}


def call_of(messages: list[dict[str, Any]]) -> str:
    """Which of crag's prompts a request was made from."""
    system = messages[0]["content"]
    return next(call for call, marks in CALLS.items() if any(mark in system for mark in marks))


def calls(server: OpenAIServer) -> list[str]:
    """The calls that were made, those that grade left out."""
    return [call for request in server.chats if not (call := call_of(request.messages)).startswith("grade")]


def model(**said: Any) -> Callable[[list[dict[str, Any]]], "str | Reply"]:
    """Replies by call; a list is said one after another. Everything is graded as good."""
    queues: dict[str, Iterator[Any]] = {call: iter(r) for call, r in said.items() if isinstance(r, list)}

    def reply(messages: list[dict[str, Any]]) -> "str | Reply":
        call = call_of(messages)
        if call in queues:
            return next(queues[call])
        if call in said:
            return said[call]
        system = messages[0]["content"]
        if call == "grade":
            reasoned = "First say" in system or "先用一句话" in system
            return "Reason: has it\nScore: 0.9" if reasoned else "0.9"
        count = re.search(r"\d+", system.split("\n")[0])
        assert count
        return "\n".join(f"{n}: 5" for n in range(1, int(count[0]) + 1))

    return reply


class Library:
    """A retriever over TEXTS by shared words, which remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, question: str, k: int) -> list[Document]:
        self.asked.append(question)
        found = [name for name in TEXTS if name in question] or ["tower", "bridge"]
        return [
            Document(id=name, page_content=TEXTS[name], metadata={"source": f"{name}.md", "title": name})
            for name in found
        ]


async def ask(
    question: str,
    server: OpenAIServer | None = None,
    *,
    retriever: Any = None,
    on_text: Any = None,
    graph: str = "crag",
    threads: Path | None = None,
    **settings: Any,
) -> Answer:
    """One question; with `threads` in the one thread that is kept there."""
    model_settings = {"base_url": server.url, "model": "scripted", "retries": 0} if server else {}
    kept = {"threads": threads} if threads else {}
    return await aask(
        question,
        settings=Settings(_env_file=None, web="off", **{"check": False} | model_settings | kept | settings),
        graph=graph,
        retriever=retriever or Library(),
        on_text=on_text,
        thread="t" if threads else None,
    )
