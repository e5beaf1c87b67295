import json
import subprocess
import sys
from pathlib import Path

import pytest

from crag.base.errors import ModelError
from crag.base.metering import metered
from crag.encoders.embeddings import EmbeddedEmbeddings
from crag.knowledge.ingestion import ingest
from crag.knowledge.retrieval import HybridRetriever
from crag.knowledge.store.store import KnowledgeBase
from crag.settings.settings import Settings
from tests.support.toy import ToyEmbeddings

ROOT = Path(__file__).parents[3]

RECORDS = [
    (
        "en:tower",
        "The Eiffel Tower was completed in 1889 and is 330 metres tall. Gustave Eiffel's company built it.",
    ),
    ("zh:tower", "埃菲尔铁塔于1889年建成，高330米。它是由古斯塔夫·埃菲尔的公司建造的。"),
    ("en:bread", "Sourdough bread rises slowly because wild yeast ferments the dough overnight."),
    ("zh:panda", "大熊猫主要以竹子为食，每天要花十几个小时进食。野生大熊猫生活在四川的山里。"),
    (
        "en:whale",
        "The blue whale is the largest animal and feeds on tiny krill. It may live for eighty years.",
    ),
    ("zh:tea", "绿茶不经过发酵，冲泡时水温以八十度为宜，否则茶汤会变苦。"),
    ("en:moon", "The Moon causes the tides of the oceans by its gravity."),
    ("zh:river", "黄河因泥沙含量大而呈黄色，是中国第二长的河流。"),
]


def knowledge(folder: Path, records: list[tuple[str, str]], embeddings: object) -> HybridRetriever:
    file = folder / "kb.jsonl"
    lines = [json.dumps({"id": id_, "text": text, "title": "T"}, ensure_ascii=False) for id_, text in records]
    file.write_text("\n".join(lines), "utf-8")
    settings = Settings(kb=folder / "kb")
    assert ingest([file], settings, embeddings).ok  # type: ignore[arg-type]
    return HybridRetriever(KnowledgeBase(settings, embeddings), embeddings)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def bilingual(tmp_path_factory: pytest.TempPathFactory, encoder: EmbeddedEmbeddings) -> HybridRetriever:
    return knowledge(tmp_path_factory.mktemp("bilingual"), RECORDS, encoder)


async def ids(retriever: HybridRetriever, question: str, k: int) -> list[str]:
    return [str(document.metadata["id"]) for document in await retriever(question, k)]


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("When was the Eiffel Tower finished?", "en:tower"),
        ("埃菲尔铁塔有多高？", "zh:tower"),
        ("What does the largest animal eat?", "en:whale"),
        ("大熊猫吃什么？", "zh:panda"),
    ],
)
async def test_the_passage_that_answers_comes_first(
    bilingual: HybridRetriever, question: str, best: str
) -> None:
    assert (await ids(bilingual, question, 4))[0] == best


async def test_a_translation_of_what_is_chosen_takes_no_place(bilingual: HybridRetriever) -> None:
    assert "en:tower" not in await ids(bilingual, "埃菲尔铁塔是哪一年建成的？", 4)
    assert "zh:tower" not in await ids(bilingual, "Who built the Eiffel Tower?", 4)


@pytest.mark.parametrize(
    ("question", "only"),
    [
        ("蓝鲸吃什么？", "en:whale"),
        ("What do giant pandas eat?", "zh:panda"),
        ("潮汐是怎么形成的？", "en:moon"),
    ],
)
async def test_what_only_the_other_language_says_is_found(
    bilingual: HybridRetriever, question: str, only: str
) -> None:
    """F33."""
    assert only in await ids(bilingual, question, 2)


async def test_more_than_there_is_gives_everything_once(bilingual: HybridRetriever) -> None:
    found = await ids(bilingual, "埃菲尔铁塔", 50)
    assert sorted(found) == sorted(id_ for id_, _ in RECORDS)
    assert await ids(bilingual, "埃菲尔铁塔", 0) == []


async def test_documents_say_where_they_are_from_and_carry_no_bookkeeping(bilingual: HybridRetriever) -> None:
    document = (await bilingual("blue whale", 1))[0]
    source = document.metadata.pop("source")
    assert source.endswith("kb.jsonl")
    assert document.metadata == {"id": "en:whale", "title": "T", "row": 5, "origin": "kb"}
    assert document.page_content == RECORDS[4][1]


async def test_stored_vectors_are_handed_on_so_that_scoring_computes_none(
    bilingual: HybridRetriever, encoder: EmbeddedEmbeddings
) -> None:
    class Recorder:
        def __init__(self) -> None:
            self.put_texts: list[str] = []
            self.shapes: list[tuple[int, ...]] = []

        def put(self, text: str, passage_vector: object, strip_vectors: object) -> None:
            self.put_texts.append(text)
            self.shapes.append(strip_vectors.shape)  # type: ignore[attr-defined]

    recorder = Recorder()
    retriever = HybridRetriever(bilingual._kb, encoder, recorder)  # type: ignore[arg-type]
    await retriever("blue whale", 1)
    assert recorder.put_texts == [RECORDS[4][1]]
    assert recorder.shapes == [(2, 384)]


@pytest.mark.parametrize(
    ("question", "holder"),
    [("error E-4012-B", "the-code"), ("合同编号 HT2024-0031", "the-contract")],
)
async def test_an_exact_code_is_found_among_many_alike(tmp_path: Path, question: str, holder: str) -> None:
    """F87."""
    records = [
        (f"e{i}", f"Pump error E-{4013 + i}-B means error class {i}; see error list.") for i in range(80)
    ]
    records += [(f"c{i}", f"合同编号 HT2023-{i:04d}，合同编号由系统生成。") for i in range(80)]
    records.append(("the-code", "When the cooling circuit runs dry, the display shows E-4012-B."))
    records.append(("the-contract", "双方于五月签署的采购文件，编号为 HT2024-0031。"))
    retriever = knowledge(tmp_path, records, ToyEmbeddings())
    assert (await ids(retriever, question, 4))[0] == holder


async def test_identical_and_nearly_identical_passages_do_not_fill_the_result(tmp_path: Path) -> None:
    text = "The warranty of the device lasts for twenty four months from the day of purchase."
    records = [(f"near{i}", f"{text} Version {i}.") for i in range(6)]
    records += [("other", "A warranty claim needs the receipt."), ("far", "Bread rises overnight.")]
    (tmp_path / "twin.txt").write_text(f"{text} Version 0.", "utf-8")
    retriever = knowledge(tmp_path, records, ToyEmbeddings())
    ingest([tmp_path / "twin.txt"], retriever._kb.settings, ToyEmbeddings())
    found = await retriever("How long does the warranty last?", 4)
    assert len({document.page_content for document in found}) == 4
    assert {"other", "far"} < {str(document.metadata["id"]) for document in found}


async def test_a_change_in_the_knowledge_base_is_seen_by_the_next_question(tmp_path: Path) -> None:
    retriever = knowledge(tmp_path, [("a", "Alpha words.")], ToyEmbeddings())
    assert await ids(retriever, "gamma", 3) == ["a"]
    knowledge(tmp_path, [("b", "Gamma words.")], ToyEmbeddings())
    assert await ids(retriever, "gamma", 3) == ["b"]


async def test_an_emptied_knowledge_base_gives_nothing_and_says_so(tmp_path: Path) -> None:
    retriever = knowledge(tmp_path, [("a", "Alpha words.")], ToyEmbeddings())
    (tmp_path / "kb.jsonl").unlink()
    ingest([tmp_path / "kb.jsonl"], retriever._kb.settings, ToyEmbeddings())
    with metered() as spent:
        assert await retriever("alpha", 4) == []
    kb = retriever._kb.settings.kb
    assert spent.warnings == [
        f"the knowledge base at {kb} is empty; run: python -m crag.ingest PATH --kb {kb}"
    ]


async def test_embeddings_that_fail_are_named_in_one_line(tmp_path: Path) -> None:
    class Failing(ToyEmbeddings):
        def embed_query(self, text: str) -> list[float]:
            if text == "down?":
                raise ConnectionError("refused\nby the server")
            return super().embed_query(text)

    retriever = knowledge(tmp_path, [("a", "Alpha words.")], Failing())
    with pytest.raises(ModelError, match=r"^the embeddings failed: refused$"):
        await retriever("down?", 2)


class ReplacingEmbeddings(ToyEmbeddings):
    """While the question is being embedded, another process replaces the file."""

    def __init__(self, file: Path, text: str) -> None:
        super().__init__()
        self.file, self.text = file, text

    def embed_query(self, text: str) -> list[float]:
        if text == "Which value has the part K7-004?" and self.text:
            self.file.write_text(self.text, "utf-8")
            self.text = ""
            ingested = [str(self.file), "--kb", str(self.file.parent / "kb")]
            subprocess.run(
                [sys.executable, "-m", "tests.support.toy_ingest", *ingested],
                cwd=ROOT,
                check=True,
                capture_output=True,
            )
        return super().embed_query(text)


def test_a_passage_that_is_replaced_while_the_question_is_asked_is_found_as_it_is_now(tmp_path: Path) -> None:
    """F49. Only its code tells the passage from forty others that are nearer by meaning."""
    others = [
        {"id": f"other-{i}", "text": f"Which value has the part X{i}? The value of the part."}
        for i in range(80)
    ]
    lines = [json.dumps(other) for other in others]
    sought = {"id": "sought", "text": "K7-004: " + "written down in the workshop long ago. " * 5 + "Old."}
    file = tmp_path / "kb.jsonl"
    file.write_text("\n".join([*lines, json.dumps(sought)]), "utf-8")
    settings = Settings(_env_file=None, kb=tmp_path / "kb")
    after = json.dumps({**sought, "text": sought["text"].replace("Old", "New")})
    embeddings = ReplacingEmbeddings(file, "\n".join([*lines, after]))
    assert ingest([file], settings, embeddings).ok
    retriever = HybridRetriever(KnowledgeBase(settings, embeddings), embeddings)
    found = retriever.retrieve("Which value has the part K7-004?", 4)
    assert found[0].metadata["id"] == "sought"
    assert found[0].page_content.endswith("New.")
