"""An answer that is not grounded is written once more from what its sources support, or withheld."""

from collections.abc import Callable

import pytest
from langchain_core.documents import Document

from crag.base.interfaces import Claim
from crag.judging.claims import evidence
from crag.judging.generation import citable
from tests.support.conversation import TEXTS, ask, call_of, calls, model
from tests.support.openai_server import OpenAIServer, Reply

Serve = Callable[..., OpenAIServer]
GRAPHS = ["crag", "batched", "agentic", "fixed"]

QUESTION = "When was the tower built, when did the bridge open?"
FIRST = "The tower was built in 1889 [1]. The bridge is red [2]."
REFUTED = "The tower was built in 1889 | [1]\nThe bridge is red | none\nVerdict: not grounded"
SECOND = "The tower was built in 1889 [1]."
CONFIRMED = "The tower was built in 1889 | [1]\nVerdict: grounded"
RETRY = {"on_ungrounded": "retry"}


@pytest.mark.parametrize("graph", GRAPHS)
async def test_an_ungrounded_answer_is_written_anew_from_the_supported_strips(
    graph: str, openai_server: Serve
) -> None:
    server = openai_server(model(generate=[FIRST, SECOND], check=[REFUTED, CONFIRMED]))
    answer = await ask(QUESTION, server, graph=graph, **RETRY)
    assert answer.answer == SECOND
    assert (answer.answered, answer.grounded, answer.grounding_reason) == (True, True, None)
    assert answer.path_text.endswith("generate → check(not grounded) → generate(retry) → check(grounded)")
    assert answer.usage.by_node["generate"].llm_calls == 2
    assert answer.usage.by_node["check"].llm_calls == 2
    assert [source.id for source in answer.sources] == ["tower"]
    assert [document.id for document in answer.documents if document.kept] == ["tower"]
    assert any("written anew" in warning and "The bridge is red" in warning for warning in answer.warnings)
    evidence = [r for r in server.chats if call_of(r.messages) == "generate"][1].messages[1]["content"]
    assert "The tower was built in 1889 by an engineer" in evidence
    assert "Painters" not in evidence
    assert "1932" not in evidence


@pytest.mark.parametrize("graph", GRAPHS)
async def test_what_is_not_grounded_the_second_time_either_is_refused(
    graph: str, openai_server: Serve
) -> None:
    server = openai_server(model(generate=[FIRST, FIRST], check=[REFUTED, REFUTED]))
    answer = await ask(QUESTION, server, graph=graph, **RETRY)
    assert "red" not in answer.answer
    assert "not found in your documents" in answer.answer
    assert (answer.answered, answer.grounded) == (False, None)
    assert answer.grounding_reason == "not supported: “The bridge is red”"
    assert answer.sources == []
    assert answer.path_text.endswith(
        "check(not grounded) → generate(retry) → check(not grounded) → generate(refused)"
    )
    assert calls(server) == ["generate", "check", "generate", "check"]
    assert answer.models.checker == "scripted"
    assert any(warning.startswith("the answer was withheld") for warning in answer.warnings)


async def test_an_answer_without_any_supported_claim_is_refused_without_a_second_one(
    openai_server: Serve,
) -> None:
    server = openai_server(model(generate="桥是红色的 [1]。", check="桥是红色的 | 无\n结论：无依据"))
    answer = await ask("塔什么时候建成？", server, **RETRY)
    assert answer.answer == "在您的文档中没有找到答案。"
    assert calls(server) == ["generate", "check"]
    assert answer.path_text.endswith("generate → check(not grounded) → generate(refused)")


async def test_a_chinese_answer_is_written_anew_too(openai_server: Serve) -> None:
    server = openai_server(
        model(
            generate=["塔建于1889年 [1]。塔是红色的 [1]。", "塔建于1889年 [1]。"],
            check=["塔建于1889年 | [1]\n塔是红色的 | 无\n结论：无依据", "塔建于1889年 | [1]\n结论：有依据"],
        )
    )
    answer = await ask("塔什么时候建成？", server, **RETRY)
    assert answer.answer == "塔建于1889年 [1]。"
    assert answer.grounded is True
    evidence = server.chats[-2].messages[1]["content"]
    assert "建于1889年" in evidence
    assert "刷一遍漆" not in evidence


async def test_a_check_that_could_not_be_had_keeps_the_answer_and_says_so(openai_server: Serve) -> None:
    server = openai_server(model(generate=FIRST, check=Reply("down", status=500)))
    answer = await ask(QUESTION, server, **RETRY)
    assert answer.answer == FIRST
    assert answer.grounded is False
    assert (answer.grounding_reason or "").startswith("unverified: ")
    assert answer.path_text.endswith("generate → check(unverified)")
    assert any(warning.startswith("the answer was kept unchecked: unverified") for warning in answer.warnings)


async def test_a_second_check_that_could_not_be_had_keeps_the_second_answer(openai_server: Serve) -> None:
    server = openai_server(model(generate=[FIRST, SECOND], check=[REFUTED, Reply("down", status=500)]))
    answer = await ask(QUESTION, server, **RETRY)
    assert answer.answer == SECOND
    assert (answer.grounding_reason or "").startswith("unverified: ")


async def test_a_second_answer_that_fails_to_come_is_a_refusal_not_an_error(openai_server: Serve) -> None:
    server = openai_server(model(generate=[FIRST, Reply("down", status=500)], check=REFUTED))
    answer = await ask(QUESTION, server, **RETRY)
    assert answer.answered is False
    assert "red" not in answer.answer
    assert answer.grounding_reason == "not supported: “The bridge is red”"
    assert any("could not be written anew" in warning for warning in answer.warnings)


async def test_a_model_that_finds_the_evidence_too_thin_refuses(openai_server: Serve) -> None:
    server = openai_server(model(generate=[FIRST, "NOT_IN_SOURCES"], check=REFUTED))
    answer = await ask(QUESTION, server, **RETRY)
    assert answer.answered is False
    assert answer.path_text.endswith("check(not grounded) → generate(retry, refused)")


async def test_a_citation_of_a_document_that_was_left_out_is_removed(openai_server: Serve) -> None:
    written = "The tower was built in 1889 [1][2]."
    server = openai_server(model(generate=[FIRST, written], check=[REFUTED, CONFIRMED]))
    answer = await ask(QUESTION, server, **RETRY)
    assert answer.answer == SECOND
    assert any("do not exist: [2]" in warning for warning in answer.warnings)


async def test_numbers_stay_those_of_the_documents_when_the_first_one_supports_nothing(
    openai_server: Serve,
) -> None:
    refuted = "The bridge opened in 1932 | [2]\nThe tower is red | none\nVerdict: not grounded"
    second = "The bridge opened in 1932 [2]."
    server = openai_server(
        model(
            generate=["The tower is red [1].", second],
            check=[refuted, refuted.split("\n")[0] + "\nVerdict: grounded"],
        )
    )
    answer = await ask(QUESTION, server, **RETRY)
    assert answer.answer == second
    assert [(source.n, source.id) for source in answer.sources] == [(2, "bridge")]


@pytest.mark.parametrize(
    ("replies", "shown"),
    [
        ({"generate": [FIRST, SECOND], "check": [REFUTED, CONFIRMED]}, SECOND),
        ({"generate": SECOND, "check": CONFIRMED}, SECOND),
        ({"generate": FIRST, "check": REFUTED}, "The answer was not found in your documents."),
    ],
)
async def test_the_stream_is_the_final_answer_alone(
    replies: dict[str, object], shown: str, openai_server: Serve
) -> None:
    pieces: list[str] = []
    answer = await ask(QUESTION, openai_server(model(**replies)), on_text=pieces.append, **RETRY)
    assert "".join(pieces) == answer.answer == shown


async def test_an_ungrounded_answer_is_reported_by_default(openai_server: Serve) -> None:
    server = openai_server(model(generate=FIRST, check=REFUTED))
    answer = await ask(QUESTION, server, check=True)
    assert answer.answer == FIRST
    assert answer.grounded is False
    assert calls(server) == ["generate", "check"]


@pytest.mark.parametrize("graph", GRAPHS)
async def test_quotations_are_checked_and_never_written_anew(graph: str) -> None:
    answer = await ask("When was the tower built?", graph=graph, **RETRY)
    assert answer.grounded is True
    assert answer.path_text.endswith("generate → check(grounded)")


async def test_a_thread_remembers_the_answer_that_was_given(openai_server: Serve, tmp_path) -> None:
    server = openai_server(
        model(
            generate=[FIRST, SECOND, "Seven [1]."],
            check=[REFUTED, CONFIRMED, "Seven | [1]\nVerdict: grounded"],
            standalone="Question: How often is the tower repainted?",
        )
    )
    await ask(QUESTION, server, threads=tmp_path / "t.sqlite", **RETRY)
    await ask("How often is it repainted?", server, threads=tmp_path / "t.sqlite", **RETRY)
    asked = next(r for r in server.chats if call_of(r.messages) == "standalone").messages[1]["content"]
    assert "A: The tower was built in 1889." in asked
    assert "red" not in asked


def documents(*texts: str) -> list[Document]:
    return [Document(text) for text in texts]


def test_evidence_is_what_supported_claims_take_from_each_document() -> None:
    claims = [
        Claim(text="The tower is 330 metres high", supported_by=[1]),
        Claim(text="The bridge is red", supported_by=[]),
    ]
    found = evidence(documents(TEXTS["tower"], TEXTS["bridge"]), claims)
    # "It" alone would not say what is 330 metres high.
    assert [d.page_content for d in found] == [
        "The tower was built in 1889 by an engineer from Dijon and his company.\n"
        "It is 330 metres high with the antennas that stand on top of it.",
        "",
    ]
    assert citable(found) == [1]


def test_a_document_in_another_language_than_the_claim_is_evidence_as_a_whole() -> None:
    [found] = evidence(documents(TEXTS["tower"]), [Claim(text="塔高三百三十米", supported_by=[1])])
    assert found.page_content == TEXTS["tower"]
