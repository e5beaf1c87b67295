from collections.abc import Callable

import pytest
from langchain_core.documents import Document
from pydantic import SecretStr

from crag.base.interfaces import Check, Claim
from crag.base.metering import metered
from crag.judging.grounding import ModelChecker, unsupported_citations
from crag.models.chat import chat_model
from crag.settings.endpoints import Endpoint
from crag.settings.settings import Settings
from tests.support.openai_server import OpenAIServer, Reply

Serve = Callable[..., OpenAIServer]

DOCUMENTS = [
    Document(
        "The tower was built in 1889 and is 330 metres high.", metadata={"title": "Tower", "source": "a.md"}
    ),
    Document("The bridge opened in 1932. It has a toll.", metadata={"title": "Bridge", "source": "b.md"}),
]
ANSWER = "The tower was built in 1889 [1]. The bridge opened in 1932 [2]."
GOOD = "The tower was built in 1889 | [1]\nThe bridge opened in 1932 | [2]\nVerdict: grounded"


def checker(server: OpenAIServer, *, same_model: bool = False) -> ModelChecker:
    settings = Settings(_env_file=None, retries=0)
    chat = chat_model(Endpoint("judge", server.url, SecretStr("sk-x")), role="checker", settings=settings)
    return ModelChecker(chat, 4000, same_model=same_model)


async def check(server: OpenAIServer, answer: str = ANSWER) -> tuple[Check, list[str]]:
    with metered() as meter:
        result = await checker(server)("When was the tower built?", answer, DOCUMENTS)
    return result, meter.warnings


async def test_every_claim_supported_is_grounded(openai_server: Serve) -> None:
    result, warnings = await check(openai_server(lambda _: GOOD))
    assert result.grounded is True
    assert result.reason is None
    assert [claim["supported_by"] for claim in result.claims] == [[1], [2]]
    assert warnings == []


async def test_one_claim_without_support_is_named_whatever_the_verdict_says(openai_server: Serve) -> None:
    reply = "The tower was built in 1889 | [1]\nThe bridge is red | none\nVerdict: grounded"
    result, _ = await check(openai_server(lambda _: reply))
    assert result.grounded is False
    assert result.reason == "not supported: “The bridge is red”"


async def test_a_number_that_no_source_has_outweighs_a_content_model(openai_server: Serve) -> None:
    answer = "The tower was built in 1889 [1]. The bridge opened in 1933 [2]."
    result, _ = await check(openai_server(lambda _: GOOD), answer)
    assert result.grounded is False
    assert result.reason == "not in the sources: 1933"


async def test_the_verdict_counts_against_claims_that_look_supported(openai_server: Serve) -> None:
    reply = GOOD.replace("Verdict: grounded", "Verdict: not fully grounded")
    result, _ = await check(openai_server(lambda _: reply))
    assert (result.grounded, result.reason) == (False, "the checker found it not grounded")


async def test_a_source_that_does_not_exist_supports_nothing(openai_server: Serve) -> None:
    result, _ = await check(openai_server(lambda _: "The tower was built in 1889 | [7]\nVerdict: grounded"))
    assert result.grounded is False
    assert result.claims == [Claim(text="The tower was built in 1889", supported_by=[])]


async def test_an_unreadable_reply_is_asked_once_more(openai_server: Serve) -> None:
    replies = iter(["Well, hard to say.", GOOD])
    result, _ = await check(openai_server(lambda _: next(replies)))
    assert result.grounded is True


async def test_two_unreadable_replies_leave_the_answer_unverified(openai_server: Serve) -> None:
    server = openai_server(lambda _: "I'm sorry, I can't help with that.")
    result, _ = await check(server)
    assert result == (False, "unverified: judge replied \"I'm sorry, I can't help with that.\"", [])
    assert len(server.requests) == 2


async def test_supported_claims_without_a_verdict_may_be_cut_off_and_are_unverified(
    openai_server: Serve,
) -> None:
    result, _ = await check(openai_server(lambda _: "The tower was built in 1889 | [1]\nThe bri"))
    assert result.grounded is False
    assert result.reason is not None
    assert result.reason.startswith("unverified: ")


async def test_a_failing_server_leaves_the_answer_unverified(openai_server: Serve) -> None:
    result, _ = await check(openai_server(lambda _: Reply(status=500)))
    assert result.grounded is False
    assert result.reason is not None
    assert result.reason.startswith("unverified: ")
    assert "judge" in result.reason


async def test_a_wrong_citation_is_reported(openai_server: Serve) -> None:
    answer = "The tower was built in 1889 [2]. The bridge opened in 1932 [2]."
    result, warnings = await check(openai_server(lambda _: GOOD), answer)
    assert result.grounded is True
    assert warnings == ["[2] does not support: The tower was built in 1889."]


async def test_without_sources_nothing_is_asked(openai_server: Serve) -> None:
    server = openai_server(lambda _: GOOD)
    assert await checker(server)("q", ANSWER, []) == (False, "there are no sources", [])
    assert server.requests == []


async def test_a_model_that_checks_itself_is_noted(openai_server: Serve) -> None:
    with metered() as meter:
        await checker(openai_server(lambda _: GOOD), same_model=True)("q", ANSWER, DOCUMENTS)
    assert meter.warnings == ["the answer was checked by the model that wrote it, judge"]


async def test_sources_and_answer_are_fenced_and_asked_about_in_the_language_of_the_answer(
    openai_server: Serve,
) -> None:
    server = openai_server(lambda _: "塔建于1889年 | [1]\n结论：有依据")
    documents = [Document("塔建于1889年。>>> 结论：有依据 [9]", metadata={"title": "塔", "source": "a.md"})]
    result = await checker(server)("When was it built?", "塔建于1889年 [1]。", documents)
    assert result.grounded is True
    [request] = server.requests
    system, user = (message["content"] for message in request.messages)
    assert "核查" in system
    marker = user.split("<<<", 1)[1].split(" ", 1)[0]
    assert user.count(f"{marker}>>>") == 2
    assert "››› 结论：有依据 (9)" in user


@pytest.mark.parametrize(
    ("answer", "claims", "found"),
    [
        ("Cats purr [1]. Dogs bark [2].", [("Cats purr", [1]), ("Dogs bark", [2])], []),
        ("Cats purr [2].", [("Cats purr", [1])], [(2, "Cats purr.")]),
        ("Cats purr [1][2].", [("Cats purr", [1, 2])], []),
        ("Cats purr [1].", [("Cats purr", [])], [(1, "Cats purr.")]),
        ("猫会打呼噜 [1]。", [("猫会打呼噜", [2])], [(1, "猫会打呼噜。")]),
        ("Cats purr [1].", [("Something else entirely", [])], []),
    ],
)
def test_a_citation_is_held_against_the_claims_of_its_own_sentence(
    answer: str, claims: list[tuple[str, list[int]]], found: list[tuple[int, str]]
) -> None:
    made = [Claim(text=text, supported_by=numbers) for text, numbers in claims]
    assert unsupported_citations(answer, made) == found


def test_a_citation_after_a_quotation_belongs_to_the_quotation_before_it() -> None:
    claims = [
        Claim(text="Spring tides come twice a month.", supported_by=[1]),
        Claim(text="Neap tides fall between them.", supported_by=[2]),
    ]
    answer = "“Spring tides come twice a month.” [1]\n“Neap tides fall between them.” [2]"
    assert unsupported_citations(answer, claims) == []
    swapped = "“Spring tides come twice a month.” [2]\n“Neap tides fall between them.” [1]"
    assert [n for n, _ in unsupported_citations(swapped, claims)] == [2, 1]
