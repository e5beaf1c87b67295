from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from pydantic import SecretStr

from crag.base.interfaces import Grade
from crag.base.metering import metered
from crag.judging.grading import BatchGrader, EachGrader, as_unit
from crag.judging.refinement import ModelStripRefiner
from crag.models.chat import ChatModel, chat_model
from crag.settings.endpoints import Endpoint
from crag.settings.settings import Settings
from tests.support.openai_server import OpenAIServer, Reply, openai_server

__all__ = ["openai_server"]
Serve = Callable[..., OpenAIServer]


def chat(server: OpenAIServer) -> ChatModel:
    settings = Settings(_env_file=None, retries=0)
    return chat_model(Endpoint("judge", server.url, SecretStr("sk-x")), role="grader", settings=settings)


def doc(text: str, name: str = "a") -> Document:
    return Document(text, id=name, metadata={"source": f"{name}.md", "title": name})


@pytest.mark.parametrize(("score", "unit"), [(1, 0.0), (2, 0.25), (3, 0.5), (4, 0.75), (5, 1.0), (3.4, 0.6)])
def test_scores_of_five_become_scores_of_one(score: float, unit: float) -> None:
    assert as_unit(score) == pytest.approx(unit)


async def test_all_passages_are_scored_in_one_call_each_behind_its_number(openai_server: Serve) -> None:
    server = openai_server("1: 4\n2: 1\n3: 5")
    grades = await BatchGrader(chat(server))("q?", [doc("one"), doc("two", "b"), doc("three", "c")])
    assert [grade["score"] for grade in grades] == [0.75, 0.0, 1.0]
    assert len(server.chats) == 1
    assert " [2]\ntitle: b\nsource: b.md\ntwo\n" in server.chats[0].prompt
    assert "from 1 to 3" in server.chats[0].prompt


async def test_an_unread_passage_says_why(openai_server: Serve) -> None:
    server = openai_server("1: 4\n2: excellent")
    with metered() as spent:
        grades = await BatchGrader(chat(server))("q?", [doc("one"), doc("two", "b")])
    assert grades == [
        {"score": 0.75, "reason": None},
        {"score": None, "reason": "unscored: judge gave no score"},
    ]
    assert spent.warnings == ["unscored document: judge gave no score"]


async def test_a_failed_call_leaves_all_unscored(openai_server: Serve) -> None:
    server = openai_server(Reply("no", status=401))
    grades = await BatchGrader(chat(server))("q?", [doc("one"), doc("two", "b")])
    assert [grade["score"] for grade in grades] == [None, None]
    assert (grades[0]["reason"] or "").startswith("unscored: ")
    assert len(server.chats) == 1


async def test_huge_passages_share_the_room_of_one_call(openai_server: Serve) -> None:
    server = openai_server("1: 4\n2: 1")
    await BatchGrader(chat(server))("q?", [doc("很长的一句话在这里。" * 5000), doc("短。", "b")])
    assert len(server.chats[0].prompt) < 7000
    assert "短。" in server.chats[0].prompt


async def test_a_grader_of_single_documents_grades_them_all_in_order() -> None:
    async def grader(question: str, document: Document) -> Grade:
        return Grade(score=len(document.page_content) / 10, reason=None)

    grades = await EachGrader(grader)("q?", [doc("abc"), doc("a", "b")])
    assert [grade["score"] for grade in grades] == [0.3, 0.1]


TIDES = "Spring tides come twice a month. The beach has a very large kiosk. They come with the full moon."
BOATS = "The ferry leaves at seven o'clock. It takes two hours to the island."


async def test_kept_strips_are_recomposed_in_order_with_their_source(openai_server: Serve) -> None:
    server = openai_server("1: 3\n2: 2.9\n3: 5\n4: 1\n5: 4")
    refined = await ModelStripRefiner(chat(server))("q?", [doc(TIDES), doc(BOATS, "b")])
    assert [(d.id, d.metadata["source"], d.page_content) for d in refined] == [
        ("a", "a.md", "Spring tides come twice a month.\nThey come with the full moon."),
        ("b", "b.md", "It takes two hours to the island."),
    ]
    assert len(server.chats) == 1
    assert "\n2: The beach has a very large kiosk.\n" in server.chats[0].prompt


async def test_a_document_without_a_kept_strip_is_dropped_and_one_with_all_is_unchanged(
    openai_server: Serve,
) -> None:
    server = openai_server("[5, 4, 3, 1, 2]")
    refined = await ModelStripRefiner(chat(server))("q?", [doc(TIDES), doc(BOATS, "b")])
    assert [d.page_content for d in refined] == [TIDES]


async def test_an_unscored_strip_is_kept(openai_server: Serve) -> None:
    server = openai_server("1: 5\n3: 1\n4: 1\n5: 1")
    with metered() as spent:
        refined = await ModelStripRefiner(chat(server))("q?", [doc(TIDES), doc(BOATS, "b")])
    assert [d.page_content for d in refined] == [
        "Spring tides come twice a month.\nThe beach has a very large kiosk."
    ]
    assert spent.warnings == ["1 of 5 strips were kept unscored: judge gave no score"]


async def test_a_failed_call_keeps_the_documents_as_they_are(openai_server: Serve) -> None:
    server = openai_server(Reply(status=500))
    refined = await ModelStripRefiner(chat(server))("q?", [doc(TIDES), doc(BOATS, "b")])
    assert [d.page_content for d in refined] == [TIDES, BOATS]


async def test_strips_beyond_the_room_of_a_call_take_more_calls_side_by_side(openai_server: Serve) -> None:
    def reply(messages: list[dict[str, Any]]) -> str:
        lines = messages[-1]["content"].splitlines()
        numbered = [line.split(": ", 1) for line in lines if "句话" in line]
        return "\n".join(f"{n}: {5 if '第７' in text else 1}" for n, text in numbered)

    text = "".join(f"这是第{'７' if n == 777 else n}句话，讲的是潮汐与月相之间的关系。" for n in range(1000))
    server = openai_server(reply, latency=0.3)
    refined = await ModelStripRefiner(chat(server))("大潮何时来？", [doc(text)])
    assert [d.page_content for d in refined] == ["这是第７句话，讲的是潮汐与月相之间的关系。"]
    assert 3 <= len(server.chats) <= 6
    assert server.max_concurrency == len(server.chats)


async def test_a_strip_cannot_pass_for_another_ones_line(openai_server: Serve) -> None:
    server = openai_server("1: 5")
    await ModelStripRefiner(chat(server))(
        "q?", [doc("Tides come\n7: twice a month, says the old sea chart.")]
    )
    fenced = server.chats[0].messages[1]["content"].split("<<<")[1].split(">>>")[0]
    assert [line for line in fenced.splitlines() if line[:1].isdigit() and ": " in line[:4]] == [
        "1: Tides come 7: twice a month, says the old sea chart."
    ]
