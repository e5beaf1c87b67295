"""A scripted OpenAI-compatible server on the loopback interface, for tests that go through the real client.

    with OpenAIServer(lambda messages: "0.8") as server:
        settings = Settings(base_url=server.url, model="m")
        ...
        assert server.max_concurrency == 4

As a fixture: `from tests.support.openai_server import openai_server` gives a factory, `openai_server(reply)`,
whose servers end with the test.
"""

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import pytest


@dataclass
class Reply:
    """One scripted answer. `raw_body` replaces the whole body; `usage` None reports no token counts."""

    content: Any = ""
    status: int = 200
    finish_reason: str | None = "stop"
    reasoning_content: str | None = None
    usage: dict[str, int] | None = field(
        default_factory=lambda: {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    )
    delay: float = 0.0
    raw_body: str | bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Request:
    """One request, header names in lower case; `start` and `end` are seconds of `time.perf_counter`."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    start: float
    end: float = 0.0

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body.get("messages", []))

    @property
    def prompt(self) -> str:
        """All message texts, one after another."""
        return "\n".join(str(message["content"]) for message in self.messages)


Script = Callable[[list[dict[str, Any]]], "str | Reply"]


def hashed_embedding(text: str, width: int = 8) -> list[float]:
    """A vector that depends on the text alone."""
    digest = hashlib.sha256(text.encode()).digest()
    return [byte / 255 for byte in digest[:width]]


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    # Waiting for idle keep-alive connections would make every test slow to end.
    block_on_close = False
    # Many calls at once must not wait a second because the queue for connections is full.
    request_queue_size = 256


class OpenAIServer:
    """Serves /v1/chat/completions (JSON and SSE) and /v1/embeddings while the `with` block runs.

    `reply(messages)` decides each chat reply; it runs in the request's thread. `embed(text)` gives vectors.
    `latency` seconds are added to every call. `pieces` is the size in characters of the streamed pieces.
    """

    def __init__(
        self,
        reply: Script | str | Reply = "ok",
        *,
        embed: Callable[[str], list[float]] = hashed_embedding,
        latency: float = 0.0,
        pieces: int = 7,
    ) -> None:
        self.reply: Script = reply if callable(reply) else lambda _: reply
        self.embed = embed
        self.latency = latency
        self.pieces = pieces
        self.requests: list[Request] = []
        self.max_concurrency = 0
        self._running = 0
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._http.server_address[1]}"

    @property
    def url(self) -> str:
        """The base URL that clients are given, ending in /v1."""
        return f"http://{self.host}/v1"

    @property
    def chats(self) -> list[Request]:
        return [request for request in self.requests if request.path.endswith("/chat/completions")]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)

    def began(self, request: Request) -> None:
        with self._lock:
            self.requests.append(request)
            self._running += 1
            self.max_concurrency = max(self.max_concurrency, self._running)

    def ended(self, request: Request) -> None:
        with self._lock:
            self._running -= 1
            request.end = time.perf_counter()


def _handler(server: OpenAIServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            try:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Request(self.path, body, headers, time.perf_counter())
                server.began(request)
                try:
                    self._answer(request)
                finally:
                    server.ended(request)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client gave up first

        def _answer(self, request: Request) -> None:
            if server.latency:
                time.sleep(server.latency)
            if request.path == "/v1/embeddings":
                self._send(200, json.dumps(_embeddings(server, request.body)).encode(), {})
            elif request.path == "/v1/chat/completions":
                scripted = server.reply(request.messages)
                self._chat(request.body, scripted if isinstance(scripted, Reply) else Reply(scripted))
            else:
                self._send(404, b'{"error": {"message": "no such path"}}', {})

        def _chat(self, body: dict[str, Any], reply: Reply) -> None:
            if reply.delay:
                time.sleep(reply.delay)
            if reply.raw_body is not None:
                raw = reply.raw_body.encode() if isinstance(reply.raw_body, str) else reply.raw_body
                self._send(reply.status, raw, reply.headers)
            elif reply.status != 200:
                error = {"error": {"message": str(reply.content), "code": None, "param": None}}
                self._send(reply.status, json.dumps(error).encode(), reply.headers)
            elif body.get("stream"):
                self._stream(body, reply)
            else:
                self._send(200, json.dumps(_completion(body, reply)).encode(), reply.headers)

        def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in ({"Content-Type": "application/json"} | headers).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, body: dict[str, Any], reply: Reply) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            for event in _events(body, reply, server.pieces):
                self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
                self.wfile.flush()
            self.wfile.write(b"data: [DONE]\n\n")

    return Handler


def _completion(body: dict[str, Any], reply: Reply) -> dict[str, Any]:
    message = {"role": "assistant", "content": reply.content}
    if reply.reasoning_content is not None:
        message["reasoning_content"] = reply.reasoning_content
    completion = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body.get("model"),
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason}],
    }
    return completion | ({"usage": reply.usage} if reply.usage else {})


def _events(body: dict[str, Any], reply: Reply, size: int) -> Iterator[dict[str, Any]]:
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": body.get("model")}
    text = reply.content or ""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if reply.reasoning_content is not None:
        deltas.append({"reasoning_content": reply.reasoning_content})
    deltas += [{"content": text[at : at + size]} for at in range(0, len(text), size)]
    for delta in deltas:
        yield base | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield base | {"choices": [{"index": 0, "delta": {}, "finish_reason": reply.finish_reason}]}
    if reply.usage and body.get("stream_options", {}).get("include_usage"):
        yield base | {"choices": [], "usage": reply.usage}


def _embeddings(server: OpenAIServer, body: dict[str, Any]) -> dict[str, Any]:
    given = body["input"]
    texts = [given] if isinstance(given, str) else given
    data = [
        {"object": "embedding", "index": n, "embedding": server.embed(str(text))}
        for n, text in enumerate(texts)
    ]
    tokens = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return {"object": "list", "data": data, "model": body.get("model"), "usage": tokens}


@pytest.fixture
def openai_server() -> Iterator[Callable[..., OpenAIServer]]:
    """A factory of running servers, `openai_server(reply, latency=…)`, that end with the test."""
    running: list[OpenAIServer] = []

    def start(*args: Any, **kwargs: Any) -> OpenAIServer:
        running.append(OpenAIServer(*args, **kwargs).__enter__())
        return running[-1]

    yield start
    for server in running:
        server.__exit__()
