"""The sample data keeps the promises that `data/README.md` makes to a newcomer and to the benchmark."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from crag.base.language import language_of

DATA = Path(__file__).parents[2] / "data"
DOCUMENTS = {path.relative_to(DATA).as_posix(): path.read_text("utf-8") for path in DATA.glob("kb/*/*.md")}


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


QUESTIONS = rows("questions.jsonl")
WEB = rows("web.jsonl")
TEXTS = DOCUMENTS | {page["url"]: page["text"] for page in WEB}
ANSWERABLE = [row for row in QUESTIONS if row["group"] != "nowhere"]


def holds(text: str, row: dict[str, Any]) -> bool:
    """Whether a text holds every part of one of the row's answers."""
    lists = [[one] if isinstance(one, str) else one for one in row["answers"]]
    return any(all(part.lower() in text.lower() for part in parts) for parts in lists)


# What the knowledge base must not know, or the corrective path has nothing to correct.
GAPS = (
    "graphrag|graph rag|late chunking|colbert|speculative|kv.?cache|pagedattention|vllm|memgpt|letta"
    "|\\blora\\b|matryoshka|licen[cs]e|evict|gptcache|raptor|\\bmcp\\b|知识图谱|推测解码|低秩|许可证|淘汰|套娃|智能体"
)


def counts_in_readme(label: str) -> dict[str, int]:
    """The last two cells (en, zh) of the README's table row that starts with `label`."""
    readme = (DATA / "README.md").read_text("utf-8")
    line = next(line for line in readme.splitlines() if line.startswith(f"| `{label}`"))
    en, zh = line.strip("| ").split("|")[-2:]
    return {"en": int(en), "zh": int(zh)}


def ids(items: list[dict[str, Any]]) -> list[str]:
    return [item["id"] for item in items]


def test_question_ids_and_texts_and_web_addresses_are_unique() -> None:
    assert len({row["id"] for row in QUESTIONS}) == 68
    assert len({row["question"] for row in QUESTIONS}) == 68
    assert len({page["url"] for page in WEB}) == 32


def test_every_question_has_the_documented_fields_and_is_written_in_its_language() -> None:
    fields = ["id", "lang", "question", "reference", "answers", "group", "in_kb", "in_web", "gold_sources"]
    for row in QUESTIONS:
        assert list(row) == fields, row["id"]
        assert language_of(row["question"]) == row["lang"], row["id"]
        assert row["reference"].strip(), row["id"]


def test_groups_have_the_counts_the_readme_states() -> None:
    found = Counter((row["group"], row["lang"]) for row in QUESTIONS)
    stated = {
        (group, lang): count
        for group in ("article", "in_kb", "web_only", "nowhere")
        for lang, count in counts_in_readme(group).items()
    }
    assert found == stated
    assert stated[("article", "en")] == stated[("article", "zh")] == 8


def test_files_have_the_counts_the_readme_states() -> None:
    documents = Counter(name.split("/")[1] for name in DOCUMENTS)
    assert documents == counts_in_readme("kb/<language>/*.md")
    assert Counter(page["url"].split("/")[3] for page in WEB) == counts_in_readme("web.jsonl")
    assert Counter(row["lang"] for row in QUESTIONS) == counts_in_readme("questions.jsonl")
    assert min(documents.values()) >= 20


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_each_document_is_short_titled_and_in_its_language(name: str) -> None:
    text = DOCUMENTS[name]
    assert re.match(r"# \S.*\n\n", text)
    assert len(re.findall(r"^# ", text, flags=re.MULTILINE)) == 1
    assert language_of(text) == name.split("/")[1]
    if name.startswith("kb/en/"):
        assert 150 <= len(text.split()) <= 350
    else:
        assert 250 <= len(re.findall(r"[\u4e00-\u9fff]", text)) <= 600


def test_titles_differ_within_a_language() -> None:
    for lang in ("en", "zh"):
        titles = [text.splitlines()[0] for name, text in DOCUMENTS.items() if name.startswith(f"kb/{lang}/")]
        assert len(titles) == len(set(titles))


@pytest.mark.parametrize("row", ANSWERABLE, ids=ids(ANSWERABLE))
def test_every_gold_source_exists_in_the_language_and_holds_the_answer(row: dict[str, Any]) -> None:
    assert row["answers"]
    assert row["gold_sources"]
    for source in row["gold_sources"]:
        assert f"/{row['lang']}/" in source
        assert holds(TEXTS[source], row)


@pytest.mark.parametrize("row", ANSWERABLE, ids=ids(ANSWERABLE))
def test_a_reference_is_itself_a_right_answer(row: dict[str, Any]) -> None:
    assert holds(row["reference"], row)


def test_gold_sources_stand_where_the_group_says() -> None:
    for row in ANSWERABLE:
        on_the_web = row["group"] == "web_only"
        assert (row["in_kb"], row["in_web"]) == (not on_the_web, on_the_web), row["id"]
        prefix = "https://example.org/" if on_the_web else "kb/"
        assert all(source.startswith(prefix) for source in row["gold_sources"]), row["id"]


def test_questions_without_an_answer_have_no_gold() -> None:
    nowhere = [row for row in QUESTIONS if row["group"] == "nowhere"]
    assert len(nowhere) == 12
    for row in nowhere:
        assert (row["in_kb"], row["in_web"], row["answers"], row["gold_sources"]) == (False, False, [], [])


def test_no_document_in_either_language_holds_a_web_only_answer() -> None:
    leaks = [
        (row["id"], name)
        for row in QUESTIONS
        if row["group"] == "web_only"
        for name, text in DOCUMENTS.items()
        if holds(text, row)
    ]
    assert leaks == []


def test_the_gaps_are_not_even_mentioned_in_the_knowledge_base() -> None:
    mentions = [(name, hit) for name, text in DOCUMENTS.items() for hit in re.findall(GAPS, text.lower())]
    assert mentions == []
    assert re.search(GAPS, " ".join(page["text"] for page in WEB).lower())


@pytest.mark.parametrize(
    "code", ["E-4012-B", "E-5107-C", "ingest.quarantine_dir", "retrieval.neighbor_window"]
)
def test_an_exact_code_stands_in_one_document_only(code: str) -> None:
    assert len([name for name, text in DOCUMENTS.items() if code in text]) == 1
