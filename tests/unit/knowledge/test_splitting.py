import time

from langchain_core.documents import Document

from crag.knowledge.files.documents import weight
from crag.knowledge.files.splitting import split

SENTENCE = "他说：“这个办法很好。”然后大家都走了……"


def texts(text: str, **metadata: object) -> list[str]:
    return [passage.page_content for passage in split([Document(text, metadata=metadata)])]


def test_a_short_text_stays_whole_in_either_language() -> None:
    assert texts("天青色等烟雨，而我在等你。哈哈哈.....") == ["天青色等烟雨，而我在等你。哈哈哈....."]
    assert texts("Two sentences. One passage.") == ["Two sentences. One passage."]


def test_chinese_is_cut_behind_the_mark_that_ends_a_sentence() -> None:
    passages = texts(SENTENCE * 60)
    assert len(passages) > 1
    assert all(passage.startswith(("他说", "然后")) for passage in passages)
    assert all(passage.endswith(("。”", "……")) for passage in passages)


def test_passages_hold_about_a_thousand_characters_of_english_and_500_of_chinese() -> None:
    english = texts("This is one of the many sentences of a long text. " * 100)
    chinese = texts("这是一篇长文章里的许多句子当中的一句。" * 100)
    assert 900 < max(map(len, english)) <= 1000
    assert 450 < max(map(len, chinese)) <= 530


def test_a_paragraph_without_any_mark_or_blank_is_still_cut() -> None:
    passages = texts("中" * 3000)
    assert all(weight(passage) <= 1000 for passage in passages)
    assert sum(map(len, passages)) >= 3000


def test_neighbours_share_a_sentence() -> None:
    sentences = [f"Sentence number {i} says something about its number. " for i in range(60)]
    first, second = texts("".join(sentences))[:2]
    assert first.split(". ")[-1] in second


def test_a_passage_starts_with_the_headings_above_it() -> None:
    text = "# 手册\n\n前言一段。\n\n## 安装\n### Linux\n\n先装依赖。\n\n## 卸载\n\n删除目录即可。\n"
    assert texts(text, markdown=True) == [
        "# 手册\n\n前言一段。",
        "# 手册 › 安装 › Linux\n\n先装依赖。",
        "# 手册 › 卸载\n\n删除目录即可。",
    ]


def test_underlined_headings_count_and_code_comments_do_not() -> None:
    text = "Guide\n=====\n\nRun this:\n\n```\n# not a heading\nmake\n```\n"
    assert texts(text, markdown=True) == ["# Guide\n\nRun this:\n\n```\n# not a heading\nmake\n```"]


def test_a_long_section_repeats_its_heading_in_each_passage() -> None:
    passages = texts("# 退款\n\n" + "这是一篇长文章里的许多句子当中的一句。" * 60, markdown=True)
    assert len(passages) > 1
    assert all(passage.startswith("# 退款\n\n这是") for passage in passages)


def test_headings_alone_and_blank_text_make_no_passages() -> None:
    assert texts("# Empty\n\n## Also empty\n\n# Full\n\nWords.\n", markdown=True) == ["# Full\n\nWords."]
    assert texts(" \n\n ---- \n") == []
    assert texts("# Only\n## Headings\n", markdown=True) == ["# Only\n## Headings"]


def test_a_title_line_is_not_left_alone() -> None:
    body = "这是一篇长文章里的许多句子当中的一句。" * 30
    passages = texts(f"{body}\n松平康忠\n{body}")
    assert all(weight(passage) >= 80 for passage in passages)
    assert any(passage.startswith("松平康忠\n这是") for passage in passages)


def test_records_stay_whole_where_text_of_that_length_is_cut() -> None:
    text = "This is one of the many sentences of a long text. " * 30
    assert len(texts(text, id="r1")) == 1
    assert len(texts(text)) == 2
    assert len(texts(text * 2, id="r1")) > 1


def test_metadata_goes_along_without_the_mark_for_markdown() -> None:
    passage = split([Document("# A\n\nB", metadata={"markdown": True, "page": 3, "source": "s"})])[0]
    assert passage.metadata == {"page": 3, "source": "s"}


ROWS = "".join(f"| Widget number {i} of the series | {3 * i} EUR |\n" for i in range(60))


def test_each_passage_of_a_long_table_begins_with_the_names_of_its_columns() -> None:
    head = "| Name | Price |\n|---|---|\n"
    passages = texts(f"# Goods\n\nOurs.\n\n{head}{ROWS}\nAsk for more.\n", markdown=True)
    assert len(passages) == 3
    assert passages[0].startswith(f"# Goods\n\nOurs.\n{head}| Widget number 0 of")
    assert all(passage.startswith(f"# Goods\n\n{head}| Widget number") for passage in passages[1:])
    assert [passage.count("| Name | Price |") for passage in passages] == [1, 1, 1]
    assert passages[-1].endswith("| 177 EUR |\nAsk for more.")


def test_a_table_without_a_rule_as_in_docx_is_named_by_its_full_first_row_and_by_no_other() -> None:
    named = texts(f"| 名称 | 价格 |\n{ROWS}", markdown=True)
    assert all(passage.startswith("| 名称 | 价格 |\n| Widget") for passage in named)
    unnamed = texts(f"| | 价格 |\n{ROWS}", markdown=True)
    assert all(passage.startswith("| Widget number") for passage in unnamed[1:])
    assert len(named) == len(unnamed) == 3


def test_tables_without_outer_bars_have_heads_too_each_its_own() -> None:
    rows = ROWS.replace("| Widget", "Widget").replace(" |\n", "\n")
    passages = texts(f"Name | Price\n--- | ---\n{rows}\nA | B\n--- | ---\n{rows}", markdown=True)
    assert passages[1].startswith("Name | Price\n--- | ---\nWidget number")
    assert passages[-1].startswith("A | B\n--- | ---\nWidget number")


def test_a_first_row_of_whole_sentences_is_no_head() -> None:
    passages = texts(f"| {'Long words. ' * 15}| {'More words. ' * 15}|\n{ROWS}", markdown=True)
    assert all(passage.startswith("| Widget number") for passage in passages[1:])


def test_megabytes_without_any_mark_or_blank_are_split_in_a_moment() -> None:
    began = time.perf_counter()
    passages = texts("x" * 2_000_000)
    assert time.perf_counter() - began < 3
    assert {len(passage) for passage in passages[:-1]} == {1000}
