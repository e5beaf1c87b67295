"""Corrective RAG as a LangGraph state machine.

`from crag import ask, aask, build_graph, check, Settings, Context, Answer` is the whole library; importing it
loads none of the heavy packages, they come with the first use of a name.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crag.base.answer import Answer
    from crag.base.interfaces import Check
    from crag.pipeline import aask, acheck, ask, build_graph, check
    from crag.settings.settings import Settings
    from crag.wiring.context import Context

    __version__: str

__all__ = [
    "Answer",
    "Check",
    "Context",
    "Settings",
    "__version__",
    "aask",
    "acheck",
    "ask",
    "build_graph",
    "check",
]

_HOME = {
    "Answer": "crag.base.answer",
    "Check": "crag.base.interfaces",
    "Context": "crag.wiring.context",
    "Settings": "crag.settings.settings",
    "acheck": "crag.pipeline",
    "check": "crag.pipeline",
    "aask": "crag.pipeline",
    "ask": "crag.pipeline",
    "build_graph": "crag.pipeline",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("crag")
    if name not in _HOME:
        raise AttributeError(f"module 'crag' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
