import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from crag.base.metering import metered
from crag.judging.refinement import ModelRefiner
from crag.models.chat import chat_model
from crag.replies.pages import read_pages
from crag.settings.endpoints import Endpoint
from crag.settings.settings import Settings
from tests.support.openai_server import OpenAIServer, Reply

Serve = Callable[..., OpenAIServer]
PAGE = "Cookies help us. The bridge opened in 1937. It is 2,737 m long. Subscribe now!"


def refiner(server: OpenAIServer, tokens: int = 6000) -> ModelRefiner:
    settings = Settings(_env_file=None, retries=0)
    chat = chat_model(Endpoint("m", server.url, None), role="generator", settings=settings)
    return ModelRefiner(chat, tokens)


def page(text: str = PAGE, name: str = "a") -> Document:
    metadata = {"source": f"https://{name}.example/", "title": name, "origin": "web"}
    return Document(text, id=name, metadata=metadata)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("The bridge opened in 1937.", "The bridge opened in 1937."),
        ("- The bridge opened\n  in 1937.\n", "The bridge opened\nin 1937."),
        (
            '"The bridge opened in 1937."\n* It is 2,737 m long.',
            "The bridge opened in 1937.\nIt is 2,737 m long.",
        ),
        ("The bridge opened in 1937.\nIt was painted red in 1950.", "The bridge opened in 1937."),
        (
            "The bridge opened in 1937. It was red. It is 2,737 m long.",
            "The bridge opened in 1937.\nIt is 2,737 m long.",
        ),
        ("<think>x</think>It is 2,737 m long.", "It is 2,737 m long."),
    ],
)
async def test_only_lines_that_stand_in_the_page_remain(openai_server: Serve, reply: str, text: str) -> None:
    with metered() as spent:
        (refined,) = await refiner(openai_server(reply))("When did it open?", [page()])
    assert refined.page_content == text
    assert refined.metadata == page().metadata
    assert refined.id == "a"
    assert spent.warnings == []


@pytest.mark.parametrize("reply", ["NONE", "None.", "**NONE**", "NONE - nothing here bears on it"])
async def test_a_page_with_nothing_to_say_is_dropped(openai_server: Serve, reply: str) -> None:
    assert await refiner(openai_server(reply))("Who sings?", [page()]) == []


@pytest.mark.parametrize(
    "reply", [Reply(status=500), "The bridge was inaugurated in the thirties.", "", Reply("no", status=401)]
)
async def test_a_page_that_cannot_be_refined_stays_whole_with_a_warning(
    openai_server: Serve, reply: str | Reply
) -> None:
    with metered() as spent:
        assert await refiner(openai_server(reply))("When?", [page()]) == [page()]
    assert len(spent.warnings) == 1
    assert spent.warnings[0].startswith("a web page was not refined: ")


PAGES = [
    page("Menu. The bridge opened in 1937. Footer."),
    page("Its length is 2,737 m. Subscribe now!", "b"),
    page("桥梁是红色的。请登录。桥长2737米。", "c"),
]


async def refined(server: OpenAIServer) -> dict[str | None, str]:
    return {d.id: d.page_content for d in await refiner(server)("q?", PAGES)}


async def test_all_pages_are_read_in_one_call_each_behind_its_number(openai_server: Serve) -> None:
    server = openai_server("[1]\nThe bridge opened in 1937.\n[2]\nNONE\n[3]\n桥长2737米。")
    assert await refined(server) == {"a": "The bridge opened in 1937.", "c": "桥长2737米。"}
    [call] = server.chats
    shown = call.messages[1]["content"]
    assert [shown.split(f"[{n}]\ntitle: {name}\n")[1][:8] for n, name in ((1, "a"), (2, "b"), (3, "c"))] == [
        "source: ",
        "source: ",
        "source: ",
    ]


@pytest.mark.parametrize(
    "reply",
    [
        "[1] The bridge opened in 1937.\n[2] NONE\n[3] 桥长2737米。",
        "**[1]**\n- The bridge opened in 1937.\n\n**[2]**\nNONE\n\n**[3]**\n- 桥长2737米。",
        "Page 1:\nThe bridge opened in 1937.\nPage 2: none.\nPage 3:\n桥长2737米。",
        "### 网页1\nThe bridge opened in 1937.\n### 网页2：\n无\n### 网页 3：\n“桥长2737米。”",
        "【1】The bridge opened in 1937.\n【2】NONE（与问题无关）\n【3】桥长2737米。",
        "1. The bridge opened in 1937.\n2. NONE\n3. 桥长2737米。",
        '{"1": [\n"The bridge opened in 1937."\n], "2": "NONE",\n"3": [\n"桥长2737米。"\n]}',
        "第3页：桥长2737米。\n第2页：NONE\n第1页：The bridge opened in 1937.",
    ],
)
async def test_numbers_are_read_however_they_are_written(openai_server: Serve, reply: str) -> None:
    kept = await refined(openai_server(reply))
    assert "Subscribe now!" not in kept.get("b", "")
    assert kept["a"].endswith("The bridge opened in 1937.")
    assert kept["c"] == "桥长2737米。"


@pytest.mark.parametrize(
    ("reply", "warned"),
    [
        ("[1]\nThe bridge opened in 1937.\n[3]\n桥长2737米。", "a web page was not refined: "),
        ("[1]\nThe bridge opened in 1937.\n[2]\nIt is very long.\n[3]\n桥长2737米。", "a web page was not"),
        ("The bridge opened in 1937.\n桥长2737米。", "a web page was not"),
        ("[0]\nThe bridge opened in 1937.\n[1]\nNONE\n[2]\n桥长2737米。", "a web page was not"),
        ("[2]\nThe bridge opened in 1937.\n[3]\n桥长2737米。\n[4]\nNONE", "a web page was not"),
        ("[1]\nThe bridge opened in 1937.\n[3]\nNONE\n[2]\n桥长2737米。", "a web page was not"),
    ],
)
async def test_a_page_left_out_stays_whole_and_wrong_numbers_move_nothing(
    openai_server: Serve, reply: str, warned: str
) -> None:
    with metered() as spent:
        kept = await refined(openai_server(reply))
    assert kept == {
        "a": "The bridge opened in 1937.",
        "b": "Its length is 2,737 m. Subscribe now!",
        "c": "桥长2737米。",
    }
    assert len(spent.warnings) == 1
    assert spent.warnings[0].startswith(warned)


async def test_a_sentence_that_two_pages_share_goes_where_its_number_says(openai_server: Serve) -> None:
    pages = [page("Shared line of text. One."), page("Two. Shared line of text.", "b")]
    server = openai_server("[1]\nNONE\n[2]\nShared line of text.")
    kept = await refiner(server)("q?", pages)
    assert [(d.id, d.page_content) for d in kept] == [("b", "Shared line of text.")]


async def test_a_failed_call_leaves_every_page_with_one_warning(openai_server: Serve) -> None:
    with metered() as spent:
        kept = await refined(openai_server(Reply("down", status=500)))
    assert kept == {d.id: d.page_content for d in PAGES}
    assert len(spent.warnings) == 1
    assert spent.warnings[0].startswith("3 web pages were not refined: ")


async def test_one_none_for_all_pages_drops_all(openai_server: Serve) -> None:
    assert await refined(openai_server("NONE")) == {}


async def test_all_pages_together_stay_within_the_budget_and_short_ones_are_read_whole(
    openai_server: Serve,
) -> None:
    server = openai_server(Reply(status=500))
    pages = [page("长长的网页内容。" * 900, name) for name in "ab"] + [page(PAGE, "c")]
    await refiner(server, 2000)("是什么？", pages)
    shown = server.chats[0].messages[1]["content"]
    assert PAGE in shown
    assert 1900 < len(shown) < 2300


@given(st.text())
def test_any_reply_gives_each_page_its_own_lines_or_none(reply: str) -> None:
    texts = [d.page_content for d in PAGES]
    for text, lines in zip(texts, read_pages(reply, texts), strict=True):
        assert all(line.casefold() in " ".join(text.split()).casefold() for line in lines or [])


async def test_a_huge_page_is_read_in_part_and_an_empty_one_not_at_all(openai_server: Serve) -> None:
    server = openai_server(Reply(status=500))
    huge, empty = page("很长的网页内容在这里。" * 20_000), page("  \n", "b")
    (kept,) = await refiner(server)("是什么？", [huge, empty])
    assert len(server.chats) == 1
    assert len(server.chats[0].prompt) < 6000
    assert 3000 < len(kept.page_content) <= 4000


async def test_nothing_found_makes_no_call(openai_server: Serve) -> None:
    server = openai_server()
    assert await asyncio.wait_for(refiner(server)("q?", []), 5) == []
    assert server.requests == []
