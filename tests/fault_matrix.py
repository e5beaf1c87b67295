"""`python -m tests.fault_matrix`: every fault of `tests.support.faults` in every graph, through the command.

Each run must end without a traceback, with the exit status and the JSON that are promised, and with a warning
or an error that names the cause. What does not is printed below the table; exit status 1 then.
"""

import argparse
import io
import json
import os
import sys
import tempfile
import time
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from crag.base.answer import Answer
from crag.encoders.embeddings import embedded_embeddings
from crag.knowledge.ingestion import ingest
from crag.run import main as command
from crag.settings.settings import Settings
from tests.support.faults import FAULTS, GRAPHS, Fault

QUESTION = "What makes the tides?"
TEXT = "The moon makes the tides of the sea. The sun helps it a little."
KEYS = ("CRAG_", "OPENAI_", "TAVILY_")
SECRET = "TESTSECRET"


def knowledge(folder: Path) -> Path:
    """A small knowledge base for all runs."""
    for name in ("moon", "sun"):
        (folder / f"{name}.txt").write_text(f"{TEXT} ({name})", "utf-8")
    kb = folder / "kb"
    files = [folder / "moon.txt", folder / "sun.txt"]
    assert ingest(files, Settings(_env_file=None, kb=kb), embedded_embeddings()).ok
    return kb


def wrong(fault: Fault, graph: str, kb: Path) -> list[str]:
    """What a run under a fault did otherwise than promised."""
    out, err = io.StringIO(), io.StringIO()
    clean = {name: value for name, value in os.environ.items() if not name.startswith(KEYS)}
    with (
        tempfile.TemporaryDirectory() as folder,
        chdir(folder),
        fault.at_work(Path(folder), kb) as environment,
        patch.dict(os.environ, clean | environment, clear=True),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            status = command([QUESTION, "--graph", graph, "--json"])
        except BaseException as error:  # noqa: BLE001 - whatever leaves the command is what is looked for
            return [f"{type(error).__name__} left the command: {error}"]
        finally:
            for path in Path(folder).rglob("*"):
                path.chmod(0o755 if path.is_dir() else 0o644)
    touched = graph not in fault.silent
    return _judged(fault, status, out.getvalue(), err.getvalue(), touched=touched)


def _judged(fault: Fault, status: int, out: str, err: str, *, touched: bool) -> list[str]:
    found = []
    expected = fault.status if touched else 0
    if status != expected:
        found.append(
            f"status {status}, not {expected}: {err.strip()[-300:]} {out[-200:] if status == 0 else ''}"
        )
    if "Traceback" in out + err:
        found.append("a traceback")
    if SECRET in out + err:
        found.append("a key")
    if status and len(err.splitlines()) != 1:
        found.append(f"{len(err.splitlines())} lines on standard error: {err!r}")
    said = err
    if out or status == 0:
        if json.loads(out).keys() != Answer.model_json_schema()["properties"].keys():
            found.append("other keys in the JSON")
        answer = Answer.model_validate_json(out)
        said += f" {answer.warnings} {answer.path_text} {answer.grounding_reason}"
        if status == 0 and not answer.answer:
            found.append("no answer")
    if touched:
        found += [f"{word!r} is not in {said!r}" for word in fault.words if word not in said]
    return found


def main() -> int:
    """Run the matrix and print it."""
    from rich.console import Console
    from rich.table import Table

    parser = argparse.ArgumentParser("python -m tests.fault_matrix")
    parser.add_argument("--only", metavar="TEXT", default="", help="faults whose name holds it")
    chosen = [fault for fault in FAULTS if parser.parse_args().only in fault.name]
    console = Console()
    table = Table("fault", *GRAPHS, "s", title=f"{len(chosen)} faults in {len(GRAPHS)} graphs")
    failures = []
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        kb = knowledge(Path(folder))
        for fault in chosen:
            start = time.perf_counter()
            row = []
            for graph in GRAPHS:
                found = wrong(fault, graph, kb)
                failures += [f"{fault.name}, {graph}: {line}" for line in found]
                row.append("[red]wrong" if found else str(0 if graph in fault.silent else fault.status))
            table.add_row(fault.name, *row, f"{time.perf_counter() - start:.1f}")
    console.print(table)
    for line in failures:
        console.print(line, markup=False)
    runs = len(chosen) * len(GRAPHS)
    console.print(f"{runs} runs, {len(failures)} complaints, {time.perf_counter() - began:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
