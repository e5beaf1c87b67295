import time

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from crag.base.errors import ModelError
from crag.base.interfaces import Check
from crag.base.metering import metered
from crag.embedded.grounding import EmbeddedChecker
from crag.encoders.embeddings import EmbeddedEmbeddings
from crag.encoders.passages import PassageVectors

TOWER = (
    "The Meridian Tower stands in the old harbour of Lund. It was finished in 1889 by the engineer Ada Holm. "
    "The lift was added in 1931 by Otto Berg, and the roof was repaired after the storm of 1954."
)
TAX = "The city council collects a tourist tax of two euros per night. Children under twelve do not pay it."
TEA = "龙井茶产于浙江杭州西湖一带，已有一千二百余年历史。采茶时节在清明前后，由茶农陈阿婆的合作社收购。"
DOCUMENTS = [Document(TOWER, metadata={"title": "Tower"}), Document(TAX), Document(TEA)]


@pytest.fixture
def checker(encoder: EmbeddedEmbeddings) -> EmbeddedChecker:
    return EmbeddedChecker(PassageVectors(encoder))


async def check(checker: EmbeddedChecker, question: str, answer: str) -> Check:
    return await checker(question, answer, DOCUMENTS)


@pytest.mark.parametrize(
    ("question", "answer", "numbers"),
    [
        ("When was the tower finished?", "It was finished in 1889 by the engineer Ada Holm. [1]", [[1]]),
        ("Who pays?", "Children  under twelve\ndo not pay it. [2]", [[2]]),
        ("龙井茶产于哪里？", "龙井茶产于浙江杭州西湖一带，已有一千二百余年历史。 [3]", [[3]]),
    ],
)
async def test_what_stands_in_a_document_word_for_word_is_grounded(
    checker: EmbeddedChecker, question: str, answer: str, numbers: list[list[int]]
) -> None:
    result = await check(checker, question, answer)
    assert (result.grounded, result.reason) == (True, None)
    assert [claim["supported_by"] for claim in result.claims] == numbers


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (
            "What is the tourist tax?",
            "The tourist tax that the city council collects is two euros per night [2].",
        ),
        ("Who finished the Meridian Tower?", "Ada Holm"),
        ("谁收购龙井茶？", "合作社"),
    ],
)
async def test_a_close_paraphrase_and_the_right_phrase_are_grounded(
    checker: EmbeddedChecker, question: str, answer: str
) -> None:
    assert (await check(checker, question, answer)).grounded is True


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When was the tower finished?", "It was finished in 1890 by the engineer Ada Holm. [1]"),
        ("Who finished it?", "It was finished in 1889 by the engineer Otto Lilienthal. [1]"),
        ("Does Mars have life?", "Scientists have not discovered any living organism on Mars so far."),
        ("由谁收购？", "采茶时节在清明前后，由山西商人王老五收购。"),
        ("龙井茶有多久历史？", "龙井茶产于浙江杭州西湖一带，已有八百余年历史。"),
    ],
)
async def test_an_altered_quotation_and_an_invention_are_not(
    checker: EmbeddedChecker, question: str, answer: str
) -> None:
    result = await check(checker, question, answer)
    assert result.grounded is False
    assert result.reason is not None
    assert result.reason.endswith("(by a heuristic, not by a model)")


async def test_one_invention_among_quotations_is_found(checker: EmbeddedChecker) -> None:
    answer = (
        "It was finished in 1889 by the engineer Ada Holm. [1] Children under twelve do not pay it. [2] "
        "Penguins breed on distant volcanic islands. [1]"
    )
    result = await check(checker, "What about the tower?", answer)
    assert [bool(claim["supported_by"]) for claim in result.claims] == [True, True, False]
    assert result.grounded is False


async def test_a_quotation_that_cites_the_wrong_document_is_grounded_but_reported(
    checker: EmbeddedChecker,
) -> None:
    with metered() as meter:
        result = await check(checker, "Who pays?", "Children under twelve do not pay it. [1]")
    assert result.grounded is True
    assert meter.warnings == ["[1] does not support: Children under twelve do not pay it."]


async def test_without_sources_or_vectors_nothing_is_grounded(checker: EmbeddedChecker) -> None:
    class Broken(Embeddings):
        model_id = "multilingual-e5-small/x"

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise ModelError("the encoder is damaged")

        def embed_query(self, text: str) -> list[float]:
            raise ModelError("the encoder is damaged")

    broken = EmbeddedChecker(PassageVectors(Broken()))
    assert await checker("q", "a", [Document("  ")]) == (False, "there are no sources", [])
    assert await broken("q", TAX, DOCUMENTS) == (False, "unverified: the encoder is damaged", [])


async def test_unknown_embeddings_are_not_asked() -> None:
    embeddings = DeterministicFakeEmbedding(size=8)
    with metered() as meter:
        result = await EmbeddedChecker(PassageVectors(embeddings))("Who finished it?", TAX, DOCUMENTS)
    assert result.grounded is True
    assert meter.embedding_calls == 0


async def test_a_check_costs_milliseconds_once_the_vectors_are_known(checker: EmbeddedChecker) -> None:
    answer = "The lift came in 1931 and was the work of Otto Berg [1]. Kids below twelve are exempt [2]."
    await check(checker, "Who built the lift?", answer)
    began = time.perf_counter()
    await check(checker, "Who built the lift?", answer)
    assert time.perf_counter() - began < 0.25
