import pytest
from langchain_core.documents import Document

from crag.base.interfaces import SCORE
from crag.embedded.evaluator import EmbeddedEvaluator
from crag.embedded.quoting import QuotingGenerator, StripRefiner, quoted_part
from crag.encoders.embeddings import EmbeddedEmbeddings
from crag.encoders.passages import PassageVectors
from crag.judging.generation import uncertain
from crag.replies.citations import CitationFilter
from crag.text.blocks import AFTER

REFUND = (
    "# Shop\n\nOur shop is open from nine to six on every day but Sunday.\n\n"
    "## Refunds\n\nRefunds are paid within five working days after we receive the goods. "
    "The staff canteen serves lunch at noon and coffee all day long."
)
REFUND_ZH = (
    "本店营业时间为周一到周六九点到六点。收到退货后，退款将在五个工作日内支付到原账户。员工食堂中午供应午餐。"
)
WALL = "The Great Wall of China was built over many centuries to protect the northern border."
QUESTION = "Within how many working days are refunds paid?"


@pytest.fixture(scope="module")
def evaluator(encoder: EmbeddedEmbeddings) -> EmbeddedEvaluator:
    return EmbeddedEvaluator(PassageVectors(encoder))


@pytest.fixture(scope="module")
def answer(evaluator):
    generator = QuotingGenerator(evaluator)
    return lambda question, *texts: generator(question, [Document(text) for text in texts])


async def test_the_answering_sentence_is_quoted_word_for_word_with_its_document(answer):
    draft = await answer(QUESTION, WALL, REFUND)
    assert draft.answered
    assert draft.text == (
        "The documents say:\n"
        "“Refunds are paid within five working days after we receive the goods. "
        "The staff canteen serves lunch at noon and coffee all day long.” [2]\n"
        "(Quoted word for word; no language model is configured.)"
    )


async def test_a_chinese_question_is_answered_in_chinese(answer):
    """F33."""
    draft = await answer("退款在几个工作日内支付？", REFUND_ZH)
    assert draft.text == (f"文档中写道：\n“{REFUND_ZH}” [1]\n（以上为原文摘录；未配置语言模型。）")


@pytest.mark.parametrize(
    ("question", "text", "foreign"),
    [
        (
            "数据库备份保留多少天？",
            "数据库备份保留三十五天。",
            "During probation (first 6 months) only 4 weeks are paid.",
        ),
        (
            "What is error VX-330?",
            "Error VX-330 means that the pump ran dry.",
            "错误 YZ-507 表示阀门没有关闭。",
        ),
    ],
)
async def test_beside_an_answer_nothing_is_quoted_in_another_language(answer, question, text, foreign):
    draft = await answer(question, foreign, text)
    assert f"“{text}” [2]" in draft.text
    assert "[1]" not in draft.text


GRAPH = "GraphRAG lets a language model extract entities and relations from every chunk into one graph."
GRAPH_ZH = "GraphRAG 先让大模型从文本中抽取实体和关系，连成知识图谱。"


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ("What is GraphRAG?", [f"“{GRAPH}” [2]", f"“{GRAPH_ZH}” [1]"]),
        ("什么是 GraphRAG？", [f"“{GRAPH_ZH}” [1]", f"“{GRAPH}” [2]"]),
    ],
)
async def test_what_another_language_says_best_is_quoted_in_the_question_s_too(answer, question, quoted):
    draft = await answer(question, GRAPH_ZH, GRAPH)
    assert draft.text.splitlines()[1:-1] == quoted


async def test_an_answer_in_another_language_is_quoted_before_what_does_not_answer_in_the_question_s(answer):
    """F33."""
    draft = await answer("退款在几个工作日内支付？", "退款申请表可以在前台领取，也可以在官网下载。", REFUND)
    assert "within five working days" in draft.text


async def test_the_quotations_can_be_told_from_the_words_around_them(answer):
    draft = await answer("退款在几个工作日内支付？", REFUND_ZH)
    assert quoted_part(draft.text) == f"“{REFUND_ZH}” [1]"
    assert quoted_part("Five days. [1]") == "Five days. [1]"


@pytest.mark.parametrize(
    ("question", "text", "refusal"),
    [
        ("Does Mars have life?", REFUND, "The answer was not found in your documents."),
        ("火星上有生命吗？", REFUND_ZH, "在您的文档中没有找到答案。"),
        (QUESTION, "# Refunds", "The answer was not found in your documents."),
    ],
)
async def test_what_the_documents_do_not_say_is_refused(answer, question, text, refusal):
    assert await answer(question, text) == (refusal, False)


async def test_no_documents_are_refused(answer):
    assert await answer(QUESTION) == ("The answer was not found in your documents.", False)


async def test_a_sentence_that_stands_in_two_documents_is_quoted_once(answer):
    draft = await answer(QUESTION, REFUND, REFUND)
    assert draft.text.count("five working days") == 1


async def test_numbers_in_brackets_inside_a_quote_are_no_citations(answer):
    draft = await answer(QUESTION, "Refunds are paid within five working days after receipt.[2]", WALL)
    reader = CitationFilter(2)
    reader.feed(draft.text)
    reader.end()
    assert reader.cited == [1]


async def test_the_paragraph_of_an_answer_is_one_quote(answer):
    both = "Refunds are paid within five working days. The refund of a gift is paid within ten working days."
    text = f"{both} Our shop is open from nine to six on every day but Sunday."
    draft = await answer("Within how many working days is a refund paid?", text)
    assert f"“{text}” [1]" in draft.text


@pytest.mark.parametrize("rule", ["|---|---|", "| :-- | --: |"])
async def test_the_names_of_columns_are_not_quoted_without_a_row(answer, rule):
    prose = "Refunds are paid within five working days."
    row = "| shoes from the sale of the last summer | 5 days |"
    draft = await answer(QUESTION, f"{prose}\n\n| refunds are paid | working days |\n{rule}\n{row}")
    assert prose in draft.text
    assert "refunds are paid | working days" not in draft.text


STEPS = "To return goods, do this:\n\n1. Ask for a return label.\n2. Pack the goods in their box."
MORE = "3. Bring the parcel to the post office.\n\nOur shop is open from nine to six."


async def test_a_list_is_quoted_whole_with_what_leads_into_it_and_what_the_next_passage_holds(evaluator):
    passage = Document(f"# Returns\n\n{STEPS}", metadata={AFTER: f"# Returns\n\n{MORE}"})
    draft = await QuotingGenerator(evaluator)("How do I ask for a return label?", [passage])
    third = MORE.partition("\n")[0]
    assert f"“{STEPS}\n{third}” [1]" in draft.text


async def test_a_list_comes_with_its_lead_in_however_long_the_quotes_before_it(evaluator):
    shop = "Refunds are paid within five working days. " + "The canteen serves lunch every day at noon. " * 9
    listed = "In May it takes ten working days until refunds are paid for:\n\n" + "\n".join(
        f"- goods number {n} of the long list in the appendix of our terms" for n in range(1, 9)
    )
    draft = await QuotingGenerator(evaluator)(QUESTION, [Document(shop), Document(listed)])
    assert draft.text.index("five working days. The canteen") < draft.text.index("In May")
    assert "goods number 8" in draft.text


@pytest.mark.parametrize(
    "targets",
    [
        "[refunds]: https://shop.example/refunds-are-paid-within-working-days\n"
        "[paid]: https://shop.example/working-days",
        ".. _refunds-are-paid:\n.. _working-days: https://shop.example/refunds",
    ],
)
async def test_the_targets_of_links_are_not_quoted(answer, targets):
    draft = await answer(QUESTION, f"{targets}\n\nRefunds are paid within five working days.")
    assert "five working days" in draft.text
    assert "shop.example" not in draft.text


async def test_a_row_is_quoted_rather_than_the_names_of_its_columns(answer):
    names = [f"{kind} {size}" for kind in ("INT", "CHAR", "BLOB", "TEXT") for size in ("TINY", "LONG", "BIG")]
    rows = "\n".join(f"| {name:94} | KIND {n + 60} {' ' * 12} |" for n, name in enumerate(names))
    draft = await answer(
        "A column of the shop is BLOB LONG. As which type does it arrive in the warehouse?",
        f"# Warehouse › Types of columns\n\n| {'Type of a column':^94} | Type in the warehouse |\n"
        f"|{'-' * 96}|{'-' * 23}|\n{rows}",
    )
    assert "KIND 67" in draft.text


async def test_refining_keeps_what_bears_on_the_question_and_drops_other_documents(evaluator):
    page = Document(
        f"{WALL} Refunds are paid within five working days after we receive the goods. "
        "The weather in the mountains changes quickly in spring. Tickets for the museum are sold online.",
        id="w1",
        metadata={"source": "https://a.example", "title": "A", "origin": "web"},
    )
    other = Document(WALL, id="w2", metadata={"source": "https://b.example", "title": "B", "origin": "web"})
    kept = await StripRefiner(evaluator, lower=0.3)(QUESTION, [other, page])
    assert [document.id for document in kept] == ["w1"]
    assert kept[0].page_content == "Refunds are paid within five working days after we receive the goods."
    assert kept[0].metadata["source"] == "https://a.example"
    assert kept[0].metadata[SCORE] > 0.3
    assert SCORE not in page.metadata


async def test_refining_nothing_gives_nothing(evaluator):
    assert await StripRefiner(evaluator)(QUESTION, []) == []


@pytest.mark.parametrize(
    ("answer", "opening"),
    [
        (
            "The documents say:\n“Paid in five days.” [1]\n"
            "(Quoted word for word; no language model is configured.)",
            "These passages come nearest; whether they answer is uncertain:\n",
        ),
        (
            "文档中写道：\n“五个工作日。” [1]\n（以上为原文摘录；未配置语言模型。）",
            "以下段落最为接近，但是否回答了问题并不确定：\n",
        ),
    ],
)
def test_an_uncertain_quotation_says_so_and_is_checked_like_a_certain_one(answer, opening):
    hedged = uncertain(answer)
    assert hedged.startswith(opening)
    assert quoted_part(hedged) == quoted_part(answer)


def test_what_a_model_wrote_is_not_reworded():
    assert uncertain("Five days. [1]") == "Five days. [1]"
