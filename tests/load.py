"""`python -m tests.load`: 200 questions at once, beside the same number of bare requests in the same run.

The model takes 200 ms a call. The ideal is calls / concurrency x 0.2 s; the bare client is httpx with as many
connections, the same prompts' lengths and nothing else. With `--retriever real` the documents come from a
knowledge base by the embedded models, whose seconds then count too. Exit status 1 if an answer is lost or
belongs to another question.
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from langchain_core.documents import Document

from crag import Answer, Settings, aask

LATENCY = 0.2


class Measured(NamedTuple):
    """Seconds, requests to the model and what was lost or mixed up."""

    seconds: float
    calls: int
    wrong: int


async def serve(port: int) -> None:
    """A model on `port`: grades .9, answers with the word in question, both after LATENCY seconds."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                fields = dict(
                    line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line
                )
                body = await reader.readexactly(int(fields[b"content-length"]))
                await asyncio.sleep(LATENCY)
                writer.write(_response(body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", port, backlog=512)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


def _response(body: bytes) -> bytes:
    user = json.loads(body)["messages"][-1]["content"]
    word = user.partition("Code")[2][:4]
    text = "0.9" if "Score (0 to 1)" in user else f"It is Code{word} [1]."
    message = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 300, "completion_tokens": 8, "total_tokens": 308}
    reply = json.dumps(
        {"id": "1", "object": "chat.completion", "model": "m", "choices": [message], "usage": usage}
    )
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(reply)}\r\n\r\n"
    return (head + reply).encode()


@contextmanager
def model() -> Iterator[str]:
    """The base URL of the model, in a process of its own so that it does not take this one's time."""
    command = [sys.executable, "-m", "tests.load", "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        process.terminate()


async def own_retriever(question: str, k: int) -> list[Document]:
    """Documents that cost nothing to find."""
    return [
        Document(
            id=f"{question} {n}", page_content=f"{question} Passage {n}. " * 8, metadata={"source": f"{n}.md"}
        )
        for n in range(k)
    ]


async def ask_all(settings: Settings, questions: int, **own: Any) -> Measured:
    """All questions at once; one that gets another's answer is wrong."""
    asked = [f"What is Code{n:04}?" for n in range(questions)]
    began = time.perf_counter()
    answers = await asyncio.gather(
        *(aask(question, settings=settings, **own) for question in asked), return_exceptions=True
    )
    seconds = time.perf_counter() - began
    fine = [
        isinstance(answer, Answer)
        and answer.question == question
        and answer.answer == f"It is {question[8:16]} [1]."
        for question, answer in zip(asked, answers, strict=True)
    ]
    calls = sum(answer.usage.llm_calls for answer in answers if isinstance(answer, Answer))
    return Measured(seconds, calls, fine.count(False))


async def bare(url: str, calls: int, concurrency: int) -> float:
    """Seconds of as many requests by httpx alone."""
    slots = asyncio.Semaphore(concurrency)
    body = {"model": "m", "messages": [{"role": "user", "content": "Score (0 to 1) " + "x" * 1200}]}

    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:

        async def one() -> None:
            async with slots:
                (await client.post(f"{url}/chat/completions", json=body)).json()

        began = time.perf_counter()
        await asyncio.gather(*(one() for _ in range(calls)))
        return time.perf_counter() - began


def memory() -> float:
    """Megabytes of this process now."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


async def measure(args: argparse.Namespace, url: str, folder: Path) -> int:
    """Run and print one line for each round; memory must not grow from one to the next."""
    settings = Settings(
        _env_file=None, base_url=url, model="m", web="off", concurrency=args.concurrency, timeout=120,
        kb=folder / "kb",
    )  # fmt: skip
    own: dict[str, Any] = {"retriever": own_retriever}
    if args.retriever == "real":
        from crag.encoders.embeddings import embedded_embeddings
        from crag.knowledge.ingestion import ingest

        lines = (
            json.dumps({"id": str(n), "text": f"Code{n:04} is a code. " * 8}) for n in range(args.questions)
        )
        (folder / "kb.jsonl").write_text("\n".join(lines), "utf-8")
        assert ingest([folder / "kb.jsonl"], settings, embedded_embeddings()).ok
        own = {}
    await aask("What is Code0000?", settings=settings, graph=args.graph, **own)
    wrong = 0
    for n in range(1, args.rounds + 1):
        before, cpu = memory(), time.process_time()
        found = await ask_all(settings, args.questions, graph=args.graph, **own)
        grown, cpu = memory() - before, time.process_time() - cpu
        beside = await bare(url, found.calls, args.concurrency)
        ideal = found.calls / args.concurrency * LATENCY
        wrong += found.wrong
        sys.stdout.write(
            f"round {n}: {args.questions} questions, {found.wrong} lost or mixed up, {found.calls} calls, "
            f"{found.seconds:.2f} s = {found.seconds / ideal:.2f} x ideal ({ideal:.2f} s), bare httpx "
            f"{beside:.2f} s = {beside / ideal:.2f} x; {cpu:.2f} s of this process, {grown:+.0f} MB\n"
        )
    return 1 if wrong else 0


def main() -> int:
    """Measure, or serve."""
    parser = argparse.ArgumentParser("python -m tests.load")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--graph", default="crag")
    parser.add_argument("--retriever", choices=["own", "real"], default="own")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--profile", action="store_true", help="print where this process spent its time")
    args = parser.parse_args()
    if args.serve:
        asyncio.run(serve(0))
    os.environ["NO_PROXY"] = "127.0.0.1"
    with model() as url, tempfile.TemporaryDirectory() as folder:
        if not args.profile:
            return asyncio.run(measure(args, url, Path(folder)))
        import cProfile
        import pstats

        profile = cProfile.Profile()
        status = profile.runcall(asyncio.run, measure(args, url, Path(folder)))
        pstats.Stats(profile).sort_stats("tottime").print_stats(30)
        pstats.Stats(profile).sort_stats("cumtime").print_stats(70)
        return status


if __name__ == "__main__":
    sys.exit(main())
