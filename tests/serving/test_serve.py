import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import openai
import pytest
import uvicorn
from pydantic import SecretStr

from crag.base.errors import SettingsError
from crag.serving.app import create_app
from crag.serving.limits import BusyError, Gate, Limits
from crag.serving.tenants import Tenants
from crag.settings.settings import Settings

QUESTION = "What is corrective RAG?"


def started(settings: Settings, limits: Limits | None = None) -> tuple[uvicorn.Server, str, threading.Thread]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    app = create_app(settings, limits=limits)
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    return server, f"http://127.0.0.1:{port}", thread


@pytest.fixture(scope="module")
def url(sample_kb: Path) -> Iterator[str]:
    server, url, thread = started(Settings(_env_file=None, kb=sample_kb, web="off"))
    yield url
    server.should_exit = True
    thread.join()


def test_every_graph_is_a_model(url: str) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client:
        assert [model.id for model in client.models.list()] == ["crag", "batched", "agentic", "fixed"]


def test_a_stream_is_the_answer_with_its_sources_and_usage(url: str) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client:
        messages = [{"role": "user", "content": QUESTION}]
        whole = client.chat.completions.create(model="crag", messages=messages)  # type: ignore[arg-type,call-overload]
        parts = list(
            client.chat.completions.create(  # type: ignore[call-overload]
                model="crag", messages=messages, stream=True, stream_options={"include_usage": True}
            )
        )
    text = whole.choices[0].message.content
    assert "\n[1] " in text
    assert whole.choices[0].message.annotations
    assert "".join(p.choices[0].delta.content or "" for p in parts if p.choices) == text
    assert parts[-1].usage.total_tokens == 0


async def test_the_async_client_and_a_follow_up(url: str) -> None:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
        reply = await client.chat.completions.create(
            model="crag",
            messages=[
                {"role": "user", "content": QUESTION},
                {"role": "assistant", "content": "It scores documents."},
                {"role": "user", "content": "What is HyDE?"},
            ],
        )
    assert "HyDE" in str(reply.choices[0].message.content)


def test_errors_are_those_of_openai(url: str) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        with pytest.raises(openai.NotFoundError, match="there are crag"):
            client.chat.completions.create(model="gpt", messages=[{"role": "user", "content": "x"}])
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(model="crag", messages=[])


def test_ask_tells_its_steps_and_then_the_answer(url: str) -> None:
    reply = httpx.post(
        f"{url}/ask", json={"question": QUESTION}, headers={"accept": "text/event-stream"}, timeout=60
    )
    names = [line[7:] for line in reply.text.splitlines() if line.startswith("event: ")]
    assert names[0] == "step"
    assert "text" in names
    assert names[-1] == "answer"
    assert httpx.post(f"{url}/ask", json={"question": QUESTION}, timeout=60).json()["sources"]


def test_other_hosts_and_origins_are_refused(url: str) -> None:
    assert httpx.get(f"{url}/healthz", headers={"host": "evil.example"}).status_code == 403
    assert httpx.get(f"{url}/healthz", headers={"origin": "http://evil.example"}).status_code == 403
    assert httpx.get(f"{url}/readyz").json() == {"status": "ok"}
    assert "crag_questions_total" in httpx.get(f"{url}/metrics").text
    assert "/ask" in httpx.get(f"{url}/openapi.json").json()["paths"]
    assert httpx.post(f"{url}/ask", content=b"x" * 1_000_001).status_code == 413


def test_a_key_is_needed_off_this_machine_and_opens_only_its_own() -> None:
    with pytest.raises(SettingsError, match="CRAG_SERVE_KEY"):
        create_app(Settings(_env_file=None), host="0.0.0.0")
    tenants = Tenants(Settings(_env_file=None, serve_key=SecretStr("one:tenant=a&lang=zh,two")))
    one = tenants.of("Bearer one")
    assert one
    assert [condition.key for condition in one.settings.filter] == ["tenant", "lang"]
    assert tenants.of("Bearer three") is None
    assert tenants.of("") is None


async def test_beyond_the_queue_a_question_is_turned_away_at_once() -> None:
    gate = Gate(Limits(concurrency=1, queue=1))

    async def hold() -> None:
        async with gate.entered():
            await asyncio.sleep(0.1)

    held = [asyncio.create_task(hold()) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(BusyError):
        await hold()
    await asyncio.gather(*held)
    assert gate.inside == 0
