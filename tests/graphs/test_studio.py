"""LangGraph's local server, as Studio uses it: started without keys, asked over HTTP, streaming included."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

ROOT = Path(__file__).parents[2]
QUESTION = "How does HyDE work?"
GRAPHS = {"crag": "scored from 0", "batched": "from 1 to 5", "agentic": "with reasons", "fixed": "baseline"}
KEYS = ("CRAG_", "OPENAI_", "TAVILY_", "LANGSMITH_", "LANGCHAIN_")


@pytest.fixture(scope="module")
def studio(sample_kb: Path) -> Iterator[str]:
    """The address of a running `langgraph dev` on a free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(KEYS)}
    command = [
        Path(sys.executable).parent / "langgraph",
        "dev",
        "--no-browser",
        "--no-reload",
        "--host",
        "127.0.0.1",
    ]
    server = subprocess.Popen(
        [*command, "--port", str(port)],
        cwd=ROOT,
        env=environment | {"CRAG_KB": str(sample_kb), "CRAG_WEB": "off", "LANGGRAPH_CLI_NO_ANALYTICS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_up(url, server)
        yield url
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.communicate(timeout=20)


def _wait_until_up(url: str, server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError(f"langgraph dev ended: {server.communicate()[0].decode()[-3000:]}")
        try:
            httpx.get(f"{url}/ok", trust_env=False).raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.3)
        else:
            return
    raise RuntimeError("langgraph dev did not come up within a minute")


@pytest.fixture
async def client(studio: str) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=studio) as opened:
        yield opened


async def test_a_question_runs_through_the_server_and_streams_its_steps(client: LangGraphClient) -> None:
    """F64, F65."""
    assistants = await client.assistants.search()
    assert {"crag", "batched", "agentic", "fixed"} == {assistant["graph_id"] for assistant in assistants}

    steps: list[str] = []
    final: dict[str, object] = {}
    thread = await client.threads.create()
    async for event in client.runs.stream(
        thread["thread_id"],
        "crag",
        input={"question": "How does HyDE work?"},
        stream_mode=["updates", "values"],
    ):
        assert event.event != "error", event.data
        if event.event == "updates":
            steps += list(event.data)
        elif event.event == "values":
            final = dict(event.data)
    assert steps.count("score_document") == 4
    assert [step for step in steps if step != "score_document"] == [
        "retrieve",
        "score",
        "assemble",
        "generate",
    ]
    assert final["answered"] is True
    assert "hypothetical" in str(final["answer"]).lower()


@pytest.mark.parametrize(
    ("graph", "steps"),
    [
        ("batched", ["retrieve", "score", "refine", "assemble", "generate"]),
        ("agentic", ["retrieve", "grade", "filter", "generate", "check"]),
        ("fixed", ["retrieve", "generate"]),
    ],
)
async def test_the_other_graphs_answer_through_the_server_too(
    client: LangGraphClient, graph: str, steps: list[str]
) -> None:
    result = await client.runs.wait(None, graph, input={"question": "How does HyDE work?"})
    assert result["answered"] is True
    assert "hypothetical" in str(result["answer"]).lower()
    assert [entry.partition("(")[0] for entry in result["path"]] == steps


async def test_two_questions_at_once_do_not_mix(client: LangGraphClient) -> None:
    """F65."""
    questions = ("What is the formula of reciprocal rank fusion?", "HyDE 是怎么工作的？")
    results = await asyncio.gather(
        *(client.runs.wait(None, "crag", input={"question": question}) for question in questions)
    )
    assert [result["question"] for result in results] == list(questions)
    assert "60" in results[0]["answer"]
    assert "答案" in results[1]["answer"]


async def test_a_thread_of_the_server_understands_a_follow_up(client: LangGraphClient) -> None:
    thread = await client.threads.create()
    first = await client.runs.wait(thread["thread_id"], "crag", input={"question": "How does HyDE work?"})
    second = await client.runs.wait(
        thread["thread_id"], "crag", input={"question": "What are its drawbacks?"}
    )
    assert first["standalone_question"] is None
    assert second["question"] == "What are its drawbacks?"
    assert second["standalone_question"] == "What are its drawbacks? (How does HyDE work)"
    assert second["path"][0] == "route(follow-up)"
    assert [turn["question"] for turn in second["history"]] == [
        "How does HyDE work?",
        "What are its drawbacks?",
    ]


async def test_an_assistant_sets_the_numbers_of_its_runs(client: LangGraphClient) -> None:
    assistant = await client.assistants.create("crag", context={"k": 2})
    ran = await client.runs.wait(None, assistant["assistant_id"], input={"question": QUESTION})
    assert len(ran["retrieved_docs"]) == 2
    schemas = await client.assistants.get_schemas(assistant["assistant_id"])
    assert "CRAG_K" in str(schemas["context_schema"])


async def test_documents_edited_at_an_interrupt_are_answered_from(client: LangGraphClient) -> None:
    """F109."""
    thread = await client.threads.create()
    await client.runs.wait(
        thread["thread_id"], "crag", input={"question": QUESTION}, interrupt_before=["generate"]
    )
    state = await client.threads.get_state(thread["thread_id"])
    edited = state["values"]["final_docs"][:1]
    edited[0]["page_content"] = "HyDE writes a limerick, says the editor."
    await client.threads.update_state(thread["thread_id"], {"final_docs": edited})
    ran = await client.runs.wait(thread["thread_id"], "crag", input=None)
    assert "limerick" in ran["answer"]


async def test_a_chat_is_answered_by_a_streamed_message(client: LangGraphClient) -> None:
    chat = {"messages": [{"role": "user", "content": QUESTION}]}
    spoken = ""
    async for event in client.runs.stream(None, "crag", input=chat, stream_mode="messages-tuple"):
        if event.event == "messages" and event.data[0]["type"] != "human":
            spoken += str(event.data[0]["content"])
    assert "[1]" in spoken


async def test_the_tools_say_what_they_do(studio: str) -> None:
    """F112."""
    headers = {"Accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(trust_env=False, headers=headers) as http:
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        told = await http.post(f"{studio}/mcp/", json=call, follow_redirects=True)
    tools = {tool["name"]: tool["description"] for tool in told.json()["result"]["tools"]}
    for name, what in GRAPHS.items():
        assert what in tools[name]
