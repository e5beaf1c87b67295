import shutil
from pathlib import Path

import pytest

from crag.knowledge.ingestion import ingest
from crag.knowledge.store.lexical import LexicalIndex, lexical_index
from crag.knowledge.store.store import KnowledgeBase
from crag.settings.settings import Settings
from tests.support.toy import ToyEmbeddings

IDS = ["pump", "contract", "cat", "猫"]
TEXTS = [
    "The pump reports error E-4012-B when it runs dry.",
    "合同编号 HT2024-0031 由双方签署。",
    "A cat sleeps. An error is rare.",
    "猫在睡觉。",
]


@pytest.fixture
def index() -> LexicalIndex:
    return LexicalIndex.build(IDS, TEXTS)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("error E-4012-B", "pump"),
        ("e-4012-b?", "pump"),
        ("合同编号 HT2024-0031", "contract"),
        ("HT2024-0031", "contract"),
        ("睡觉的猫", "猫"),
        ("cats or a cat", "cat"),
    ],
)
def test_the_passage_with_the_exact_words_comes_first(index: LexicalIndex, query: str, first: str) -> None:
    assert index.search(query, 4)[0].id == first


def test_passages_without_a_common_word_are_not_found(index: LexicalIndex) -> None:
    assert {match.id for match in index.search("error", 4)} == {"pump", "cat"}
    assert index.search("zebra", 4) == []
    assert index.search("", 4) == []
    assert index.search("？！", 4) == []
    assert len(index.search("error pump cat", 1)) == 1


def test_the_score_is_the_share_of_what_could_be_reached(index: LexicalIndex) -> None:
    whole = index.search("E-4012-B", 1)[0].score
    part = index.search("E-4012-B zebra giraffe elephant", 1)[0].score
    assert 0.3 < whole < 1
    assert 0 < part < whole


def test_nothing_indexed_finds_nothing() -> None:
    assert LexicalIndex.build([], []).search("error", 3) == []
    assert LexicalIndex.build(["a"], ["…"]).search("error", 3) == []


def test_a_saved_index_gives_the_same_scores(index: LexicalIndex, tmp_path: Path) -> None:
    index.save(tmp_path / "lexical" / "one")
    loaded = LexicalIndex.load(tmp_path / "lexical" / "one")
    assert loaded.search("error E-4012-B", 4) == index.search("error E-4012-B", 4)
    index.save(tmp_path / "lexical" / "two")
    assert [path.name for path in (tmp_path / "lexical").iterdir()] == ["two"]


def test_the_index_of_a_knowledge_base_is_stored_and_follows_changes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXTS[0], "utf-8")
    settings = Settings(kb=tmp_path / "kb")
    ingest([tmp_path / "a.txt"], settings, ToyEmbeddings())
    kb = KnowledgeBase(settings, ToyEmbeddings())
    assert len(lexical_index(kb).search("pump", 5)) == 1
    stored = [path.name for path in (settings.kb / "lexical").iterdir()]
    lexical_index(kb)
    assert [path.name for path in (settings.kb / "lexical").iterdir()] == stored
    (tmp_path / "a.txt").write_text(TEXTS[1], "utf-8")
    ingest([tmp_path / "a.txt"], settings, ToyEmbeddings())
    index = lexical_index(kb)
    assert index.search("pump", 5) == []
    assert len(index.search("HT2024-0031", 5)) == 1


def test_titles_are_searched_too(tmp_path: Path) -> None:
    (tmp_path / "kb.jsonl").write_text('{"text": "It barks.", "title": "Dachshund"}\n', "utf-8")
    settings = Settings(kb=tmp_path / "kb")
    ingest([tmp_path / "kb.jsonl"], settings, ToyEmbeddings())
    assert len(lexical_index(KnowledgeBase(settings, ToyEmbeddings())).search("dachshund", 5)) == 1


def test_a_place_that_cannot_be_written_costs_no_answer(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXTS[0], "utf-8")
    settings = Settings(kb=tmp_path / "kb")
    ingest([tmp_path / "a.txt"], settings, ToyEmbeddings())
    shutil.rmtree(settings.kb / "lexical")
    (settings.kb / "lexical").write_text("in the way", "utf-8")
    kb = KnowledgeBase(settings, ToyEmbeddings())
    assert len(lexical_index(kb).search("pump", 5)) == 1


def test_codes_that_few_passages_hold_name_their_holders(index: LexicalIndex) -> None:
    assert index.code_holders("What is E-4012-B?") == {"pump": 1.0}
    assert set(index.code_holders("HT2024-0031 和 E-4012-B")) == {"pump", "contract"}
    assert index.code_holders("error 4012 in 2024") == {}
    assert LexicalIndex.build([str(i) for i in range(9)], ["code X-100"] * 9).code_holders("X-100") == {}


def test_a_folder_of_somebody_else_is_not_removed(index: LexicalIndex, tmp_path: Path) -> None:
    theirs = tmp_path / "lexical" / "theirs"
    theirs.mkdir(parents=True)
    (theirs / "notes.txt").write_text("keep", "utf-8")
    index.save(tmp_path / "lexical" / "one")
    assert (theirs / "notes.txt").read_text("utf-8") == "keep"
