"""A loopback server that sends bytes as they are given, however slowly, and counts its connections."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Self

Script = Callable[[], AsyncIterator[bytes]]


def completion(text: str) -> bytes:
    """A whole response of a chat model."""
    message = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    body = json.dumps(
        {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [message]}
    )
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body.encode())}\r\n\r\n"
    )
    return (head + body).encode()


def drip(response: bytes, *, every: float) -> Script:
    """The response byte by byte, `every` so many seconds; nothing at all for a long time if it is empty."""

    async def send() -> AsyncIterator[bytes]:
        for byte in response:
            yield bytes([byte])
            await asyncio.sleep(every)
        await asyncio.sleep(every)

    return send


class RawServer:
    """Answers every request of a connection with the same bytes; cut-off ones end the connection."""

    def __init__(self, response: bytes | Script) -> None:
        self.accepted = 0
        self.requests = 0
        self._response = response
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(
            asyncio.start_server(self._serve, "127.0.0.1", 0), self._loop
        ).result()
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        tasks = [task for task in self._connections if not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(
                    (
                        int(line.split(b":")[1])
                        for line in head.split(b"\r\n")
                        if b"ontent-length" in line.lower()
                    ),
                    0,
                )
                await reader.readexactly(length)
                self.requests += 1
                if not isinstance(self._response, bytes):
                    async for piece in self._response():
                        writer.write(piece)
                        await writer.drain()
                    return
                writer.write(self._response)
                await writer.drain()
                body = self._response.partition(b"\r\n\r\n")[2]
                if f"Content-Length: {len(body)}".encode() not in self._response:
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
