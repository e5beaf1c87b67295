"""What can go wrong around a question, each with the exit status and the words that must come of it."""

import json
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.latency import model
from tests.support.openai_server import OpenAIServer, Reply
from tests.support.raw_server import RawServer, completion, drip
from tests.support.web_servers import Reply as WebReply
from tests.support.web_servers import TavilyServer, tavily_error

Messages = list[dict[str, Any]]
GRAPHS = ("crag", "batched", "agentic", "fixed")
JUDGING = ("numbered passages", "numbered sentences", "First say in one sentence", "Score (0 to 1)")
CHECKING = ("check whether an answer",)
ALL = ("",)


@dataclass(frozen=True)
class Fault:
    """A fault, the exit status of each graph under it, and words of the warning or error that names it.

    `calls` are the texts by which the calls that fail are known, `reply` what they get: an answer, or one for
    each try, of which the last repeats. `score` leads the others onto a path.
    """

    name: str
    words: tuple[str, ...]
    status: int = 0
    reply: "tuple[str | Reply, ...]" = ()
    calls: tuple[str, ...] = ALL
    score: float = 0.9
    web: WebReply | None = None
    raw: Any = None
    down: bool = False
    refuses: str = ""
    store: "Callable[[Path], None] | None" = None
    environment: Mapping[str, str] = field(default_factory=dict)
    silent: tuple[str, ...] = ()
    """Graphs that the fault does not touch: they end with 0 and need not name it."""

    @contextmanager
    def at_work(self, folder: Path, kb: Path) -> Iterator[dict[str, str]]:
        """The environment of a run under the fault."""
        with ExitStack() as running:
            env = {
                "CRAG_MODEL": "m",
                "CRAG_BASE_URL": self._model(running),
                "CRAG_API_KEY": "sk-TESTSECRET",
                "CRAG_KB": str(kb),
                "CRAG_K": "2",
                "CRAG_RETRIES": "1",
                "CRAG_TIMEOUT": "8",
                "CRAG_WEB": "off",
            }
            if self.web:
                web = running.enter_context(TavilyServer(self.web))
                env |= {"CRAG_WEB": "tavily", "TAVILY_API_KEY": "tvly-TESTSECRET", "CRAG_TAVILY_URL": web.url}
                env["CRAG_WEB_TIMEOUT"] = "1"
            if self.store:
                own = folder / "kb"
                shutil.copytree(kb, own)
                self.store(own)
                env["CRAG_KB"] = str(own)
            yield env | dict(self.environment)

    def _model(self, running: ExitStack) -> str:
        if self.down:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                return f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        if self.raw is not None:
            return running.enter_context(RawServer(self.raw)).url
        server = running.enter_context(OpenAIServer())
        well = model(self.score)
        tries: dict[str, int] = {}

        def reply(messages: Messages) -> "str | Reply":
            text = "\n".join(message["content"] for message in messages)
            if self.refuses and self.refuses in server.chats[-1].body:
                return Reply(f"Unsupported parameter: '{self.refuses}'", status=400)
            if not self.reply or not any(call in text for call in self.calls):
                return well(messages)
            done = tries[text] = tries.get(text, 0) + 1
            scripted = self.reply[min(done, len(self.reply)) - 1]
            return well(messages) if scripted == "well" else scripted

        server.reply = reply
        return server.url


def _status(code: int, message: str, **headers: str) -> Reply:
    return Reply(
        message, status=code, headers={name.replace("_", "-"): text for name, text in headers.items()}
    )


def _truncated(kb: Path) -> None:
    database = kb / "chroma.sqlite3"
    database.write_bytes(database.read_bytes()[:4000])


def _emptied(kb: Path) -> None:
    for path in kb.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _read_only(kb: Path) -> None:
    for path in (*kb.rglob("*"), kb):
        path.chmod(0o555 if path.is_dir() else 0o444)


_HTML = Reply(raw_body="<html>welcome</html>", headers={"Content-Type": "text/html"})
_STREAM_CUT = completion("It is so [1].")[:-30]
_FIXED = ("fixed",)
_LOW = {"score": 0.1, "silent": _FIXED}

MODEL = [
    Fault("server down", ("cannot connect", "BASE_URL"), 1, down=True),
    Fault("401", ("401", "API_KEY"), 1, (_status(401, "bad key"),)),
    Fault("403", ("403", "may not use this model"), 1, (_status(403, "no"),)),
    Fault("404: wrong URL or model", ("404", "/v1", "CRAG_MODEL"), 1, (_status(404, "no such model"),)),
    Fault("429 once", (), 0, (_status(429, "busy", Retry_After="0.05"), "well")),
    Fault("429 for ever", ("429", "rate limit"), 1, (_status(429, "busy", Retry_After="0.05"),)),
    Fault("429, come back in an hour", ("asks to wait 3600 s",), 1,
          (_status(429, "x", Retry_After="3600"),)),
    Fault("500 once", (), 0, (_status(500, "boom", Retry_After="0.05"), "well")),
    Fault("500 for ever", ("500", "boom"), 1, (_status(500, "boom", Retry_After="0.05"),)),
    Fault("timeout", ("no reply within 1 s", "CRAG_TIMEOUT"), 1, raw=drip(b"", every=30),
          environment={"CRAG_TIMEOUT": "1", "CRAG_EVALUATOR": "embedded"}),
    Fault("drip", ("no reply within", "CRAG_TIMEOUT"), 1, raw=drip(completion("x" * 900), every=0.05),
          environment={"CRAG_TIMEOUT": "0.5", "CRAG_EVALUATOR": "embedded"}),
    Fault("broken off", ("broke the reply off",), 1, raw=_STREAM_CUT),
    Fault("empty replies", ("wrote nothing",), 1, ("",)),
    Fault("null content", ("wrote nothing",), 1, (Reply(None),)),
    Fault("malformed JSON", ("not OpenAI-compatible",), 1, (Reply(raw_body='{"choices": ['),)),
    Fault("no choices", ("not OpenAI-compatible",), 1, (Reply(raw_body='{"choices": []}'),)),
    Fault("HTML with 200", ("not OpenAI-compatible", "/v1"), 1, (_HTML,)),
    Fault("error with 200", ("overloaded",), 1, (Reply(raw_body='{"error": {"message": "overloaded"}}'),)),
    Fault("context overflow", ("longer than the model's window", "CRAG_CONTEXT_TOKENS"), 1,
          (_status(400, "maximum context length is 10 tokens"),)),
    Fault("content filter, grading", ("content filter",), 0, (Reply("", finish_reason="content_filter"),),
          calls=JUDGING, silent=_FIXED),
    Fault("used up by thinking, grading", ("used up by thinking",), 0,
          (Reply("", finish_reason="length", reasoning_content="hm"),), calls=JUDGING, silent=_FIXED),
    Fault("leaked thoughts", (), 0, ("<think>0.2 or [3]?</think>0.9 [1]",)),
    Fault("prose instead of scores", ("replied",), 0, ("I would rather not say.",), calls=JUDGING,
          silent=("fixed", "agentic")),
    Fault("NaN scores", ("unscored",), 0, ("NaN",), calls=JUDGING, silent=("fixed", "agentic")),
    Fault("refusals", ("it refused",), 1, (Reply(raw_body=json.dumps({"choices": [{"index": 0, "message": {
        "role": "assistant", "content": None, "refusal": "I must not"}, "finish_reason": "stop"}]})),)),
    Fault("refused temperature", (), 0, refuses="temperature"),
    Fault("refused response_format", (), 0, refuses="response_format"),
    Fault("refused stream_options", (), 0, refuses="stream_options"),
    Fault("checker down", ("unverified", "500"), 0, (_status(500, "boom", Retry_After="0.05"),),
          calls=CHECKING, environment={"CRAG_CHECK": "true"}),
    Fault("checker prose", ("unverified", "replied"), 0, ("Lovely answer!",), calls=CHECKING,
          environment={"CRAG_CHECK": "true"}),
]  # fmt: skip

WEB = [
    Fault("web 401", ("401", "TAVILY_API_KEY"), web=tavily_error(401, "bad key"), **_LOW),
    Fault("web 429", ("429",), web=tavily_error(429, "slow down"), **_LOW),
    Fault("web 432", ("432",), web=tavily_error(432, "plan used up"), **_LOW),
    Fault("web 500", ("500",), web=WebReply("boom", 500), **_LOW),
    Fault("web timeout", ("no reply within 1 s", "CRAG_WEB_TIMEOUT"), web=WebReply({}, delay=3), **_LOW),
    Fault("web not JSON", ("JSON",), web=WebReply("<html>hello</html>"), **_LOW),
    Fault("web results null", ("web_search(empty)",), web=WebReply({"results": None}), **_LOW),
    Fault("web empty", ("web_search(empty)",), web=WebReply({"results": []}), **_LOW),
    Fault("web error as a dictionary", ("web search failed",), web=WebReply({"error": "no"}), **_LOW),
]

STORE = [
    Fault("store missing", ("no ", "crag.ingest"), 1, store=shutil.rmtree),
    Fault("store an empty folder", ("crag.ingest",), 1, store=_emptied),
    Fault("store of another collection", ("crag.ingest",), 1, environment={"CRAG_COLLECTION": "other"}),
    Fault("store of another embedding model", ("embedding", "crag.ingest"), 1,
          environment={"CRAG_EMBEDDING_MODEL": "e", "CRAG_EMBEDDING_BASE_URL": "http://127.0.0.1:9/v1"}),
    Fault("store truncated", ("damaged", "crag.ingest"), 1, store=_truncated),
    Fault("store read-only", (), 0, store=_read_only),
]  # fmt: skip

FAULTS = [*MODEL, *WEB, *STORE]
