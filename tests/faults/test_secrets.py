"""No key, password or token reaches anything that a run prints, logs or writes. F85."""

import json
import logging
import os
import pickle
import platform
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from traceback import format_exception
from typing import Any, ClassVar

import pytest
from crag.eval.benchmark import main as benchmark
from pydantic import SecretStr

from crag import Settings, aask, ask, calibrate, doctor, ingest
from crag import run as run_command
from crag.base.errors import CragError, SettingsError
from crag.base.redaction import masked
from crag.encoders.embeddings import EmbeddedEmbeddings
from crag.knowledge import ingestion as sync
from crag.pipeline import RunError
from crag.wiring.parts import Own
from crag.wiring.services import build_services
from tests.graphs.test_routes import retrieve
from tests.support import labels
from tests.support.commands import run

ROOT = Path(__file__).parents[2]
PLANTED = {
    "OPENAI_API_KEY": "sk-PLANTED-openai-1",
    "CRAG_API_KEY": "sk-PLANTED-crag-2",
    "CRAG_GRADER_API_KEY": "sk-PLANTED/grader+3",
    "CRAG_CHECKER_API_KEY": "sk-PLANTED-checker-4",
    "CRAG_EMBEDDING_API_KEY": "sk-PLANTED-embedding-5",
    "TAVILY_API_KEY": "tvly-PLANTED-6",
}
URL_SECRETS = ("PLANTED-pass-7", "PLANTED-token-8")
EVERY = (*PLANTED.values(), *URL_SECRETS, "dXNlcjpQTEFOVEVELXBhc3MtN", "PLANTED")


class Echo(ThreadingHTTPServer):
    """Answers everything with an error page that shows the request, headers and body included."""

    daemon_threads = True
    block_on_close = False
    pages: ClassVar = {
        401: '{{"error": {{"message": {0}, "code": null}}, "detail": {{"error": {0}}}}}',
        500: "<html><body><h1>Internal error</h1><pre>{0}</pre></body></html>",
        404: "<html><title>404</title><pre>{0}</pre></html>",
        200: "<html>Welcome! {0}</html>",
        400: '{{"error": {0}, "message": {0}}}',
    }

    def __init__(self, status: int) -> None:
        super().__init__(("127.0.0.1", 0), _Echoing)
        self.status, self.seen = status, ""

    @property
    def plain(self) -> str:
        """Without the login, which clients send in place of a key."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def url(self) -> str:
        return f"http://user:PLANTED-pass-7@127.0.0.1:{self.server_address[1]}"


class _Echoing(BaseHTTPRequestHandler):
    server: Echo

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        shown = f"{self.command} {self.path}\n{self.headers}\n{body}"
        self.server.seen += shown
        page = Echo.pages[self.server.status].format(json.dumps(shown)).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "text/html" if page.startswith(b"<") else "application/json")
        self.send_header("Content-Length", str(len(page)))
        self.send_header("X-Seen", self.headers.get("Authorization", ""))
        self.end_headers()
        self.wfile.write(page)

    do_GET = do_POST  # noqa: N815 - the name that http.server asks for


@pytest.fixture(params=[401, 500, 200, 400])
def echo(request: pytest.FixtureRequest) -> Iterator[Echo]:
    server = Echo(request.param)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def nothing_of_them(text: str) -> None:
    for secret in EVERY:
        assert secret not in text, text[max(0, text.index(secret) - 200) : text.index(secret) + 100]


def written(folder: Path) -> str:
    """All that stands in the files of a folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return "".join(path.read_bytes().decode("latin-1") for path in files)


def planted(echo: Echo, **values: Any) -> dict[str, Any]:
    keys = {name.lower().removeprefix("crag_"): SecretStr(key) for name, key in PLANTED.items()}
    return keys | {"base_url": f"{echo.url}/v1", "retries": 0, "_env_file": None} | values


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"base_url": None},
        {"evaluator": "embedded", "web": "searxng"},
        {"grader_model": "g", "web": "tavily"},
        {"embedding_model": "e"},
    ],
    ids=["model", "model by key", "searxng", "tavily", "embedding"],
)
async def test_errors_logs_and_representations_hold_no_secret(
    echo: Echo, values: dict[str, Any], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """F85"""
    caplog.set_level(logging.DEBUG)
    if "base_url" in values:
        values = {"base_url": f"{echo.plain}/v1"}
    settings = Settings(
        **planted(
            echo, kb=tmp_path / "kb", threads=tmp_path / "threads.sqlite", tavily_url=echo.url,
            searxng_url=f"{echo.url}/?token=PLANTED-token-8", embedding_base_url=f"{echo.url}/v1", **values,
        )
    )  # fmt: skip
    own: dict[str, Any] = {} if "embedding_model" in values else {"retriever": retrieve}
    if values.get("web"):
        own["grader"] = lambda question, document: 0.0
    told = ""
    try:
        answer = await aask("When do spring tides come?", settings=settings, thread="t", **own)
        told = answer.model_dump_json()
    except CragError as error:
        told = repr(error) + "".join(format_exception(error))
        if isinstance(error, RunError):
            told += error.answer.model_dump_json()
    assert told
    nothing_of_them(told)
    nothing_of_them(repr(settings) + str(settings) + repr(settings.endpoint("grader")))
    nothing_of_them(repr(build_services(settings, Own())))
    nothing_of_them(caplog.text + "".join(str(record.__dict__) for record in caplog.records))
    nothing_of_them(written(tmp_path))


def test_the_command_prints_no_secret_whatever_the_servers_send_back(sample_kb: Path) -> None:
    """F85"""
    with Echo(401) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        done = run(
            "What is RRF?", "--json", "--verbose", "--kb", str(sample_kb), "--evaluator", "embedded",
            **PLANTED, OPENAI_BASE_URL=f"{server.plain}/v1",
        )  # fmt: skip
        server.shutdown()
    assert done.returncode == 1
    assert "sk-PLANTED-crag-2" in server.seen
    assert "CRAG_API_KEY" in done.stderr
    nothing_of_them(done.stdout + done.stderr)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"openai_api_key": "sk-a"}, "OPENAI_API_KEY"),
        ({"openai_api_key": "sk-a", "api_key": "sk-b"}, "CRAG_API_KEY"),
        ({"openai_api_key": "sk-a", "api_key": "sk-b", "grader_api_key": "sk-c"}, "CRAG_GRADER_API_KEY"),
        ({}, "OPENAI_API_KEY"),
    ],
)
def test_the_variable_that_a_key_came_from_is_named(values: dict[str, Any], named: str) -> None:
    """F85"""
    endpoint = Settings(_env_file=None, base_url="http://127.0.0.1:9/v1", **values).endpoint("grader")
    assert endpoint is not None
    assert endpoint.names is not None
    assert endpoint.names.api_key == named
    assert endpoint.names.base_url == "CRAG_BASE_URL"
    assert endpoint.names.model == "CRAG_MODEL"


@pytest.mark.parametrize("key", ["sk-ключ", "sk-密钥", "“sk-abc”"])
def test_a_key_with_letters_that_no_key_has_is_one_clear_line(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F85"""
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(SettingsError) as refused:
        Settings(_env_file=None)
    assert str(refused.value).startswith("OPENAI_API_KEY: the key contains characters that no key has")
    assert key not in str(refused.value)


def test_a_key_is_masked_before_a_message_is_cut() -> None:
    """F85"""
    Settings(_env_file=None, openai_api_key="sk-PLANTED-" + "x" * 40)
    assert masked("a sk-PLANTED-" + "x" * 40 + " b") == "a *** b"


def test_a_placeholder_for_a_key_is_no_secret() -> None:
    Settings(_env_file=None, openai_api_key="ollama")
    assert masked("cannot connect to ollama") == "cannot connect to ollama"


EMBEDDED = {"CRAG_EVALUATOR": "embedded"}
COMMANDS: dict[str, tuple[Callable[[list[str]], int], list[str], dict[str, str]]] = {
    "run": (run_command.main, ["{q}", "--verbose"], {}),
    "run --json": (run_command.main, ["{q}", "--json", "--thread", "t"], EMBEDDED),
    "run --stream": (
        run_command.main,
        ["{q}", "--stream", "--graph", "agentic"],
        {"CRAG_CACHE": "cache.sqlite"},
    ),
    "run tavily": (
        run_command.main,
        ["{off}", "--json"],
        {"CRAG_WEB": "tavily"} | EMBEDDED,
    ),
    "run searxng": (run_command.main, ["{off}"], {"CRAG_WEB": "searxng"} | EMBEDDED),
    "ingest": (ingest.main, ["docs", "--kb", "other"], {"CRAG_EMBEDDING_MODEL": "e"}),
    "doctor": (doctor.main, [], {"CRAG_EMBEDDING_MODEL": "e", "CRAG_WEB": "searxng"}),
    "doctor --json": (doctor.main, ["--json"], {"CRAG_WEB": "tavily", "CRAG_CHECKER_MODEL": "c"}),
    "calibrate": (calibrate.main, ["labels.jsonl", "--evaluator", "llm"], {}),
    "benchmark": (
        benchmark,
        ["--dataset", "q.jsonl", "--systems", "fixed", "--out", "out"],
        {"CRAG_JUDGE_MODEL": "j", "CRAG_WEB": "off"},
    ),
}


@pytest.mark.parametrize("status", [401, 404, 500])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_or_writes_a_secret_that_servers_echo(
    command: str,
    status: int,
    tmp_path: Path,
    encoder: EmbeddedEmbeddings,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """F85: knowledge base, threads, cache, calibration, journal, result and report included."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "tides.md").write_text("Spring tides come twice a month, at new moon.")
    assert sync.ingest([tmp_path / "docs"], Settings(_env_file=None, kb=tmp_path / "kb"), encoder).ok
    labels.write(tmp_path / "labels.jsonl", labels.rows())
    (tmp_path / "q.jsonl").write_text(
        json.dumps({"question": "How often do spring tides come?", "reference": "Twice a month."})
    )
    main, arguments, more = COMMANDS[command]
    asked = {"{q}": "How often do spring tides come?", "{off}": "Who painted the bridge of Lund?"}
    with Echo(status) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        # A login in an address takes the place of a key.
        base = server.url if command in {"ingest", "run"} else server.plain
        environment = PLANTED | {
            "OPENAI_BASE_URL": f"{base}/v1", "CRAG_EMBEDDING_BASE_URL": f"{base}/v1",
            "CRAG_TAVILY_URL": server.url,
            "CRAG_SEARXNG_URL": f"{server.url}/?token=PLANTED-token-8", "CRAG_RETRIES": "0", "CRAG_KB": "kb",
        } | more  # fmt: skip
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        outcome = main([asked.get(argument, argument) for argument in arguments])
        server.shutdown()
    told = capfd.readouterr()
    assert outcome in {0, 1, 2}
    assert server.seen
    assert told.out + told.err
    assert "Traceback" not in told.err
    nothing_of_them(told.out + told.err + written(tmp_path))


SOILED = """
import ctypes, sys
from tests.support import toy, toy_ingest
from crag import ask, Settings

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]

def soil():
    taken = [(libc.malloc(n), n) for n in (2000, 14_400, 27_000, 60_000, 120_000) for _ in range(100)]
    for address, n in taken:
        ctypes.memmove(address, b"PLANTED-" * (n // 8), n // 8 * 8)
    for address, _ in taken[::2]:  # what lies between two that are kept is not given back
        libc.free(address)

soil()
status = toy_ingest.main(sys.argv[1:])
soil()
settings = Settings(_env_file=None, kb=sys.argv[3])
ask("When do spring tides come?", settings=settings, embeddings=toy.ToyEmbeddings())
sys.exit(status)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to blank its memory")
def test_the_index_holds_nothing_of_the_memory_it_is_written_from(tmp_path: Path) -> None:
    """F85: Chroma writes room for passages to come as it finds it, when it stores and when it is asked."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "tides.md").write_text("Spring tides come twice a month, at new moon.")
    place = [str(tmp_path / "docs"), "--kb", str(tmp_path / "kb")]
    told = subprocess.run(
        [sys.executable, "-c", SOILED, *place],
        cwd=ROOT,
        env={**os.environ, "MALLOC_ARENA_MAX": "1"},  # all threads take their memory from one place
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert told.returncode == 0, told.stderr
    index = [path for path in (tmp_path / "kb").rglob("*.bin") if path.stat().st_size]
    assert len(index) > 2
    assert [path.name for path in index if b"PLANTED" in path.read_bytes()] == []


@pytest.mark.parametrize(
    "values",
    [
        {"chroma_url": "http://user:PLANTED-pass-7@127.0.0.1:9"},
        {"openai_base_url": "http://127.0.0.1:9/v1?key=PLANTED-token-8", "embedding_model": "e"},
        {"openai_base_url": "http://127.0.0.1:9/v1?key=PLANTED-token-8"},
    ],
    ids=["Chroma", "embeddings", "model"],
)
def test_what_lies_behind_an_error_holds_no_secret(values: dict[str, Any], tmp_path: Path) -> None:
    """F85: error trackers write down the whole chain, attributes included; some send it on as a pickle."""
    (tmp_path / "tides.md").write_text("Spring tides come twice a month, at new moon.")
    settings = Settings(_env_file=None, kb=tmp_path / "kb", retries=0, **values)
    own = {"retriever": retrieve} if "embedding_model" not in values and "chroma_url" not in values else {}
    with pytest.raises(RunError) as raised:
        ask("When do spring tides come?", settings=settings, **own)
    errors: list[BaseException] = [raised.value]
    if "chroma_url" in values:
        with pytest.raises(CragError) as refused:
            sync.ingest([tmp_path / "tides.md"], settings)
        errors.append(refused.value)
    for error in errors:
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))
        assert b"PLANTED" not in pickle.dumps(error)
        behind: BaseException | None = error
        while behind is not None:
            nothing_of_them(f"{behind!r} {behind} {vars(behind)}")
            assert not hasattr(behind, "request")
            behind = behind.__cause__ or behind.__context__


def test_json_of_settings_holds_no_secret_of_an_address() -> None:
    """F85: Python keeps the addresses, which a run needs."""
    settings = Settings(
        _env_file=None, openai_base_url="http://user:PLANTED-pass-7@127.0.0.1:9/v1",
        searxng_url="http://127.0.0.1:9/?token=PLANTED-token-8", openai_api_key="sk-PLANTED-openai-1",
        chroma_url="http://user:PLANTED-pass-7@127.0.0.1:9",
    )  # fmt: skip
    nothing_of_them(settings.model_dump_json())
    assert json.loads(settings.model_dump_json())["searxng_url"] == "http://127.0.0.1:9/?token=***"
    assert settings.model_dump()["searxng_url"] == "http://127.0.0.1:9/?token=PLANTED-token-8"
