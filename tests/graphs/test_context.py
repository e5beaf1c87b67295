"""What LangGraph users do with the graphs: contexts, sync runs, chats, documents from outside. F109, F110."""

from typing import Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from crag import Answer, Context, Settings, ask, build_graph
from crag.base.errors import SettingsError
from crag.settings.given import Given
from crag.settings.settings import GRAPHS

SHELF = [
    Document(
        "HyDE writes a hypothetical answer and searches with it.",
        id=f"d{n}",
        metadata={"lang": lang, "source": f"{n}.md"},
    )
    for n, lang in enumerate(["en", "zh", "en", "zh", "en", "zh"])
]


def shelf(question: str, k: int) -> list[Document]:
    return SHELF[:k]


def settings(**given: Any) -> Settings:
    return Settings(_env_file=None, web="off", **given)


def graph(
    name: str = "crag", *, grader: Any = lambda q, d: 0.9, checkpointer: Any = None, **given: Any
) -> Any:
    return build_graph(name, settings(**given), retriever=shelf, grader=grader, checkpointer=checkpointer)


ASKED = {"question": "What does HyDE write?"}


class TestContext:
    @pytest.mark.parametrize("name", GRAPHS)
    async def test_k_of_a_run(self, name: str) -> None:
        ran = await graph(name).ainvoke(ASKED, context={"k": 2})
        assert len(ran["retrieved_docs"]) == 2
        usual = await graph(name).ainvoke(ASKED)
        assert len(usual["retrieved_docs"]) == (5 if name == "batched" else 4)

    async def test_k_in_configurable_counts_too(self) -> None:
        ran = await graph().ainvoke(ASKED, {"configurable": {"k": 2, "thread_id": "1"}})
        assert len(ran["retrieved_docs"]) == 2

    async def test_thresholds_of_a_run_decide(self) -> None:
        poor = graph(grader=lambda q, d: 0.5)
        assert (await poor.ainvoke(ASKED))["retrieval_verdict"] == "ambiguous"
        assert (await poor.ainvoke(ASKED, context={"upper": 0.5}))["retrieval_verdict"] == "correct"
        assert (await poor.ainvoke(ASKED, context={"lower": 0.6}))["retrieval_verdict"] == "incorrect"
        agentic = graph("agentic", grader=lambda q, d: 0.5)
        assert (await agentic.ainvoke(ASKED))["retrieval_verdict"] == "incorrect"
        assert (await agentic.ainvoke(ASKED, context={"upper": 0.4}))["retrieval_verdict"] == "correct"

    async def test_a_context_narrows_the_filter_and_never_widens_it(self) -> None:
        filtered = graph(filter={"lang": "en"}, k=10)
        ran = await filtered.ainvoke(ASKED, context={"where": {"source": "2.md"}})
        assert [document.id for document in ran["retrieved_docs"]] == ["d2"]
        other = await filtered.ainvoke(ASKED, context={"where": {"lang": "zh"}})
        assert other["retrieved_docs"] == []

    async def test_checks_and_web_of_a_run(self) -> None:
        pages: list[str] = []

        def search(query: str, limit: int) -> list[Document]:
            pages.append(f"{limit}")
            return [Document("HyDE writes a page.", metadata={"source": "https://a.example", "title": "A"})]

        found = build_graph("crag", settings(), retriever=shelf, grader=lambda q, d: 0.1, web_search=search)
        assert "web_search(off)" in (await found.ainvoke(ASKED, context={"web": False}))["path"]
        assert pages == []
        ran = await found.ainvoke(ASKED, context={"web_results": 7, "check": True})
        assert pages == ["7"]
        assert any(entry.startswith("check(") for entry in ran["path"])
        agentic = await graph("agentic").ainvoke(ASKED, context={"check": False})
        assert not any(entry.startswith("check(") for entry in agentic["path"])

    async def test_fewer_tokens_hold_fewer_documents(self) -> None:
        long = [Document("HyDE writes a hypothetical answer. " * 60, id=str(n)) for n in range(4)]
        built = build_graph("crag", settings(), retriever=lambda q, k: long, grader=lambda q, d: 0.9)
        usual = await built.ainvoke(ASKED)
        tight = await built.ainvoke(ASKED, context={"context_tokens": 500})
        assert len(tight["final_docs"]) < len(usual["final_docs"]) == 4

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"kk": 2}, "context: kk is nothing that a run can set; did you mean k?"),
            ({"k": 0}, "context: k must be at least 1, not '0'"),
            ({"k": "many"}, "context: k must be a whole number, not 'many'"),
            ({"upper": 2}, "context: upper must be at most 1"),
            ({"upper": 0.2, "lower": 0.5}, "lower (0.5) must be less than upper (0.2)"),
            ({"aggregate": "sum"}, "context: aggregate must be 'max' or 'mean'"),
            ({"where": "lang"}, "where: "),
            ({"on_ungrounded": "shrug"}, "context: on_ungrounded must be"),
        ],
    )
    async def test_what_is_wrong_is_one_line(self, given: dict[str, Any], words: str) -> None:
        with pytest.raises(SettingsError) as caught:
            await graph().ainvoke(ASKED, context=given)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_every_field_is_described(self) -> None:
        fields = build_graph("crag", settings()).get_context_jsonschema()["properties"]
        assert set(fields) == set(Context.model_fields)
        assert all(field["description"] for field in fields.values())


class TestSync:
    @pytest.mark.parametrize("name", GRAPHS)
    def test_invoke_stream_and_batch(self, name: str) -> None:
        built = graph(name)
        ran = built.invoke(ASKED, context={"k": 2})
        assert "[1]" in ran["answer"]
        assert len(ran["retrieved_docs"]) == 2
        assert list(built.stream(ASKED, stream_mode="values"))[-1]["answer"] == ran["answer"]
        assert [one["answer"] for one in built.batch([ASKED, ASKED])] == [ran["answer"]] * 2

    def test_a_sync_parent_holds_the_graph(self) -> None:
        class Parent(TypedDict):
            question: str
            answer: str

        parent = StateGraph(Parent)
        parent.add_node("crag", graph())
        parent.add_edge(START, "crag")
        parent.add_edge("crag", END)
        assert "hypothetical" in parent.compile().invoke(ASKED)["answer"]

    async def test_a_sync_run_inside_of_a_running_loop(self) -> None:
        assert "hypothetical" in graph().invoke(ASKED)["answer"]


class TestMessages:
    async def test_the_last_message_is_the_question_and_the_answer_comes_back_as_one(self) -> None:
        ran = await graph().ainvoke({"messages": [{"role": "user", "content": "What does HyDE write?"}]})
        assert ran["question"] == "What does HyDE write?"
        assert [message.type for message in ran["messages"]] == ["human", "ai"]
        assert ran["messages"][-1].text == ran["answer"]

    async def test_a_question_becomes_a_message_too(self) -> None:
        ran = await graph().ainvoke(ASKED)
        assert [message.text for message in ran["messages"]] == [ASKED["question"], ran["answer"]]

    async def test_earlier_messages_are_the_conversation(self) -> None:
        chat = [
            HumanMessage("What is HyDE?"),
            AIMessage("A method. [1]"),
            HumanMessage("And what does it write?"),
        ]
        ran = await graph().ainvoke({"messages": chat})
        assert ran["standalone_question"] == "And what does it write? (What is HyDE)"
        assert [turn["question"] for turn in ran["history"]] == ["What is HyDE?", "And what does it write?"]

    async def test_a_thread_takes_questions_and_messages_in_turn(self) -> None:
        kept = graph(checkpointer=InMemorySaver())
        config = {"configurable": {"thread_id": "1"}}
        await kept.ainvoke({"messages": [HumanMessage("What is HyDE?")]}, config)
        await kept.ainvoke({"question": "What does HyDE write?"}, config)
        ran = await kept.ainvoke({"messages": [HumanMessage("What does HyDE search with?")]}, config)
        assert [m.text for m in ran["messages"][::2]] == [turn["question"] for turn in ran["history"]]
        assert len(ran["messages"]) == 6

    async def test_a_question_that_failed_is_not_answered_in_place_of_the_next(self) -> None:
        down = True

        def search(question: str, k: int) -> list[Document]:
            if down:
                raise OSError("down")
            return shelf(question, k)

        kept = build_graph(
            "crag", settings(), retriever=search, grader=lambda q, d: 0.9, checkpointer=InMemorySaver()
        )
        config: Any = {"configurable": {"thread_id": "1"}}
        with pytest.raises(Exception, match="down"):
            await kept.ainvoke({"question": "Who was first?"}, config)
        down = False
        ran = await kept.ainvoke({"question": "What does HyDE write?"}, config)
        assert ran["question"] == "What does HyDE write?"
        assert ran["history"][-1]["question"] == "What does HyDE write?"

    async def test_the_answer_streams_as_one_message(self) -> None:
        events = [
            event
            async for event in graph().astream(
                {"messages": [("user", "What does HyDE write?")]}, stream_mode="messages"
            )
        ]
        spoken = {message.id: message.text for message, _ in events if message.type != "human"}
        assert len(spoken) == 1
        assert "hypothetical" in next(iter(spoken.values()))

    @pytest.mark.parametrize("messages", [[AIMessage("Hello.")], [HumanMessage("  ")]])
    async def test_a_chat_without_a_question_is_one_line(self, messages: list[Any]) -> None:
        with pytest.raises(SettingsError, match=r"^the (last message must be|question is empty)"):
            await graph().ainvoke({"messages": messages})


class TestDocumentsFromOutside:
    async def test_edited_documents_are_documents_again(self) -> None:
        """F109."""
        kept = graph(checkpointer=InMemorySaver())
        config: Any = {"configurable": {"thread_id": "1"}}
        await kept.ainvoke(ASKED, config, interrupt_before=["generate"])
        edited = [
            {
                "page_content": "HyDE writes a limerick.",
                "metadata": {"source": "own.md", "title": "Own"},
                "id": "own",
            }
        ]
        await kept.aupdate_state(config, {"final_docs": edited})
        ran = await kept.ainvoke(None, config)
        assert "limerick" in ran["answer"]
        assert isinstance(ran["final_docs"][0], Document)

    @pytest.mark.parametrize("name", ["crag", "batched", "agentic"])
    async def test_also_before_the_documents_are_scored(self, name: str) -> None:
        kept = graph(name, checkpointer=InMemorySaver())
        config: Any = {"configurable": {"thread_id": "1"}}
        await kept.ainvoke(ASKED, config, interrupt_after=["retrieve"])
        edited = [
            {"page_content": "HyDE writes a limerick.", "metadata": {}, "id": "own", "type": "Document"}
        ]
        await kept.aupdate_state(config, {"retrieved_docs": edited})
        assert "limerick" in (await kept.ainvoke(None, config))["answer"]

    @pytest.mark.parametrize("wrong", [["text"], [{"text": "x"}], [{"page_content": 5}], "text", [None]])
    async def test_what_is_no_document_is_one_line(self, wrong: Any) -> None:
        kept = graph(checkpointer=InMemorySaver())
        config: Any = {"configurable": {"thread_id": "1"}}
        await kept.ainvoke(ASKED, config, interrupt_before=["generate"])
        with pytest.raises(SettingsError) as caught:
            await kept.aupdate_state(config, {"final_docs": wrong})
        assert "document" in str(caught.value)
        assert "\n" not in str(caught.value)


def test_an_answer_is_read_from_a_state_also_from_one_that_went_through_json() -> None:
    ran = graph().invoke(ASKED)
    through_json = {**ran, "final_docs": [document.model_dump() for document in ran["final_docs"]]}
    for state in (ran, through_json):
        read = Answer.from_state(state)
        assert (read.answer, read.verdict, read.answered) == (ran["answer"], "correct", True)
        assert [source.n for source in read.sources] == [1]
        assert len(read.documents) == 4


def test_settings_keywords_are_the_fields() -> None:
    """F111."""
    assert set(Given.__annotations__) - {"_env_file"} == set(Settings.model_fields)


def test_config_and_checkpointer_of_ask_arrive() -> None:
    """F111."""
    from langchain_core.callbacks import BaseCallbackHandler

    seen: list[str] = []

    class Names(BaseCallbackHandler):
        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            seen.append(f"{kwargs.get('name')} {sorted(kwargs.get('tags') or [])}")

    saver = InMemorySaver()
    for question in ("What is HyDE?", "And what does it write?"):
        answer = ask(
            question,
            settings=settings(),
            retriever=shelf,
            grader=lambda q, d: 0.9,
            thread="talk",
            checkpointer=saver,
            config={"callbacks": [Names()], "run_name": "asked", "tags": ["mine"]},
        )
    assert seen[0] == "asked ['mine']"
    assert answer.standalone_question == "And what does it write? (What is HyDE)"
    assert saver.get_tuple({"configurable": {"thread_id": "talk"}}) is not None
    with pytest.raises(SettingsError, match="name it with thread="):
        ask("What?", settings=settings(), checkpointer=saver)
