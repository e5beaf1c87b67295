"""Embeddings of any OpenAI-compatible server."""

import base64
import re
import threading
import time
import weakref
from itertools import count
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from crag.aio.calls import within
from crag.base.errors import ModelError
from crag.base.http import (
    LARGEST_VECTORS,
    NO_KEY,
    OPENAI_URL,
    host_of,
    is_loopback,
    keep_to_server,
    limit_reply,
)
from crag.base.metering import meter
from crag.models.errors import model_error, pause
from crag.models.shape import ToldError, words_of
from crag.settings.endpoints import Endpoint


def read_vectors(body: Any, count: int) -> list[list[float]]:
    """The vectors of `count` texts, in the order of the texts, whatever the order of the reply.

    Raises ModelError for another number of them, and for what is no vector: not numbers, not finite, zero.
    """
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, list):
        if said := words_of(body):
            raise ToldError(said)
        raise ValueError("it has no data")
    given = [item.get("embedding") if isinstance(item, dict) else None for item in data]
    vectors = [_vector(embedding) for embedding in given if embedding]
    if len(vectors) != count or len(given) != count:
        raise ModelError(
            f"it gave {len(vectors) if len(vectors) != count else len(given)} vectors for {count} texts; "
            "check CRAG_EMBEDDING_MODEL or lower CRAG_EMBEDDING_BATCH"
        )
    order = [str(item.get("index")) for item in data]
    if sorted(order) == sorted(map(str, range(count))):
        return [vectors[order.index(str(n))] for n in range(count)]
    return vectors


def _vector(embedding: Any) -> list[float]:
    try:
        if isinstance(embedding, str):  # some servers send the bytes whatever they are asked for
            numbers = np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")
        else:
            with np.errstate(over="ignore"):
                numbers = np.array(embedding, np.float64).astype(np.float32)
    except (TypeError, ValueError):
        raise ModelError("it gave something else than numbers as a vector; use another model") from None
    if numbers.ndim != 1:
        raise ModelError("it gave a table where a vector belongs, one for each word; use an embedding model")
    if not np.isfinite(numbers).all():
        raise ModelError("it gave a vector with numbers that are not finite; restart it or use another model")
    if not numbers.any():
        raise ModelError("it gave a vector of zeros, which is like no other; restart it or use another model")
    vector: list[float] = numbers.tolist()
    return vector


OPENAI_BATCH, OTHER_BATCH = 256, 10
"""Texts in one request: DashScope takes no more than ten, OpenAI 2,048 and 300,000 tokens."""

_ABOUT_BATCH = re.compile(
    r"batch|too many|at most|larger than|exceed|maximum|too large|less than", re.IGNORECASE
)


class _BatchError(ModelError):
    """A server found a batch too large."""


def api_embeddings(
    endpoint: Endpoint, *, batch: int | None = None, timeout: float = 60.0, retries: int = 2
) -> "ApiEmbeddings":
    """The embeddings behind an endpoint; `batch` is the number of texts in one request."""
    return ApiEmbeddings(endpoint, batch=batch, timeout=timeout, retries=retries)


class ApiEmbeddings(Embeddings):
    """Embeddings of an OpenAI-compatible server. Texts are sent as text, never as token ids.

    Raises ModelError, one line with the remedy, for every failure: also for a reply with another number of
    vectors than texts, with vectors of different lengths, or with what is no vector: empty, zero, not finite.
    """

    def __init__(self, endpoint: Endpoint, *, batch: int | None, timeout: float, retries: int) -> None:
        self.model_id = endpoint.model
        self._endpoint = endpoint
        self._url = endpoint.base_url or OPENAI_URL
        self._batch = batch or (OPENAI_BATCH if host_of(self._url) == host_of(OPENAI_URL) else OTHER_BATCH)
        self._timeout = timeout
        self._retries = retries
        self._lock = threading.Lock()
        self._client: Any = None

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Vectors of `texts`, one for each, in order."""
        vectors: list[list[float]] = []
        while len(vectors) < len(texts):
            part = texts[len(vectors) : len(vectors) + self._batch]
            try:
                vectors += self._request(part)
            except _BatchError as error:
                if len(part) == 1:
                    raise ModelError(str(error)) from None
                self._batch = len(part) // 2
        if len({len(vector) for vector in vectors}) > 1:
            raise self._error(ModelError("it gave vectors of different lengths; use another model"))
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        return self.embed_documents([text])[0]

    def _request(self, texts: list[str]) -> list[list[float]]:
        """The vectors of one batch, with further tries as chat models have them."""
        client = self._connected()
        began = time.monotonic()
        meter().embedding_calls += 1
        for tried in count(1):
            try:
                return read_vectors(within(self._timeout, lambda: self._send(client, texts)), len(texts))
            except Exception as error:  # noqa: BLE001 - vendors raise many kinds; all become one of ours
                failure = self._error(error)
                left = self._timeout - (time.monotonic() - began)
                wait = pause(error, failure, retries=self._retries, tried=tried, left=left)
                if wait is None:
                    # A vendor's traceback may echo the request with its key.
                    raise (_BatchError(str(failure)) if _is_about_batch(error) else failure) from None
                time.sleep(wait)
        raise AssertionError

    def _send(self, client: Any, texts: list[str]) -> Any:
        reply = client.embeddings.with_raw_response.create(
            model=self._endpoint.model,
            # Servers refuse an empty text, and with it the whole batch.
            input=[text.strip() or "-" for text in texts],
            encoding_format="float",
        )
        return reply.http_response.json()

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _connect(self) -> Any:
        import openai

        key = self._endpoint.api_key
        http = openai.DefaultHttpxClient(
            # A system proxy cannot reach this machine's own servers.
            trust_env=not is_loopback(self._url),
            timeout=self._timeout,
            event_hooks={"response": [keep_to_server, lambda reply: limit_reply(reply, LARGEST_VECTORS)]},
        )
        weakref.finalize(self, http.close)
        return openai.OpenAI(
            base_url=self._url,
            api_key=key.get_secret_value() if key else NO_KEY,
            max_retries=0,  # `llm_retry` counts them
            timeout=self._timeout,
            http_client=http,
        )

    def _error(self, error: Exception) -> ModelError:
        key = self._endpoint.api_key
        return model_error(
            error,
            role="embedding",
            model=self._endpoint.model,
            host=host_of(self._url),
            timeout=self._timeout,
            secrets=[key.get_secret_value()] if key else [],
            names=self._endpoint.names,
        )


def _is_about_batch(error: Exception) -> bool:
    return getattr(error, "status_code", None) in {400, 413, 422} and bool(_ABOUT_BATCH.search(str(error)))
