"""Sentences that a checker's claims leave out, on lists of claims as models write them: in other words."""

from collections.abc import Callable

import pytest
from langchain_core.documents import Document

from crag.base.interfaces import Check
from crag.judging.claims import sentences, unclaimed
from crag.replies.claims import read_claims
from tests.support.openai_server import OpenAIServer
from tests.unit.judging.test_grounding import checker

Serve = Callable[..., OpenAIServer]

HYDE = (
    "HyDE asks a model to write a hypothetical answer, embeds it, and searches with that vector. "
    "This helps when questions and documents use different words. It costs one extra model call per query."
)
ZH_HYDE = (
    "HyDE 先让大模型写一段假设性的答案，再用这段答案的向量去检索。这样可以缓解提问与文档用词不同的问题。"
    "代价是每次查询多一次模型调用。"
)
ZH_CHUNKS = "一般建议每块 300 到 500 字，重叠 10% 到 20%。块太小会丢失上下文，块太大会混入无关内容。"
MILVUS = "For enterprises, Milvus is recommended because it scales to billions of vectors. "


@pytest.mark.parametrize(
    ("question", "answer", "claims"),
    [
        (
            "How does HyDE work?",
            HYDE,
            "HyDE generates a hypothetical document with an LLM | [1]\n"
            "The document is embedded and used for retrieval | [1]\n"
            "HyDE is useful for vocabulary mismatch between queries and docs | [1]\n"
            "HyDE adds an additional LLM invocation for every query | [2]",
        ),
        (
            "When was the tower built?",
            "The tower was built in 1889. It is 330 metres high.",
            "Construction finished in 1889 | [1]\nThe height is 330 m | [1]",
        ),
        (
            "Which vector database suits a company?",
            MILVUS + "The sources do not say what it costs.",
            "Milvus is the recommended choice for enterprises | [1]\nIt scales to billions of them | [1]",
        ),
        (
            "What does RAGAS measure?",
            "RAGAS measures three things:\n- context recall\n- context precision\n- faithfulness",
            "RAGAS has context recall | [1]\nRAGAS has context precision | [1]\nRAGAS has faithfulness | [1]",
        ),
        (
            "HyDE 是怎么工作的？",
            ZH_HYDE,
            "HyDE 使用大语言模型生成假想答案 | [1]\n检索时使用假想答案的嵌入向量 | [1]\n"
            "HyDE 能解决查询和文档措辞不一致 | [1]\n每个查询需要额外调用一次模型 | [2]",
        ),
        (
            "切块多大合适？",
            ZH_CHUNKS,
            "建议块大小为300-500字 | [1]\n重叠比例为10%-20% | [1]\n"
            "过小的分块会缺失语境 | [1]\n过大的分块会带来噪声 | [1]",
        ),
        (
            "桥是哪年建成的？",
            "该桥于1932年通车，收取通行费。桥长2737米。资料中没有提到颜色。",
            "桥在1932年开通 | [1]\n过桥要交费 | [1]\n桥的长度为2,737米 | [2]",
        ),
        ("How does HyDE work?", HYDE, "HyDE 让模型写假设性的答案 | [1]"),
    ],
)
def test_claims_in_other_words_leave_nothing_out(question: str, answer: str, claims: str) -> None:
    assert unclaimed(question, answer, read_claims(claims) or []) == []


@pytest.mark.parametrize(
    ("question", "answer", "claims", "left"),
    [
        (
            "When was the tower built?",
            "The tower was built in 1889. It is 330 metres high.",
            "The tower was built in 1889 | [1]",
            ["It is 330 metres high."],
        ),
        (
            "Which vector database suits a company?",
            MILVUS + "Pinecone was bought by Oracle.",
            "Milvus is recommended for enterprises | [1]\nMilvus scales to billions of vectors | [1]",
            ["Pinecone was bought by Oracle."],
        ),
        (
            "HyDE 是怎么工作的？",
            ZH_HYDE,
            "HyDE 使用大语言模型生成假想答案 | [1]\n检索时使用假想答案的嵌入向量 | [1]",
            ["这样可以缓解提问与文档用词不同的问题。", "代价是每次查询多一次模型调用。"],
        ),
        (
            "切块多大合适？",
            ZH_CHUNKS,
            "建议块大小为300-500字 | [1]\n重叠比例为10%-20% | [1]",
            ["块太小会丢失上下文，块太大会混入无关内容。"],
        ),
    ],
)
def test_a_sentence_that_no_claim_is_about_is_left_out(
    question: str, answer: str, claims: str, left: list[str]
) -> None:
    said = sentences(answer)
    assert [said[n] for n in unclaimed(question, answer, read_claims(claims) or [])] == left


DOCUMENTS = [Document("The tower was built in 1889 and is 330 metres high.", metadata={"source": "a.md"})]
ANSWER = "The tower was built in 1889 [1]. The king paid for all of it [1]."
PART = "The tower was built in 1889 | [1]\nVerdict: grounded"


async def checked(server: OpenAIServer, answer: str = ANSWER) -> Check:
    return await checker(server)("When was the tower built?", answer, DOCUMENTS)


async def test_what_the_claims_leave_out_is_shown_to_the_checker_again(openai_server: Serve) -> None:
    replies = iter([PART, "The king paid for the tower | none\nVerdict: not grounded"])
    server = openai_server(lambda _: next(replies))
    result = await checked(server)
    assert result.grounded is False
    assert result.reason == "not supported: “The king paid for the tower”"
    assert server.chats[1].prompt.rstrip().split("The answer to check:")[1].splitlines()[3:5] == [
        "The tower was built in 1889.",
        "The king paid for all of it.",
    ]


async def test_a_checker_that_then_supports_it_makes_the_answer_grounded(openai_server: Serve) -> None:
    replies = iter([PART, "The monarch financed everything | [1]\nVerdict: grounded"])
    result = await checked(openai_server(lambda _: next(replies)))
    assert (result.grounded, result.reason) == (True, None)
    assert [claim["text"] for claim in result.claims] == [
        "The tower was built in 1889",
        "The monarch financed everything",
    ]


@pytest.mark.parametrize("again", [PART, "Hard to say."])
async def test_what_is_passed_over_twice_is_not_grounded(openai_server: Serve, again: str) -> None:
    replies = iter([PART, again, again])
    result = await checked(openai_server(lambda _: next(replies)))
    assert result.grounded is False
    assert (result.reason or "").startswith("unverified: not checked: “The king paid for all of it.”")


async def test_a_greeting_claims_nothing(openai_server: Serve) -> None:
    replies = iter([PART, "Verdict: grounded"])
    result = await checked(
        openai_server(lambda _: next(replies)), "The tower was built in 1889 [1]. Glad to help you out!"
    )
    assert result.grounded is True
