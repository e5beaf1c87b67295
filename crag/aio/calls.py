"""Calls that hold nobody up: blocking work in threads of its own, callers' parts in time."""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import Any, NamedTuple, TypeVar

from crag.aio.loops import Slots
from crag.base.errors import SettingsError
from crag.base.language import readable
from crag.base.wording import kind_of

T = TypeVar("T")


def within(seconds: float, work: Callable[[], T]) -> T:
    """What `work` returns. Raises what it raises, as `aside` does, and TimeoutError when it is late."""
    return _started(work).result(seconds)


async def aside(work: Callable[[], T]) -> T:
    """What `work` returns, while the loop goes on; who stops waiting leaves the thread to itself.

    Raises what `work` raises, but RuntimeError in place of what would end the loop or which no future holds:
    an exit, an interrupt, StopIteration.
    """
    return await asyncio.wrap_future(_started(work))


def _started(work: Callable[[], T]) -> Future[T]:
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # from now on nobody who stops waiting can cancel it

    def run() -> None:
        try:
            done.set_result(work())
        except StopIteration as error:
            done.set_exception(RuntimeError(repr(error)))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the caller's
            done.set_exception(error)
        except BaseException as error:  # noqa: BLE001 - an exit or an interrupt ends just this call
            done.set_exception(RuntimeError(repr(error)))

    Thread(target=copy_context().run, args=(run,), name="crag-aside", daemon=True).start()
    return done


class Limits(NamedTuple):
    """Seconds that one call may take, the setting that says so, and how many threads run at once."""

    seconds: float
    setting: str
    at_once: int


_slots = Slots()


async def called(function: Callable[..., Any], *arguments: Any, limits: Limits) -> Any:
    """The result of a function, awaited when it is async and run in a thread when it is not.

    Raises what the function raises; RuntimeError in place of what would end the event loop or the task
    (an exit, an interrupt in a thread, a cancellation by nobody), and for no result in time.
    """
    if inspect.iscoroutinefunction(function):
        return await _in_time(function(*arguments), limits)
    async with await _slots.of(limits.at_once):
        # One that never ends must hold up neither later calls nor the exit.
        result = await _in_time(aside(partial(function, *arguments)), limits)
    return await _in_time(result, limits) if inspect.isawaitable(result) else result


async def _in_time(result: Any, limits: Limits) -> Any:
    timer = asyncio.timeout(limits.seconds)
    try:
        async with timer:
            return await result
    except TimeoutError as error:
        if not timer.expired():
            raise
        late = f"no result within {limits.seconds:g} s ({limits.setting})"
        raise RuntimeError(late) from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("it was cancelled") from error
    except SystemExit as error:
        raise RuntimeError(f"SystemExit({error})") from error


def storable(value: Any) -> Any:
    """Metadata as JSON and threads can hold it: readable text, plain numbers, lists and dicts of these."""
    match value:
        case None | bool():
            return value
        case str():
            return readable(value)
        case int():
            return int(value) if -(2**63) <= value < 2**63 else str(value)
        case float():
            return float(value)
        case Mapping():
            return {readable(str(key)): storable(one) for key, one in value.items()}
        case list() | tuple() | set() | frozenset():
            return [storable(one) for one in value]
    number = value.item() if hasattr(value, "item") and not getattr(value, "shape", ()) else None
    return number if isinstance(number, (bool, int, float)) else readable(str(value))


def told(error: BaseException) -> str:
    """An error of somebody else's code on one line, of a length to be read."""
    return readable(repr(error))[:300]


def needs(part: Any, name: str, method: str, what: str) -> None:
    """Raise SettingsError unless a part that was brought has a method."""
    if not hasattr(part, method) or isinstance(part, type):
        raise SettingsError(f"{name} must be {what}, not {kind_of(part)}")
