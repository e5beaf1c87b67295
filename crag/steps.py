"""What a question is doing: the steps of its graph, told as they begin and as they end."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langgraph.constants import START


@dataclass(frozen=True)
class Step:
    """A step that ended, with its entry of the path, such as "score(correct, 0.82)"."""

    name: str
    text: str


class Steps(BaseCallbackHandler):
    """A callback of LangChain's that tells each step's name as it begins and the Step as it ends."""

    run_inline = True

    def __init__(
        self, *, began: Callable[[str], object] | None = None, ended: Callable[[Step], object] | None = None
    ) -> None:
        self._began, self._ended = began, ended
        self._running: dict[UUID, str] = {}

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **more: Any) -> None:
        """Take note of a node that begins."""
        node = (more.get("metadata") or {}).get("langgraph_node")
        if node and more.get("name") == node and node != START:
            self._running[run_id] = node
            if self._began:
                self._began(node)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **more: Any) -> None:
        """Tell of a node that ended, if it is a step of the path."""
        node = self._running.pop(run_id, None)
        path = outputs.get("path") if isinstance(outputs, dict) else None
        if node and path and self._ended:
            self._ended(Step(node, str(path[-1])))

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **more: Any) -> None:
        """Forget a node that failed."""
        self._running.pop(run_id, None)
