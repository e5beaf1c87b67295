"""The HTTP server: who may ask, how much at once, and the ways in."""

import json
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from pydantic import BaseModel, Field
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crag.base.answer import Answer
from crag.base.errors import CragError, SettingsError
from crag.serving.asking import Question, events
from crag.serving.limits import RETRY_AFTER, BusyError, Gate, LateError, Limits
from crag.serving.openai import Completion, chunks, completion, question_of
from crag.serving.tenants import Tenant, Tenants, loopback
from crag.settings.settings import GRAPHS, Settings
from crag.steps import Step

OPEN = {"/healthz", "/readyz"}
log = logging.getLogger("crag.serve")


class Asked(BaseModel):
    """The body of POST /ask; `context` may hold `where`, which narrows what may be found."""

    question: str
    graph: str = "crag"
    thread: str | None = None
    context: dict[str, Any] = Field(default_factory=dict)


def create_app(settings: Settings, *, limits: Limits | None = None, host: str = "127.0.0.1") -> FastAPI:
    """The application. Raises SettingsError for keys that are wrong, or missing off this machine."""
    from crag import __version__

    tenants, limits = Tenants(settings), limits or Limits()
    if not tenants.keyed and not loopback(host):
        raise SettingsError(f"CRAG_SERVE_KEY must be set to listen on {host}; set it, or use 127.0.0.1")
    counts: Counter[str] = Counter()

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        app.state.gate = Gate(limits)
        yield

    app = FastAPI(title="crag", version=__version__, lifespan=life, redoc_url=None)
    app.add_middleware(Guard, tenants=tenants, limit=limits.body, local=loopback(host), counts=counts)

    @app.exception_handler(CragError)
    async def failed(request: Request, error: CragError) -> JSONResponse:
        return _error(error)

    @app.exception_handler(RequestValidationError)
    async def unreadable(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        return refusal(400, f"{'.'.join(map(str, first['loc'][1:]))}: {first['msg']}")

    async def told(question: Question, tenant: Tenant) -> AsyncIterator[Any]:
        began, outcome = time.perf_counter(), "cancelled"
        try:
            async with (
                app.state.gate.entered(),
                aclosing(events(question, tenant.settings)) as found,  # type: ignore[type-var]
            ):
                async for event in found:
                    yield event
            outcome = "answered"
        except CragError as error:
            outcome = type(error).__name__
            raise
        finally:
            counts[outcome] += 1
            seconds = round(time.perf_counter() - began, 3)
            # No texts: neither question nor answer.
            log.info(
                json.dumps({"graph": question.graph, "outcome": outcome, "s": seconds, "tenant": tenant.name})
            )

    async def whole(request: Request, question: Question) -> Answer:
        async for event in _while_heard(request, told(question, request.state.tenant)):
            if isinstance(event, Answer):
                return event
        raise LateError("the client has gone")

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "crag"} for name in GRAPHS]
        return {"object": "list", "data": data}

    @app.get("/v1/models/{name}", response_model=None)
    async def model(name: str) -> dict[str, Any] | JSONResponse:
        if name not in GRAPHS:
            return refusal(404, f"no model named {name!r}; there are {', '.join(GRAPHS)}", "model_not_found")
        return {"id": name, "object": "model", "created": 0, "owned_by": "crag"}

    @app.post("/v1/chat/completions", response_model=None)
    async def chat(request: Request, body: Completion) -> Any:
        if body.model not in GRAPHS:
            known = ", ".join(GRAPHS)
            return refusal(404, f"no model named {body.model!r}; there are {known}", "model_not_found")
        question = question_of(body)
        if body.stream:
            return await _streamed(chunks(told(question, request.state.tenant), body))
        return completion(await whole(request, question), body)

    @app.post("/ask", response_model=Answer)
    async def ask(request: Request, body: Asked) -> Any:
        tenant: Tenant = request.state.tenant
        unknown = sorted(body.context.keys() - {"where"})
        if unknown:
            raise SettingsError(f"context has no {', '.join(unknown)} here; it may hold where")
        question = Question(
            body.question, body.graph, tenant.thread(body.thread), where=body.context.get("where")
        )
        if "text/event-stream" in request.headers.get("accept", ""):
            return await _streamed(_sent(told(question, tenant)))
        return await whole(request, question)

    @app.get("/healthz")
    async def alive() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz", response_model=None)
    async def ready() -> dict[str, str] | JSONResponse:
        there = settings.chroma_url or settings.kb.is_dir()
        return {"status": "ok"} if there else refusal(503, "there is no knowledge base yet; run crag ingest")

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> str:
        lines = ["# TYPE crag_questions_total counter"]
        lines += [f'crag_questions_total{{outcome="{name}"}} {n}' for name, n in sorted(counts.items())]
        inside = app.state.gate.inside
        return "\n".join(
            [*lines, "# TYPE crag_questions_inside gauge", f"crag_questions_inside {inside}", ""]
        )

    return app


async def _streamed(pieces: AsyncIterator[str]) -> StreamingResponse:
    """A stream whose first piece is there: what fails before it has a status of its own."""
    first = await anext(pieces)

    async def all_of_them() -> AsyncIterator[str]:
        async with aclosing(pieces):  # type: ignore[type-var]
            yield first
            try:
                async for piece in pieces:
                    yield piece
            except CragError as error:
                yield f"event: error\ndata: {json.dumps(_told(str(error)))}\n\n"

    return StreamingResponse(all_of_them(), media_type="text/event-stream")


async def _sent(told: AsyncIterator[Any]) -> AsyncIterator[str]:
    async with aclosing(told):  # type: ignore[type-var]
        async for event in told:
            if isinstance(event, Step):
                name, data = "step", json.dumps({"step": event.name, "text": event.text})
            elif isinstance(event, str):
                name, data = "text", json.dumps({"text": event})
            else:
                name, data = "answer", event.model_dump_json()
            yield f"event: {name}\ndata: {data}\n\n"


async def _while_heard(request: Request, told: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async with aclosing(told):  # type: ignore[type-var]
        async for event in told:
            if await request.is_disconnected():
                return
            yield event


def _told(message: str, code: str | None = None, kind: str = "server_error") -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def refusal(status: int, message: str, code: str | None = None) -> JSONResponse:
    """An error as OpenAI's clients read it."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    headers = {"Retry-After": str(RETRY_AFTER)} if status in {429, 503} else {}
    return JSONResponse(_told(message, code, kind), status, headers)


def _error(error: CragError) -> JSONResponse:
    if isinstance(error, BusyError):
        return refusal(429, str(error), "rate_limit_exceeded")
    status = 400 if isinstance(error, SettingsError) else 504 if isinstance(error, LateError) else 502
    return refusal(status, str(error))


class Guard:
    """Before anything is read: the key, the Host, the Origin and the size of a request."""

    def __init__(
        self, app: ASGIApp, *, tenants: Tenants, limit: int, local: bool, counts: Counter[str]
    ) -> None:
        self._app, self._tenants, self._limit, self._local = app, tenants, limit, local
        self._counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]}
        tenant = self._tenants.of(headers.get("authorization", ""))
        refused = self._refused(headers)
        if refused is None and tenant is None and scope["path"] not in OPEN:
            refused = refusal(
                401, "the key is missing or wrong; send Authorization: Bearer KEY", "invalid_api_key"
            )
        body = b""
        while refused is None:  # read whole, so that its size is known whatever its headers say
            message = await receive()
            body += message.get("body", b"")
            if len(body) > self._limit:
                refused = refusal(413, f"the request is longer than {self._limit:,} bytes")
            if not message.get("more_body"):
                break
        if refused is not None:
            self._counts["refused"] += 1
            await refused(scope, receive, send)
            return
        scope.setdefault("state", {})["tenant"] = tenant
        given = False

        async def replayed() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replayed, send)

    def _refused(self, headers: dict[str, str]) -> JSONResponse | None:
        host = headers.get("host", "")
        # A page of another site whose name points here (DNS rebinding) would come with that name.
        if self._local and not loopback(_name(host)):
            return refusal(403, "this server answers to names of this machine only")
        origin = headers.get("origin")
        if origin and origin.partition("://")[2] != host:
            return refusal(403, "a page of another origin may not ask here")
        return None


def _name(host: str) -> str:
    return host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() and not host.endswith("]") else host
