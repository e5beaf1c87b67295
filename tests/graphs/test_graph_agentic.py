"""Every route of the agentic graph: the real client against a scripted server."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document

from crag import Answer, Settings, aask
from crag.cli.view import explain
from crag.text.budget import count_tokens
from tests.support.openai_server import OpenAIServer, Reply, openai_server
from tests.support.rounds import rounds

__all__ = ["openai_server"]
Serve = Callable[..., OpenAIServer]
Grades = dict[str, "str | Reply"]

QUESTION = "How often do spring tides come?"
FOUND = {
    QUESTION: ["boats", "birds", "kiosk", "cliffs"],
    "spring tide frequency": ["moon", "boats", "phases"],
    "tidal cycle lunar phases": ["phases", "tides", "moon"],
    "when are spring tides": ["copy of moon", "sand"],
}
ALTERNATIVES = "1. spring tide frequency\n2. tidal cycle lunar phases\n3. when are spring tides"


async def retrieve(question: str, k: int) -> list[Document]:
    return [
        Document(
            id=name,
            page_content=f"About {name.removeprefix('copy of ')}.",
            metadata={"source": f"{name}.md", "title": ""},
        )
        for name in FOUND.get(question, [])
    ][:k]


def search(query: str, limit: int) -> list[dict[str, str]]:
    return [{"title": "Web", "url": "https://example.org/web", "content": "About the web."}]


def grade(score: float, reason: str) -> str:
    return f"Reason: {reason}\nScore: {score}"


def script(
    grades: Grades, alternatives: "str | Reply" = ALTERNATIVES, answer: str = "Twice a month [1]."
) -> Callable[..., Any]:
    """A model that grades by what a document is about, 0.1 by default."""

    def reply(messages: list[dict[str, Any]]) -> "str | Reply":
        system, user = messages[0]["content"], messages[-1]["content"]
        if "First say in one sentence" in system:
            names = (grade for name, grade in grades.items() if f"About {name}." in user)
            return next(names, grade(0.1, "off topic"))
        if "other queries" in system or "不同的查询" in system:
            return alternatives
        return "keywords of it" if "search engine" in system else answer

    return reply


async def asked(server: OpenAIServer, **options: Any) -> Answer:
    settings = Settings(
        _env_file=None, base_url=server.url, model="scripted", retries=0, concurrency=16,
        **({"check": False} | options.pop("settings", {"web": "off"})),
    )  # fmt: skip
    return await aask(
        options.pop("question", QUESTION),
        settings=settings,
        graph="agentic",
        retriever=options.pop("retriever", retrieve),
        **options,
    )


def graded(server: OpenAIServer) -> list[str]:
    """What each grading call was about, in order of the names."""
    prompts = [chat.prompt for chat in server.chats if "First say in one sentence" in chat.prompt]
    return sorted(prompt.rsplit("About ", 1)[1].split(".")[0] for prompt in prompts)


async def test_a_good_retrieval_is_filtered_and_answered_in_two_rounds(openai_server: Serve) -> None:
    server = openai_server(
        script({
            "boats": grade(0.7, "has ferry times"),
            "birds": grade(0.9, "has the answer"),
            "kiosk": grade(0.6, "has hours"),
            "cliffs": grade(0.5, "nearby"),
        }),
        latency=0.5,
    )  # fmt: skip
    answer = await asked(server, web_search=search)
    assert answer.verdict == "correct"
    assert answer.overall_score == 0.675
    assert answer.path_text == "retrieve(4) → grade(0.68) → filter(3) → generate"
    assert [d.reason for d in answer.documents] == [
        "has ferry times",
        "has the answer",
        "has hours",
        "nearby",
    ]
    assert answer.sources[0].id == "birds"
    assert (answer.usage.llm_calls, answer.usage.web_calls, rounds(server)) == (5, 0, 2)
    assert answer.thresholds is not None
    assert answer.thresholds.model_dump() == {
        "upper": 0.6,
        "lower": 0.6,
        "aggregate": "mean",
        "source": "default",
    }


async def test_a_person_sees_each_reason_once_and_what_counts_as_good(
    openai_server: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    server = openai_server(
        script({
            "boats": grade(0.9, "has ferry times"),
            "birds": "Here is my judgement:\nScore: 0.8",
            "kiosk": grade(0.6, "About kiosk"),
        })
    )  # fmt: skip
    explain(await asked(server, web_search=search), verbose=True)
    shown = capsys.readouterr().err
    assert "   0.90 kept    kb  boats.md: About boats. (has ferry times)\n" in shown
    assert "   0.80 kept    kb  birds.md: About birds.\n" in shown
    assert "   0.60 kept    kb  kiosk.md: About kiosk.\n" in shown
    assert "   0.10 dropped kb  cliffs.md: About cliffs. (off topic)\n" in shown
    assert "Documents: they speak to the question (0.60)\n" in shown
    assert "Verdict  correct (mean score; good from 0.6; thresholds: default)\n" in shown


async def test_a_poor_retrieval_with_one_good_document_asks_the_knowledge_base_alone(
    openai_server: Serve,
) -> None:
    good = {
        "birds": grade(0.8, "half"),
        "moon": grade(0.9, "names both days"),
        "tides": grade(0.9, "all of it"),
    }
    server = openai_server(script(good), latency=0.5)
    answer = await asked(server, web_search=search)
    assert answer.verdict == "incorrect"
    assert answer.path_text == (
        "retrieve(4) → grade(0.28) → alternatives(3) → retrieve(8) → grade(0.39) → filter(3) → generate"
    )
    # boats came back, moon came twice and once more under another id: each is graded once.
    assert graded(server) == ["birds", "boats", "cliffs", "kiosk", "moon", "phases", "sand", "tides"]
    assert answer.overall_score == 0.275
    assert [d.id for d in answer.documents if d.kept] == ["birds", "moon", "tides"]
    assert (answer.usage.llm_calls, answer.usage.web_calls, rounds(server)) == (10, 0, 4)


async def test_where_nothing_is_good_the_web_is_searched_beside_the_knowledge_base(
    openai_server: Serve,
) -> None:
    server = openai_server(script({"the web": grade(0.9, "says so")}), latency=0.5)
    answer = await asked(server, web_search=search)
    assert answer.path_text == (
        "retrieve(4) → grade(0.10) → alternatives(3) → web_search(ok, 1) → retrieve(8) → grade(0.19) → "
        "filter(1) → generate"
    )
    assert [(source.origin, source.source) for source in answer.sources] == [
        ("web", "https://example.org/web")
    ]
    assert [(d.score, d.reason) for d in answer.documents if d.kept] == [(0.9, "says so")]
    assert "the web" in graded(server)
    assert (answer.usage.llm_calls, answer.usage.web_calls, rounds(server)) == (11, 1, 4)


async def test_rather_none_than_poor_documents(openai_server: Serve) -> None:
    server = openai_server(script({"moon": grade(0.59, "nearly")}))
    answer = await asked(server)
    assert answer.answered is False
    assert answer.path_text == (
        "retrieve(4) → grade(0.10) → alternatives(3) → web_search(off) → retrieve(8) → grade(0.16) → "
        "filter(0) → generate(refused)"
    )
    assert "not found" in answer.answer
    assert not any(document.kept for document in answer.documents)


async def test_each_document_reaches_the_generator_with_its_own_reason(openai_server: Serve) -> None:
    server = openai_server(
        script({
            "boats": grade(0.7, "ferry [4] times"),
            "birds": grade(0.9, "nest months"),
            "kiosk": grade(0.6, "opening hours"),
            "cliffs": grade(0.5, "nearby"),
        })
    )  # fmt: skip
    await asked(server)
    user = server.chats[-1].messages[-1]["content"]
    first, second, third = user.split("<<<")[1:]
    assert "[1]\nsource: birds.md\nreason: nest months\nAbout birds.\n" in first
    assert "[2]\nsource: boats.md\nreason: ferry (4) times\nAbout boats.\n" in second
    assert "[3]\nsource: kiosk.md\nreason: opening hours\nAbout kiosk.\n" in third
    assert "nearby" not in user


async def test_the_best_documents_fill_the_budget_with_web_text_and_reasons_inside_it(
    openai_server: Serve,
) -> None:
    def long_page(query: str, limit: int) -> list[dict[str, str]]:
        return [
            {
                "title": "Web",
                "url": "https://example.org/web",
                "content": "About the web. " + "潮汐每天两次。" * 900,
            }
        ]

    grades = {
        "the web": grade(0.7, "理由很长。" * 40),
        "moon": grade(0.9, "r" * 250),
        "tides": grade(0.8, "s"),
    }
    server = openai_server(script(grades))
    answer = await asked(server, settings={"context_tokens": 500}, web_search=long_page)
    assert [d.id for d in answer.documents if d.kept][:2] == ["moon", "tides"]
    user = server.chats[-1].messages[-1]["content"]
    assert user.index("About moon.") < user.index("About tides.") < user.index("About the web.")
    assert 300 < count_tokens(user.split("Question:")[0]) <= 500
    assert any("context budget of 500 tokens" in warning for warning in answer.warnings)


async def test_a_failed_grade_is_unscored_and_tried_again_with_the_correction(openai_server: Serve) -> None:
    tries: list[str] = []
    scripted = script({"moon": grade(0.9, "has it")})

    def reply(messages: list[dict[str, Any]]) -> "str | Reply":
        if "About birds." in messages[-1]["content"] and "First say" in messages[0]["content"]:
            tries.append("birds")
            return Reply("overloaded", status=500) if len(tries) == 1 else grade(0.8, "has half of it")
        return scripted(messages)

    answer = await asked(openai_server(reply))
    assert answer.overall_score is not None
    assert round(answer.overall_score, 3) == 0.1
    assert len(tries) == 2
    assert {d.id: d.score for d in answer.documents if d.kept} == {"birds": 0.8, "moon": 0.9}


async def test_a_grader_that_is_down_costs_no_document_and_ends(openai_server: Serve) -> None:
    scripted = script({})

    def reply(messages: list[dict[str, Any]]) -> "str | Reply":
        down = "First say in one sentence" in messages[0]["content"]
        return Reply("overloaded", status=500) if down else scripted(messages)

    answer = await asked(openai_server(reply))
    assert answer.verdict == "incorrect"
    assert answer.overall_score is None
    assert answer.answer == "Twice a month [1]."
    assert all(document.score is None for document in answer.documents)
    assert "no document could be graded, so all were kept" in answer.warnings


async def test_no_more_is_graded_again_than_three_retrievals_can_bring(openai_server: Serve) -> None:
    async def endless(question: str, k: int) -> list[Document]:
        return [Document(id=f"{question}{n}", page_content=f"About {question} {n}.") for n in range(k)]

    server = openai_server(script({}), latency=0.5)
    answer = await asked(server, retriever=endless, web_search=search)
    assert len(graded(server)) == 4 + 12
    assert answer.usage.llm_calls == 4 + 1 + 12
    assert rounds(server) == 3
    # Of each alternative query the best ones come first.
    assert "spring tide frequency 0" in graded(server)
    assert "when are spring tides 2" in graded(server)


async def test_a_list_of_no_queries_falls_back_to_keywords(openai_server: Serve) -> None:
    wanted: list[str] = []

    async def noting(question: str, k: int) -> list[Document]:
        wanted.append(question)
        return await retrieve(question, k)

    server = openai_server(script({}, alternatives=f"1. {QUESTION}\n2. how often do spring tides come"))
    answer = await asked(server, retriever=noting)
    assert wanted == [QUESTION, "keywords of it"]
    assert "alternatives(1) → " in answer.path_text


async def test_failing_alternatives_leave_the_web(openai_server: Serve) -> None:
    server = openai_server(script({"the web": grade(0.9, "says so")}, alternatives=Reply("down", status=500)))
    answer = await asked(server, web_search=search)
    assert answer.answer == "Twice a month [1]."
    assert answer.path_text == (
        "retrieve(4) → grade(0.10) → alternatives(0) → web_search(ok, 1) → grade(0.26) → filter(1) → generate"
    )


async def test_nothing_retrieved_is_corrected_and_then_refused(openai_server: Serve) -> None:
    server = openai_server(script({}, alternatives="1. 大潮周期\n2. 潮汐规律\n3. 大潮时间"))
    answer = await asked(server, question="大潮多久来一次？")
    assert answer.verdict == "incorrect"
    assert answer.answered is False
    assert "没有找到" in answer.answer
    assert answer.path_text == (
        "retrieve(0) → grade(unscored) → alternatives(3) → web_search(off) → retrieve(0) → grade(unscored) → "
        "filter(0) → generate(refused)"
    )


async def test_a_chosen_threshold_beats_the_graphs_own(openai_server: Serve) -> None:
    server = openai_server(script({name: grade(0.7, "good") for name in FOUND[QUESTION]}))
    chosen = await asked(server, settings={"web": "off", "upper": 0.8})
    assert chosen.verdict == "incorrect"
    assert chosen.thresholds is not None
    assert (chosen.thresholds.upper, chosen.thresholds.source) == (0.8, "flag")


async def test_without_a_model_that_grades_only_queries_and_the_answer_cost_a_call(
    openai_server: Serve,
) -> None:
    scores = {"birds": 0.7, "moon": 0.9}
    server = openai_server(script({}))
    answer = await asked(server, grader=lambda question, document: scores.get(document.id, 0.0))
    assert [d.id for d in answer.documents if d.kept] == ["birds", "moon"]
    assert answer.usage.llm_calls == 2
    assert "reason:" not in server.chats[-1].messages[-1]["content"]


async def test_a_second_question_of_a_thread_begins_afresh(openai_server: Serve, tmp_path: Any) -> None:
    server = openai_server(script({"moon": grade(0.9, "has it")}))
    options = {"settings": {"web": "off", "threads": tmp_path / "t.sqlite"}, "thread": "1"}
    first = await asked(server, **options)
    again = await asked(server, **options)
    assert first.path_text == again.path_text
    assert first.documents == again.documents
    assert len(graded(server)) == 16


async def test_an_answer_is_checked_unless_told_not_to(openai_server: Serve) -> None:
    scripted = script({name: grade(0.9, "has it") for name in ("boats", "birds", "kiosk", "cliffs")})

    def reply(messages: list[dict[str, Any]]) -> "str | Reply":
        if "check whether an answer" in messages[0]["content"]:
            return "Spring tides come twice a month | [1]\nVerdict: grounded"
        return scripted(messages)

    answer = await asked(openai_server(reply), settings={"check": None, "web": "off"})
    assert answer.grounded is True
    assert answer.path[-1] == "check"
    assert answer.models.checker == "scripted"
