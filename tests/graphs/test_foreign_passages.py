"""A passage in another language than the question's is no proof where the own language has material."""

import pytest
from langchain_core.documents import Document

from crag.base.state import CRAGState
from crag.judging.grading import Thresholds
from crag.nodes.common import cautious

ENGLISH = Document("The shop is open from nine to six on every working day.", id="en")
CHINESE = Document("收到退货后，退款将在五个工作日内支付到原账户。", id="zh")
DEFAULT = Thresholds(upper=0.7, lower=0.3, aggregate="max")


def state(question: str, *documents: Document) -> CRAGState:
    return CRAGState(question=question, retrieved_docs=list(documents))


@pytest.mark.parametrize(
    ("question", "scores", "verdict"),
    [
        ("How do I apply for a passport?", [0.1, 0.96], "ambiguous"),
        ("How do I apply for a passport?", [0.8, 0.96], "correct"),
        ("How do I apply for a passport?", [0.1, 0.2], "incorrect"),
        ("如何申请护照？", [0.96, 0.1], "ambiguous"),
    ],
)
def test_a_passage_in_the_other_language_alone_is_at_most_ambiguous(question, scores, verdict):
    counted = cautious(state(question, ENGLISH, CHINESE), scores, DEFAULT)
    assert DEFAULT.verdict(counted)[0] == verdict


def test_where_only_the_other_language_has_material_its_scores_count_in_full():
    assert cautious(state("退款需要几个工作日？", ENGLISH), [0.9], DEFAULT) == [0.9]


def test_unscored_stays_unscored():
    found = cautious(state("How long?", ENGLISH, CHINESE), [None, None], DEFAULT)
    assert found == [None, None]
