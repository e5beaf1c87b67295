"""What answers in a Chroma server's place, and servers that refuse, break off or never end."""

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from crag import Settings
from crag.base.errors import KnowledgeBaseError
from crag.knowledge.store.store import KnowledgeBase
from tests.support.toy import ToyEmbeddings

ALIVE = b'{"nanosecond heartbeat": 1}'
WHO = json.dumps({"user_id": "", "tenant": "default_tenant", "databases": ["default_database"]}).encode()


class Server(ThreadingHTTPServer):
    """Answers with what `says` gives for a path: a status and a body, None for no reply at all."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, says: Callable[[str], "tuple[int, bytes] | None"]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.says, self.logins, self.ending = says, set[str | None](), threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.logins.add(self.headers.get("Authorization"))
        said = self.server.says(self.path)
        if said is None:
            self.server.ending.wait(20)
            return
        status, body = said
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 - the name that http.server asks for


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    running: list[Server] = []

    def start(says: Any) -> Server:
        running.append(Server(says))
        threading.Thread(target=running[-1].serve_forever, args=(0.02,), daemon=True).start()
        return running[-1]

    yield start
    for server in running:
        server.ending.set()
        server.shutdown()
        server.server_close()


def refusal(url: str, **values: Any) -> str:
    with pytest.raises(KnowledgeBaseError) as raised:
        KnowledgeBase(Settings(_env_file=None, chroma_url=url, **values), ToyEmbeddings()).count()
    return str(raised.value)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"<html>Welcome to nginx</html>",
         "cannot be read (Expecting value: line 1 column 1 (char 0)); check CRAG_CHROMA_URL and the server"),
        (200, b'{"status": "ok"}', "is no Chroma server, or a damaged one; check CRAG_CHROMA_URL"),
        (401, b"", "refuses the login (401); set CRAG_CHROMA_URL to http://USER:PASSWORD@HOST:PORT with one "
         "that it takes"),
        (404, b"", "is no Chroma server, or one older than 1.0 (404); check CRAG_CHROMA_URL or upgrade it"),
        (410, b"", "is no Chroma server, or one older than 1.0 (410); check CRAG_CHROMA_URL or upgrade it"),
        (500, b"", "failed (500); look at the server and any proxy between"),
    ],
)  # fmt: skip
def test_what_is_no_chroma_server_or_refuses_is_one_line(
    serve: Callable[..., Server], status: int, body: bytes, said: str
) -> None:
    url = serve(lambda path: (status, body)).url
    assert refusal(url) == f"what answers at {url} {said}"


def test_a_server_that_stops_answering_is_given_up_in_time(serve: Callable[..., Server]) -> None:
    began = time.perf_counter()
    url = serve(lambda path: (200, ALIVE) if path.endswith("heartbeat") else None).url
    assert refusal(url, timeout=0.3) == (
        f"what answers at {url} gave no whole reply in time; look at it and any proxy between"
    )
    later = serve(lambda path: None if "collections" in path else (200, _known(path))).url
    assert refusal(later, timeout=0.3) == (
        f"the Chroma server at {later} gave no reply within 0.3 s; look at it or raise CRAG_TIMEOUT"
    )
    assert time.perf_counter() - began < 5


def test_the_login_in_the_address_is_sent_with_every_request_and_never_shown(
    serve: Callable[..., Server],
) -> None:
    unauthorized = json.dumps({"error": "AuthError", "message": "Unauthorized"}).encode()
    server = serve(lambda path: (401, unauthorized) if "collections" in path else (200, _known(path)))
    told = refusal(server.url.replace("//", "//user:PLANTED%2Fpw@"))
    assert told == (
        f"the Chroma server at {server.url} refuses the login (Unauthorized); set CRAG_CHROMA_URL to "
        "http://USER:PASSWORD@HOST:PORT with one that it takes"
    )
    assert server.logins == {f"Basic {base64.b64encode(b'user:PLANTED/pw').decode()}"}


def _known(path: str) -> bytes:
    if path.endswith("heartbeat"):
        return ALIVE
    return WHO if "identity" in path else b'{"name": "default_tenant", "id": "1", "tenant": "default_tenant"}'
