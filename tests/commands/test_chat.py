"""`crag chat` and `crag ask` on a terminal, through a pty, with the real graph and embedded models."""

import codecs
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.commands import ROOT, _clean
from tests.support.openai_server import OpenAIServer, Reply


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, *arguments: str, cwd: Path, **environment: str) -> None:
        self._end, theirs = pty.openpty()
        env = _clean() | {"TERM": "xterm", "XDG_STATE_HOME": str(cwd), "PYTHONPATH": str(ROOT)} | environment
        self.process = subprocess.Popen(
            [sys.executable, "-m", "crag", *arguments],
            stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env=env, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self.seen, self._read = "", 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a read may end within a character

    def until(self, text: str, seconds: float = 60) -> str:
        """What is shown after what was waited for before, up to `text`."""
        begin, end = self._read, time.monotonic() + seconds
        while (at := self.seen.find(text, begin)) < 0:
            left = end - time.monotonic()
            assert left > 0, self.seen
            if select.select([self._end], [], [], left)[0]:
                try:
                    self.seen += self._decoder.decode(os.read(self._end, 65536))
                except OSError:  # Linux's way to say that the other end is closed
                    assert text in self.seen[begin:], self.seen
        self._read = at + len(text)
        return self.seen[begin : self._read]

    def type(self, text: str) -> None:
        os.write(self._end, text.encode())

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._end)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    made: list[Terminal] = []

    def start(*arguments: str, **environment: str) -> Terminal:
        made.append(Terminal(*arguments, cwd=tmp_path, **environment))
        return made[-1]

    yield start
    for one in made:
        one.close()


def test_a_chat_understands_a_follow_up_and_tells_why(
    terminal: Callable[..., Terminal], sample_kb: Path, tmp_path: Path
) -> None:
    chat = terminal("chat", "--kb", str(sample_kb))
    chat.until("› ")
    chat.type("What is reciprocal rank fusion?\n")
    first = chat.until("\n› ")
    assert "retrieve …" in first
    assert "[1]" in first
    chat.type("/sources\n")
    assert ".md" in chat.until("\n› ")
    chat.type("What is its formula?\n")
    chat.until("\n› ")
    chat.type("/why\n")
    why = chat.until("\n› ")
    assert "Path     route" in why
    assert "Verdict" in why
    chat.type("/new\n")
    chat.until("new conversation")
    chat.until("› ")
    chat.type("/why\n")
    chat.until("Nothing was answered yet")
    chat.until("› ")
    chat.type("\x04")
    assert chat.process.wait(20) == 0
    history = tmp_path / "crag" / "chat_history"
    assert "What is its formula?" in history.read_text()
    assert history.stat().st_mode & 0o077 == 0


def test_ctrl_c_stops_the_answer_and_keeps_the_session(
    terminal: Callable[..., Terminal], sample_kb: Path, openai_server: Callable[..., OpenAIServer]
) -> None:
    delays = iter([30.0])
    server = openai_server(lambda messages: Reply("Late [1].", delay=next(delays, 0.0)))
    chat = terminal(
        "chat", "--kb", str(sample_kb), OPENAI_BASE_URL=server.url, CRAG_EVALUATOR="embedded", CRAG_MODEL="m"
    )
    chat.until("› ")
    chat.type("What is reciprocal rank fusion?\n")
    chat.until("generate …")
    time.sleep(0.3)
    os.killpg(chat.process.pid, signal.SIGINT)
    chat.until("(stopped)", 10)
    chat.until("› ")
    chat.type("What is HyDE?\n")
    assert "Late" in chat.until("\n› ")
    os.killpg(chat.process.pid, signal.SIGINT)
    chat.until("› ")
    chat.type("/quit\n")
    assert chat.process.wait(20) == 0


def test_lines_of_a_pipe_are_questions(sample_kb: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "crag", "chat", "--kb", str(sample_kb)],
        input="What is HyDE?\n/help\n/nothing\n什么是 HyDE？\n", capture_output=True, encoding="utf-8",
        cwd=ROOT, env=_clean(), timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stdout.count("[1]") == 2
    assert "there is no /nothing" in done.stderr
    assert "›" not in done.stdout


def test_a_question_on_a_terminal_shows_its_step_and_erases_it(
    terminal: Callable[..., Terminal], sample_kb: Path
) -> None:
    asked = terminal("ask", "What is HyDE?", "--kb", str(sample_kb))
    shown = asked.until("Cost ")
    assert "retrieve …\r\x1b[K" in shown
    assert shown.rindex(" …\r\x1b[K") < shown.index("[1]")
