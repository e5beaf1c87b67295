"""Loopback stand-ins for Tavily and SearXNG that keep those services' rules, for tests through real clients.

    with TavilyServer([page("Tides", "https://sea.example/tides", "The moon makes the tides.")]) as server:
        settings = Settings(web="tavily", tavily_api_key="tvly-x", tavily_url=server.url)
        ...
        assert server.queries == ["what makes the tides"]

Instead of a list of results each takes scripted `Reply`s, one for each request; the last one repeats.
"""

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self
from urllib.parse import parse_qsl, urlsplit


@dataclass
class Reply:
    """One scripted answer: `body` is sent as it is when it is text or bytes, else as JSON.

    `drip` sends one byte every `drip` seconds after the headers.
    """

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    drip: float = 0.0

    def payload(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


@dataclass
class Request:
    """One request; header names are in lower case; `asked` holds the JSON body or the URL's parameters."""

    method: str
    path: str
    headers: dict[str, str]
    asked: dict[str, Any]


def page(title: str, url: str, content: str) -> dict[str, Any]:
    """One result, with the fields that both services give it."""
    return {"title": title, "url": url, "content": content, "score": 0.9, "engine": "stub"}


class SearchServer:
    """A threaded HTTP server on a free port of 127.0.0.1 while the `with` block runs."""

    query_name: ClassVar[str]

    def __init__(self, replies: Sequence[dict[str, Any] | Reply] | Reply) -> None:
        given = [replies] if isinstance(replies, Reply) else list(replies)
        scripted = [reply for reply in given if isinstance(reply, Reply)]
        self._replies = scripted or [Reply(self.found([reply for reply in given if isinstance(reply, dict)]))]
        self.requests: list[Request] = []
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._http.block_on_close = False
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def queries(self) -> list[str]:
        """What was searched for, in the order of arrival."""
        return [request.asked[self.query_name] for request in self.requests]

    def found(self, results: list[dict[str, Any]]) -> dict[str, Any]:
        raise NotImplementedError

    def refusal(self, request: Request) -> Reply | None:
        raise NotImplementedError

    def reply(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            scripted = self._replies[min(len(self.requests), len(self._replies)) - 1]
        return self.refusal(request) or scripted

    def sleep(self, seconds: float) -> bool:
        """Whether the server still runs after `seconds`."""
        return not self._ending.wait(seconds)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)


class TavilyServer(SearchServer):
    """Takes POST /search with a bearer key and at most 400 characters, as Tavily does."""

    query_name = "query"

    def found(self, results: list[dict[str, Any]]) -> dict[str, Any]:
        return {"query": "", "answer": None, "images": [], "results": results, "response_time": 0.1}

    def refusal(self, request: Request) -> Reply | None:
        if (request.method, request.path) != ("POST", "/search"):
            return tavily_error(404, "Not Found")
        if not request.headers.get("authorization", "").startswith("Bearer tvly-"):
            return tavily_error(401, "Unauthorized: missing or invalid API key.")
        if len(request.asked["query"]) > 400:
            return tavily_error(400, "Query is too long. Max query length is 400 characters.")
        return None


class SearXNGServer(SearchServer):
    """Takes GET /search with format=json, as a SearXNG instance with that format switched on does."""

    query_name = "q"

    def found(self, results: list[dict[str, Any]]) -> dict[str, Any]:
        return {"query": "", "number_of_results": 0, "results": results, "unresponsive_engines": []}

    def refusal(self, request: Request) -> Reply | None:
        if (request.method, request.path) != ("GET", "/search"):
            return Reply("<html>not found</html>", 404)
        return None if request.asked.get("format") == "json" else Reply("<html></html>")


def tavily_error(status: int, message: str, **headers: str) -> Reply:
    """An error in Tavily's shape; `Retry_After="2"` becomes the header Retry-After."""
    return Reply(
        {"detail": {"error": message}}, status, {name.replace("_", "-"): v for name, v in headers.items()}
    )


def _handler(server: SearchServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            self._serve(json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0)))))

        def do_GET(self) -> None:
            self._serve(dict(parse_qsl(urlsplit(self.path).query)))

        def _serve(self, asked: dict[str, Any]) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = server.reply(Request(self.command, urlsplit(self.path).path, headers, asked))
            if reply.delay and not server.sleep(reply.delay):
                return
            payload = reply.payload()
            try:
                self.send_response(reply.status)
                for name, value in ({"Content-Type": "application/json"} | reply.headers).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(payload)))
                self.end_headers()
                if not reply.drip:
                    self.wfile.write(payload)
                    return
                for byte in payload:
                    if not server.sleep(reply.drip):
                        return
                    self.wfile.write(bytes([byte]))
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client gave up first

    return Handler
