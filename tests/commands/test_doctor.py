"""`python -m crag.doctor`: each part for itself, and who is to blame. F50 and F59."""

import datetime
import ipaddress
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from crag.doctor import Check, examine, main
from crag.settings.settings import Settings
from tests.commands.test_hardships import python

KEYS = {"OPENAI_API_KEY": "sk-TESTSECRET", "TAVILY_API_KEY": "tvly-TESTSECRET"}


class Server:
    """A model server at /v1 that knows the models qwen-plus and bge; remembers what it was asked."""

    def __init__(self, status: int = 200, reply: Any = None) -> None:
        self.asked: list[tuple[str, str]] = []
        self.url = ""
        self._status, self._reply = status, reply

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        self.asked.append((path, body["model"]))
        if self._reply is not None:
            return self._status, self._reply
        if not path.startswith("/v1/"):
            return 404, "404 page not found"
        if body["model"] not in {"qwen-plus", "bge"}:
            return 404, {"error": {"message": f"The model {body['model']} does not exist"}}
        if path == "/v1/embeddings":
            return 200, {"data": [{"index": 0, "embedding": [0.1, 0.2, 0.3]}]}
        return 200, {"choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}}]}


@contextmanager
def serving(server: Server, certificate: Path | None = None) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, reply = server.answer(self.path, body)
            data = reply.encode() if isinstance(reply, str) else json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            pass  # a client that trusts no certificate hangs up

    http = Quiet(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        http.socket = context.wrap_socket(http.socket, server_side=True)
    thread = threading.Thread(target=http.serve_forever, args=(0.02,))
    thread.start()
    server.url = f"{'https' if certificate else 'http'}://127.0.0.1:{http.server_address[1]}"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def checks(**settings: Any) -> dict[str, Check]:
    given = {"web": "off", "timeout": 5.0, **settings}
    return {check.part: check for check in examine(Settings(_env_file=None, kb=Path("nowhere"), **given))}


def blamed(url: str, model: str = "qwen-plus") -> tuple[str | None, str, str]:
    check = checks(base_url=url, model=model)["generator, grader, checker, judge"]
    return check.wrong, check.detail, check.remedy or ""


def test_an_address_without_v1_is_blamed_on_the_url() -> None:
    """F59."""
    with serving(Server()) as server:
        wrong, detail, remedy = blamed(server.url)
        assert (wrong, detail.endswith("HTTP 404")) == ("url", True)
        assert remedy == f"check CRAG_BASE_URL: most servers want it to end in /v1, this is {server.url}"
        assert blamed(server.url + "/v1")[0] is None
    wrong, detail, remedy = blamed(server.url + "/v1")
    assert wrong == "url"
    assert "cannot connect" in detail
    assert remedy == "check CRAG_BASE_URL and that the server runs"


def test_a_misspelt_model_is_blamed_on_the_model() -> None:
    """F59."""
    with serving(Server()) as server:
        wrong, detail, remedy = blamed(server.url + "/v1", "qwen-plsu")
    assert wrong == "model"
    assert detail.endswith("HTTP 404: The model qwen-plsu does not exist")
    assert remedy == "check CRAG_MODEL: qwen-plsu"


def test_a_proxy_is_blamed_where_it_stands_between_and_passed_by_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """F59."""
    with serving(Server(502, "Bad Gateway")) as proxy, serving(Server()) as server:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, proxy.url.replace("://", "://user:SECRETPW@"))
        assert blamed(server.url + "/v1")[0] is None
        assert proxy.asked == []
        wrong, detail, remedy = blamed("http://models.internal/v1")
    assert wrong == "proxy"
    assert detail.endswith(f"the proxy {proxy.url.removeprefix('http://')} stands between (HTTP 502)")
    assert remedy == "mend HTTPS_PROXY or HTTP_PROXY, or add models.internal to NO_PROXY"


def test_a_certificate_that_is_not_trusted_is_blamed(tmp_path: Path) -> None:
    """F59."""
    with serving(Server(), certificate=self_signed(tmp_path / "server.pem")) as server:
        wrong, detail, remedy = blamed(server.url + "/v1")
    assert wrong == "certificate"
    assert "certificate is not trusted" in detail
    assert remedy == "set SSL_CERT_FILE to the certificate of your company or server"


@pytest.mark.parametrize(
    ("status", "reply", "wrong"),
    [
        (401, {"error": {"message": "bad key sk-TESTSECRET"}}, "key"),
        (429, {"error": {"message": "slow down"}}, "quota"),
        (500, "oops", "server"),
        (200, "<html>Welcome</html>", "url"),
        (200, {"choices": []}, "url"),
        (301, "", "url"),
        (400, {"error": {"message": "Model Not Exist"}}, "model"),
        (400, {"error": {"message": "Unsupported parameter: use max_completion_tokens"}}, None),
    ],
)
def test_what_a_server_answers_is_told_apart(status: int, reply: Any, wrong: str | None) -> None:
    with serving(Server(status, reply)) as server:
        found = checks(base_url=server.url + "/v1", model="m", openai_api_key="sk-TESTSECRET")
    check = found["generator, grader, checker, judge"]
    assert check.wrong == wrong
    assert "TESTSECRET" not in str(check)


def test_each_different_server_gets_one_request_and_embeddings_are_tested_for_themselves() -> None:
    with serving(Server()) as server:
        found = checks(
            base_url=server.url + "/v1",
            model="qwen-plus",
            grader_model="bge",
            embedding_model="nope",
            embedding_base_url=server.url + "/v1",
        )
        assert sorted(server.asked) == [
            ("/v1/chat/completions", "bge"),
            ("/v1/chat/completions", "qwen-plus"),
            ("/v1/embeddings", "nope"),
        ]
    assert {part: check.state for part, check in found.items()} == {
        "knowledge base": "failed",
        "embedded models": "ok",
        "generator, checker, judge": "ok",
        "grader": "ok",
        "embedding": "failed",
        "web search": "off",
    }
    assert found["embedding"].remedy == "check CRAG_EMBEDDING_MODEL: nope"


def test_a_missing_knowledge_base_one_of_other_embeddings_and_a_good_one_are_told_apart(
    sample_kb: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """F50."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CRAG_WEB", "off")
    assert main(["--kb", "typo"]) == 1
    assert f"failed  knowledge base: no knowledge base at {tmp_path}/typo; run:" in capsys.readouterr().out
    assert not (tmp_path / "typo").exists()
    assert main(["--kb", str(sample_kb)]) == 0
    assert "passages at" in capsys.readouterr().out
    with serving(Server()) as server:
        monkeypatch.setenv("CRAG_EMBEDDING_MODEL", "bge")
        monkeypatch.setenv("CRAG_EMBEDDING_BASE_URL", server.url + "/v1")
        assert main(["--kb", str(sample_kb), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    states = {check["part"]: (check["state"], check["detail"]) for check in report["checks"]}
    assert report["ok"] is False
    assert 'was built with the embeddings "multilingual-e5-small' in states["knowledge base"][1]
    assert states["embedding"][1].endswith(": answers, 3 dimensions")


def test_the_output_can_be_pasted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Server(401, {"error": {"message": "Bearer sk-TESTSECRET"}})) as server:
        for name, value in {**KEYS, "CRAG_WEB": "off"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("CRAG_MODEL_BASE_URL", server.url.replace("://", "://me:pw-TESTSECRET@") + "/v1")
        monkeypatch.setenv("CRAG_KB", str(Path.home() / "kb"))
        for arguments in ([], ["--json"]):
            assert main(arguments) == 1
            captured = capsys.readouterr()
            assert "TESTSECRET" not in captured.out + captured.err
            assert str(Path.home() / "kb") not in captured.out
        assert json.loads(captured.out)["settings"]["tavily_api_key"] == "set"
        assert json.loads(captured.out)["settings"]["judge_api_key"] == "not set"


def test_a_wrong_setting_is_status_two_and_a_typo_is_a_finding(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRAG_KAY", "3")
    assert main([]) == 1
    assert "failed  settings: CRAG_KAY is not a setting; did you mean CRAG_K?" in capsys.readouterr().out
    monkeypatch.setenv("CRAG_K", "many")
    assert main([]) == 2
    assert capsys.readouterr().err == "crag: CRAG_K: must be a whole number, not 'many'\n"


def test_help_says_what_is_sent_and_loads_nothing_heavy() -> None:
    done = python("""
        import sys
        from crag.doctor import main
        try:
            main(["--help"])
        finally:
            print("loaded:", {"pydantic", "httpx", "chromadb", "numpy"} & sys.modules.keys())
    """)
    assert "one request of a few tokens" in " ".join(done.stdout.split())
    assert done.stdout.endswith("loaded: set()\n")


def self_signed(path: Path) -> Path:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(pem + certificate.public_bytes(serialization.Encoding.PEM))
    return path
