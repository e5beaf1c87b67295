"""What published corrective-RAG systems get wrong, on the inputs that show it, through the real graphs.

Each test names the system whose fault it is: langchainrust's CorrectiveRAG, the batched-evaluator article,
llm-in-action 15-crag, LangGraph's CRAG notebook, the paper's code, RAG_Techniques, raglib-py, hydrag-core.
"""

import time
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document

from crag import Answer, Settings, aask
from crag.base.errors import SettingsError
from crag.pipeline import RunError
from tests.support.openai_server import OpenAIServer, Reply, openai_server
from tests.support.shelf import shelf

__all__ = ["openai_server"]
Serve = Callable[..., OpenAIServer]

QUESTION = "How often do spring tides come?"
TIDES = "Spring tides come twice a month, at new moon and at full moon."
TEXTS = {
    "tides": TIDES,
    "boats": "The ferry leaves the harbour at seven.",
    "birds": "Gulls nest on the high cliffs.",
    "kiosk": "The kiosk on the pier sells ice cream.",
}
PAGE = {"title": "Moon", "url": "https://example.org/moon", "content": "Spring tides follow the new moon."}


def script(
    grade: "str | dict[str, str | Reply]" = "0.1",
    *,
    batch: str = "",
    answer: "str | Reply" = "Twice a month [1].",
    check: str = "Spring tides come twice a month | [1]\nVerdict: grounded",
) -> Callable[[list[dict[str, Any]]], "str | Reply"]:
    """A model; `grade` is its reply on every document, or on those named, where "0.1" is for the others."""

    def reply(messages: list[dict[str, Any]]) -> "str | Reply":
        system, user = messages[0]["content"], messages[-1]["content"]
        if "Score (0 to 1)" in user or "First say in one sentence" in system:
            if isinstance(grade, str):
                return grade
            return next((said for name, said in grade.items() if TEXTS.get(name, name) in user), "0.1")
        if "numbered passages" in system:
            return batch
        if "numbered sentences" in system:
            return "\n".join(f"{n}: 5" for n in range(1, 30))
        if "search engine" in system:
            return "spring tides interval"
        if "other queries" in system:
            return "1. tidal cycle\n2. moon and tides\n3. tide table"
        if "pick from numbered web pages" in system:
            return f"[1]\n{PAGE['content']}"
        return check if "check whether an answer" in system else answer

    return reply


retrieve = shelf(TEXTS)


async def asked(server: OpenAIServer, graph: str = "crag", **options: Any) -> Answer:
    given: dict[str, Any] = {"web": "off", "retries": 0, "check": False} | options.pop("settings", {})
    settings = Settings(_env_file=None, base_url=server.url, model="scripted", concurrency=16, **given)
    options.setdefault("retriever", retrieve)
    return await aask(options.pop("question", QUESTION), settings=settings, graph=graph, **options)


def search(query: str, limit: int) -> list[dict[str, str]]:
    return [PAGE]


def scores(answer: Answer) -> list[float | None]:
    return [document.score for document in answer.documents if document.origin != "web"]


# --- Reading what models write ----------------------------------------------------------------------


async def test_the_score_is_the_number_named_score_not_the_number_of_the_line(openai_server: Serve) -> None:
    """langchainrust reads the 1 of "1." as the score."""
    answer = await asked(openai_server(script("1. relevance: irrelevant 2. score: 0.1")), "agentic")
    assert scores(answer) == [0.1, 0.1, 0.1, 0.1]
    assert answer.answered is False


@pytest.mark.parametrize(
    ("reply", "grounded"),
    [
        ("It says so | [1]\nnot fully grounded", False),
        ("not fully grounded", False),
        ("Spring tides come twice a month | [1]\ngrounded.", True),
        ("大潮每月两次 | [1]\n不完全有依据", False),
    ],
)
async def test_not_fully_grounded_is_no_and_grounded_with_a_full_stop_is_yes(
    openai_server: Serve, reply: str, grounded: bool
) -> None:
    """langchainrust looks for the word: "not fully grounded" passes, "grounded." does not."""
    server = openai_server(script({"tides": "0.9"}, check=reply))
    assert (await asked(server, settings={"check": True})).grounded is grounded


async def test_a_check_that_is_off_says_nothing_rather_than_yes(openai_server: Serve) -> None:
    """langchainrust reports a disabled check as true."""
    assert (await asked(openai_server(script({"tides": "0.9"})))).grounded is None


@pytest.mark.parametrize(
    "reply",
    [
        "[5,\n2,\n1, 1]",
        "5, 2, 1, 1.",
        "Scores: [5, 2, 1, 1]",
        "5\n2\n1\n1",
        "5 2 1 1",
        "1: 5\n2: 2\n3: 1\n4: 1",
        "5.0, 2.0, 1.0, 1.0",
        "5，2，1，1",
    ],
)
async def test_newlines_brackets_and_decimals_leave_scores_as_they_are(
    openai_server: Serve, reply: str
) -> None:
    """The article's reader turns what it cannot parse into 1 and so discards the whole knowledge base."""
    answer = await asked(openai_server(script(batch=reply)), "batched")
    assert answer.verdict == "correct"
    assert scores(answer) == [1.0, 0.25, 0.0, 0.0]


async def test_half_marks_on_the_list_are_kept(openai_server: Serve) -> None:
    """The article: a decimal in the list makes every score 1."""
    answer = await asked(openai_server(script(batch="4.5, 2.5, 1, 1")), "batched")
    assert scores(answer) == [0.875, 0.375, 0.0, 0.0]


@pytest.mark.parametrize("graph", ["crag", "batched"])
async def test_a_reply_without_a_score_is_unscored_and_ambiguous(openai_server: Serve, graph: str) -> None:
    """Unread, the article says 1, llm-in-action .5, hydrag-core sufficient; the notebook raises."""
    server = openai_server(script("It seems fine.", batch="They seem fine."))
    answer = await asked(server, graph, web_search=search)
    assert scores(answer) == [None, None, None, None]
    assert (answer.verdict, answer.overall_score) == ("ambiguous", None)
    assert {document.origin for document in answer.documents if document.kept} == {"kb", "web"}


async def test_a_no_with_a_full_stop_is_a_no_and_the_web_is_asked(openai_server: Serve) -> None:
    """F13: The notebook corrects only where the reply is exactly "no"."""
    server = openai_server(script("Relevant: No."))
    answer = await asked(server, "agentic", web_search=search)
    assert answer.verdict == "incorrect"
    assert answer.usage.web_calls == 1
    dashed = await asked(openai_server(script("0.1 - not about this topic")), web_search=search)
    assert dashed.verdict == "incorrect"
    assert [source.origin for source in dashed.sources] == ["web"]


# --- Judging ----------------------------------------------------------------------------------------


async def test_one_perfect_document_is_kept_among_three_poor_ones(openai_server: Serve) -> None:
    """llm-in-action's mean makes .25 of it, calls that incorrect and throws the perfect one away."""
    answer = await asked(openai_server(script({"tides": "1.0"})), settings={"web": "off"})
    assert (answer.verdict, answer.overall_score) == ("correct", 1.0)
    assert [document.id for document in answer.documents if document.kept] == ["tides"]
    assert answer.path == ["retrieve", "score", "assemble", "generate"]


async def test_every_document_keeps_its_own_score_in_the_answer(openai_server: Serve) -> None:
    """llm-in-action keeps the mean alone."""
    server = openai_server(script({"tides": "0.9", "boats": "0.2", "birds": "0.35", "kiosk": "0"}))
    assert scores(await asked(server)) == [0.9, 0.2, 0.35, 0.0]


async def test_one_failed_grade_ends_nothing(openai_server: Serve) -> None:
    """In langchainrust one failed grade aborts the question."""
    server = openai_server(script({"tides": "0.9", "birds": Reply("overloaded", status=500)}))
    answer = await asked(server)
    assert scores(answer) == [0.9, 0.1, None, 0.1]
    assert answer.answer == "Twice a month [1]."


async def test_documents_are_graded_side_by_side(openai_server: Serve) -> None:
    """F79: llm-in-action, the notebook, langchainrust's alternatives wait for one after another."""
    server = openai_server(script({"tides": "0.9"}), latency=0.5)
    await asked(server)
    assert server.max_concurrency > 1


async def test_a_document_is_judged_and_answered_from_beyond_its_first_400_characters(
    openai_server: Serve,
) -> None:
    """llm-in-action cuts every document at 400 characters."""

    async def long(question: str, k: int) -> list[Document]:
        return [
            Document(id="long", page_content="The coast is long. " * 60 + TIDES, metadata={"source": "a"})
        ]

    server = openai_server(script({"tides": "0.9"}))
    answer = await asked(server, retriever=long)
    assert answer.verdict == "correct"
    assert all(TIDES in call.prompt for call in server.chats)


async def test_thresholds_that_cross_are_refused_with_both_values() -> None:
    """The paper's published script sets the upper threshold below the lower one."""
    with pytest.raises(SettingsError, match=r"0\.3.*0\.7|0\.7.*0\.3"):
        Settings(_env_file=None, upper=0.3, lower=0.7)


# --- Correcting -------------------------------------------------------------------------------------


async def test_a_good_document_of_the_first_round_survives_the_correction(openai_server: Serve) -> None:
    """langchainrust drops the first round's documents when it corrects."""

    async def first_then_others(question: str, k: int) -> list[Document]:
        if question == QUESTION:
            return await retrieve(question, k)
        return [Document(id=question, page_content=f"About {question}.", metadata={"source": question})]

    server = openai_server(script({"tides": "Reason: states it\nScore: 0.9"}))
    answer = await asked(server, "agentic", retriever=first_then_others)
    assert answer.verdict == "incorrect"
    assert [document.id for document in answer.documents if document.kept] == ["tides"]
    assert len(answer.documents) == 7


async def test_reasons_stand_with_their_own_documents(openai_server: Serve) -> None:
    """langchainrust numbers its reasons over the documents before it filters them."""
    server = openai_server(
        script({
            "tides": "Reason: names both days\nScore: 0.7",
            "birds": "Reason: tells of cliffs\nScore: 0.9",
            "kiosk": "Reason: tells of the pier\nScore: 0.9",
            "boats": "Reason: a timetable\nScore: 0.2",
        })
    )  # fmt: skip
    await asked(server, "agentic")
    shown = server.chats[-1].prompt
    assert f"reason: names both days\n{TIDES}" in shown
    assert f"reason: tells of cliffs\n{TEXTS['birds']}" in shown
    assert "a timetable" not in shown


@pytest.mark.parametrize("graph", ["crag", "batched", "agentic"])
async def test_a_web_search_that_fails_leaves_what_there_is(openai_server: Serve, graph: str) -> None:
    """langchainrust aborts; the article, the notebook and RAG_Techniques raise."""

    def broken(query: str, limit: int) -> list[str]:
        raise ConnectionError("no route to host")

    server = openai_server(script("0.5", batch="3, 3, 3, 3"))
    answer = await asked(server, graph, web_search=broken)
    assert "web_search(unavailable: " in answer.path_text
    assert any("no route to host" in warning for warning in answer.warnings)
    assert answer.answer


@pytest.mark.parametrize(
    "said",
    [
        "No good DuckDuckGo Search Result was found",
        "No results found.",
        "没有找到相关搜索结果。",
        "搜索无结果",
    ],
)
async def test_a_result_that_says_nothing_was_found_is_no_result(openai_server: Serve, said: str) -> None:
    """llm-in-action logs such a text as a web result, and answers from it."""
    server = openai_server(script("0.1"))
    answer = await asked(server, web_search=lambda query: said)
    assert "web_search(empty)" in answer.path_text
    assert answer.answered is False
    as_page = await asked(server, web_search=lambda query: [{"url": "https://a.example", "content": said}])
    assert "web_search(empty)" in as_page.path_text


@pytest.mark.parametrize("graph", ["crag", "batched"])
async def test_the_users_question_is_answered_and_the_rewritten_one_only_searched_for(
    openai_server: Serve, graph: str
) -> None:
    """F24: The notebook overwrites the question with the query and answers that."""
    queries: list[str] = []

    def noting(query: str, limit: int) -> list[dict[str, str]]:
        queries.append(query)
        return [PAGE]

    asking = "I sail a small boat. How often do spring tides come?"
    server = openai_server(script("0.1", batch="1, 1, 1, 1"))
    answer = await asked(server, graph, question=asking, web_search=noting)
    assert queries == [answer.search_query] == ["spring tides interval"]
    assert answer.question == asking
    assert f"Question: {asking}" in server.chats[-1].prompt
    assert "spring tides interval" not in server.chats[-1].prompt


async def test_a_web_source_keeps_its_address(openai_server: Serve) -> None:
    """The notebook joins all results to one text and loses where they came from."""
    answer = await asked(openai_server(script("0.1")), web_search=search)
    assert [(s.n, s.title, s.source) for s in answer.sources] == [(1, "Moon", "https://example.org/moon")]
    assert [d.text for d in answer.documents if d.kept] == ["Spring tides follow the new moon."]


async def test_sentences_end_where_they_end_not_at_every_full_stop(openai_server: Serve) -> None:
    """The paper's code cuts strips at naive sentence ends."""

    smith = "Dr. J. Smith paid $3.5 million for the U.S. rights to the tide tables."

    async def titled(question: str, k: int) -> list[Document]:
        text = f"{smith} 他说：“大潮每月两次。”然后离开了港口。"
        return [Document(id="a", page_content=text, metadata={"source": "a"})]

    server = openai_server(script(batch="5"))
    await asked(server, "batched", retriever=titled)
    strips = server.chats[1].messages[-1]["content"]
    assert f"1: {smith}\n2: 他说：“大潮每月两次。”" in strips


# --- Around the model -------------------------------------------------------------------------------


async def test_a_citation_of_no_source_is_removed_and_reported(openai_server: Serve) -> None:
    """RAG_Techniques cites by names that the model may invent."""
    answer = await asked(openai_server(script({"tides": "0.9"}, answer="Twice a month [1], or more [9].")))
    assert answer.answer == "Twice a month [1], or more."
    assert [source.id for source in answer.sources] == ["tides"]
    assert any("[9]" in warning for warning in answer.warnings)


async def test_a_model_that_does_not_reply_is_given_up_in_time(openai_server: Serve) -> None:
    """llm-in-action sets no timeout: a hanging server hangs the question."""
    server = openai_server(script({"tides": "0.9"}, answer=Reply("late", delay=30)))
    began = time.perf_counter()
    with pytest.raises(RunError, match="scripted"):
        await asked(server, settings={"timeout": 2})
    assert time.perf_counter() - began < 20


async def test_each_role_has_an_endpoint_of_its_own(openai_server: Serve) -> None:
    """llm-in-action writes one vendor's endpoint into its code."""
    grader, generator = openai_server(script({"tides": "0.9"})), openai_server(script())
    answer = await asked(generator, settings={"grader_base_url": grader.url, "grader_model": "small"})
    assert (len(grader.chats), len(generator.chats)) == (4, 1)
    assert (answer.models.grader, answer.models.generator) == ("small", "scripted")


async def test_a_missing_search_key_is_told_before_any_call(openai_server: Serve) -> None:
    """The article's system raises in mid-run, after the grading is paid for."""
    server = openai_server(script("0.1"))
    with pytest.raises(SettingsError, match="TAVILY_API_KEY"):
        await asked(server, settings={"web": "tavily"})
    assert server.chats == []
    unset = await asked(server, settings={"web": "auto"})
    assert "web_search(off)" in unset.path_text
    assert any("TAVILY_API_KEY" in warning for warning in unset.warnings)
