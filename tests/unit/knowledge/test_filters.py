"""Who may see which passage: conditions on metadata, for every search, graph and store."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from crag import Settings, aask
from crag.base.errors import SettingsError
from crag.base.metering import metered
from crag.knowledge.ingestion import ingest
from crag.knowledge.retrieval import HybridRetriever
from crag.knowledge.store.store import KnowledgeBase
from crag.settings.conditions import Condition, conditions
from tests.support.chroma_server import chroma_server
from tests.support.commands import here
from tests.support.openai_server import OpenAIServer
from tests.support.toy import ToyEmbeddings

TOY = ToyEmbeddings()
RECORDS: list[dict[str, Any]] = [
    {"id": "a1", "text": "The pump of acme shows error E-4012-B when dry.", "tenant": "acme", "page": 3},
    {"id": "a2", "text": "阿克米公司的水泵在缺水时停机。", "tenant": "acme", "page": 4, "draft": True},
    {"id": "a3", "text": "Acme paints its pumps green.", "tenant": "acme", "page": 5, "draft": False},
    {"id": "b1", "text": "The pump of bolt shows error E-9001-X when hot.", "tenant": "bolt", "page": 3},
    {"id": "b2", "text": "Bolt paints its pumps red.", "tenant": "bolt", "lang": "zh", "level": 2.5},
    {"id": "c1", "text": "Everybody may read about pumps.", "page": "3"},
]


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tenants")
    fill(folder, Settings(_env_file=None, kb=folder / "kb"))
    return folder / "kb"


def fill(folder: Path, settings: Settings) -> None:
    lines = [json.dumps({"source": "tenants.md", **record}, ensure_ascii=False) for record in RECORDS]
    (folder / "kb.jsonl").write_text("\n".join(lines), "utf-8")
    assert ingest([folder / "kb.jsonl"], settings, ToyEmbeddings()).ok


async def found(settings: Settings, question: str, where: Any = ()) -> set[str]:
    retriever = HybridRetriever(KnowledgeBase(settings, TOY), TOY)
    return {str(document.metadata["id"]) for document in await retriever(question, 10, conditions(where))}


def limited(kb: Path, **more: Any) -> Settings:
    return Settings(_env_file=None, kb=kb, web="off", **more)


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        (["tenant=acme"], {"a1", "a2", "a3"}),
        ({"tenant": ["acme", "bolt"]}, {"a1", "a2", "a3", "b1", "b2"}),
        (["tenant=acme", "lang=zh"], {"a2"}),
        ({"page": 3}, {"a1", "b1", "c1"}),
        (["page=3"], {"a1", "b1", "c1"}),
        (["draft=true"], {"a2"}),
        ({"draft": False}, {"a3"}),
        (["level=2.5"], {"b2"}),
        (["source=tenants.md", "id=c1"], {"c1"}),
        (["lang=zh"], {"a2", "b2"}),
        (["lang=en", "tenant=bolt"], {"b1"}),
        (["tenant=acme", "tenant=bolt"], set()),
        (["tenant=Acme"], set()),
    ],
)
async def test_only_passages_that_carry_it_are_found(kb: Path, where: Any, ids: set[str]) -> None:
    assert await found(limited(kb), "pump error", where) == ids


@pytest.mark.parametrize(
    "question", ["E-9001-X", "error E-9001-X of bolt's pump", "Bolt paints its pumps red"]
)
async def test_neither_meaning_nor_words_nor_codes_find_another_tenant_s_passage(
    kb: Path, question: str
) -> None:
    assert await found(limited(kb, filter="tenant=acme"), question) == {"a1", "a2", "a3"}


@pytest.mark.parametrize("where", [["tenant=bolt"], {"tenant": ["acme", "bolt"]}, ["lang=en"], ["page=3"]])
async def test_a_caller_narrows_the_configured_filter_and_never_widens_it(kb: Path, where: Any) -> None:
    ids = await found(limited(kb, filter="tenant=acme"), "pump error E-9001-X", where)
    assert ids <= {"a1", "a2", "a3"}
    assert ids == {("tenant=bolt",): set(), ("lang=en",): {"a1", "a3"}, ("page=3",): {"a1"}}.get(
        tuple(where), {"a1", "a2", "a3"}
    )


async def test_nothing_of_another_tenant_stands_around_a_passage(kb: Path) -> None:
    retriever = HybridRetriever(KnowledgeBase(limited(kb), TOY), TOY)
    for document in await retriever("pump error", 10, conditions(["tenant=acme"])):
        assert "olt" not in str(document.metadata)


async def test_a_server_keeps_tenants_apart_too(tmp_path: Path) -> None:
    with chroma_server(tmp_path / "served") as url:
        fill(tmp_path, Settings(_env_file=None, chroma_url=url))
        settings = Settings(_env_file=None, chroma_url=url, filter={"tenant": "acme"})
        assert await found(settings, "E-9001-X") == {"a1", "a2", "a3"}
        assert await found(settings, "E-9001-X", {"tenant": "bolt"}) == set()


async def test_an_unknown_key_finds_nothing_and_names_the_known_ones_within_the_filter(kb: Path) -> None:
    async def warnings(settings: Settings, where: Any) -> list[str]:
        with metered() as meter:
            assert await found(settings, "pump", where) == set()
        return meter.warnings

    known = "id, lang, page, row, source, tenant, title"
    assert await warnings(limited(kb), ["tennant=acme"]) == [
        'no passage has "tennant" in its metadata; known keys: '
        "draft, id, lang, level, page, row, source, tenant, title"
    ]
    acme = limited(kb, filter="tenant=acme,page=3")
    assert await warnings(acme, ["level=2.5"]) == [
        f'no passage has "level" in its metadata; known keys: {known}'
    ]
    assert await warnings(acme, ["page=4"]) == ["no passage meets page=4"]
    assert await warnings(limited(kb, filter="tenant=nobody"), []) == [
        "no passage meets the configured filter (CRAG_FILTER)"
    ]
    assert (await warnings(limited(kb, filter="tenat=acme"), []))[0].startswith(
        'CRAG_FILTER: no passage has "tenat" in its metadata; known keys: draft,'
    )


async def test_what_changes_hands_is_gone_at_the_next_question(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, kb=tmp_path / "kb", filter="tenant=acme")
    fill(tmp_path, settings)
    retriever = HybridRetriever(KnowledgeBase(settings, TOY), TOY)
    assert "a1" in {document.metadata["id"] for document in await retriever("E-4012-B", 10)}
    text = (tmp_path / "kb.jsonl").read_text("utf-8")
    (tmp_path / "kb.jsonl").write_text(text.replace('"tenant": "acme"', '"tenant": "bolt"', 1), "utf-8")
    ingest([tmp_path / "kb.jsonl"], settings, ToyEmbeddings())
    assert {document.metadata["id"] for document in await retriever("E-4012-B", 10)} == {"a2", "a3"}


@pytest.mark.parametrize("graph", ["crag", "batched", "agentic", "fixed"])
async def test_every_graph_stays_within_filter_and_where(
    kb: Path, openai_server: Callable[..., OpenAIServer], graph: str
) -> None:
    def reply(messages: list[dict[str, Any]]) -> str:
        if "other queries" in messages[0]["content"]:
            return "1. error E-9001-X\n2. bolt pumps red\n3. pump of bolt"
        return "Reason: off topic\nScore: 0.1"

    server = openai_server(reply)
    settings = limited(kb, filter="tenant=acme", base_url=server.url, model="m", check=False)
    answer = await aask(
        "What is error E-9001-X?", settings=settings, graph=graph, embeddings=TOY, where={"lang": "en"}
    )
    assert {document.id for document in answer.documents} == {"a1", "a3"}
    assert "bolt" not in "".join(str(chat.messages) for chat in server.chats if "E-9001-X" not in chat.prompt)
    if graph == "agentic":
        assert answer.path.count("retrieve") == 2


async def test_what_an_own_retriever_finds_is_filtered_by_its_metadata() -> None:
    def retrieve(question: str, k: int) -> list[Document]:
        return [
            Document("Tides of acme.", metadata={"tenant": "acme"}),
            Document("Tides of bolt.", metadata={"tenant": "bolt"}),
            Document("Tides of nobody."),
        ]

    async def asked(where: Any) -> Any:
        settings = Settings(_env_file=None, web="off", filter="tenant=acme", evaluator="embedded")
        return await aask(
            "Tides?", settings=settings, retriever=retrieve, grader=lambda *_: 0.9, where=where, graph="crag"
        )

    assert [d.text for d in (await asked(None)).documents] == ["Tides of acme."]
    nothing = await asked({"tenant": "bolt"})
    assert nothing.documents == []
    assert "nothing that your retriever found meets tenant=acme and tenant=bolt" in nothing.warnings


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("tenant=acme", (Condition("tenant", ("acme",)),)),
        ("a=1, b=x=y", (Condition("a", ("1",)), Condition("b", ("x=y",)))),
        ('{"source": "a,b.md", "n": 3}', (Condition("source", ("a,b.md",)), Condition("n", ("3",)))),
        ({"x": [True, 2.0]}, (Condition("x", ("true", "2")),)),
        ((), ()),
    ],
)
def test_conditions_are_read_from_text_and_mappings(given: Any, read: Any) -> None:
    assert conditions(given) == read


@pytest.mark.parametrize(
    "given",
    [
        "tenant",
        "=acme",
        "tenant=",
        "tenant=a,b",
        "$or=1",
        '{"a": ',
        '{"a": null}',
        {"a": []},
        {"a": {}},
        3,
        [3],
    ],
)
def test_what_cannot_be_read_is_refused_and_never_shows_everything(given: Any) -> None:
    for name in ("where", "filter"):
        with pytest.raises(SettingsError, match=f"^CRAG_{name.upper()}: [^\n]+$"):
            Settings(_env_file=None, **{name: given})


async def test_a_condition_that_a_caller_wrote_wrong_is_a_settings_error(kb: Path) -> None:
    with pytest.raises(SettingsError, match="where: a condition reads key=value"):
        await aask("q", settings=limited(kb), where=["tenant"])


def test_the_command_takes_conditions_and_the_environment_a_filter(sample_kb: Path) -> None:
    def sources(*arguments: str, **environment: str) -> set[str]:
        done = here("What is HyDE?", "--kb", str(sample_kb), "--json", *arguments, **environment)
        assert done.returncode == 0, done.stderr
        return {document["source"] for document in json.loads(done.stdout)["documents"]}

    assert sources("--where", "source=en/hyde.md") == {"en/hyde.md"}
    assert sources("--where", "source=en/hyde.md", CRAG_FILTER="lang=zh") == set()
    wrong = here("q", "--where", "source")
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (2, 1)
    assert "a condition reads key=value" in wrong.stderr
