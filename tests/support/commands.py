"""`python -m crag.run` for tests: as a process of its own, or here, where the models are loaded already."""

import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from unittest.mock import patch

from crag import run as command

KEYS = ("CRAG_", "OPENAI_", "TAVILY_", "LANGSMITH_", "LANGCHAIN_")
ROOT = Path(__file__).parents[2]
Done = subprocess.CompletedProcess[str]


def run(*arguments: str, stdin: str | None = None, cwd: Path | None = None, **environment: str) -> Done:
    """In a process of its own, without the settings of this one: for what only a process shows."""
    return subprocess.run(
        [sys.executable, "-m", "crag.run", *arguments],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        cwd=cwd or ROOT,
        env=_clean() | environment,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )


def here(*arguments: str, stdin: str | bytes = "", cwd: Path | None = None, **environment: str) -> Done:
    """The same command in this process, seconds faster."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    told, said = (TextIOWrapper(BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        patch.dict(os.environ, _clean() | environment, clear=True),
        patch("sys.stdin", TextIOWrapper(BytesIO(given), "utf-8")),
        chdir(cwd or ROOT),
        redirect_stdout(told),
        redirect_stderr(said),
    ):
        try:
            status = command.main(arguments)
        except SystemExit as end:
            status = int(end.code or 0)
    out, err = (stream.buffer.getvalue().decode() for stream in (told, said))  # type: ignore[attr-defined]
    return Done(list(arguments), status, out, err)


def _clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(KEYS)}
