"""Corrective RAG as a LangGraph state machine.

`from crag import ask, aask, build_graph, Settings, Answer` is the whole library; importing it loads none of
the heavy packages, they come with the first use of a name.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crag.base.answer import Answer
    from crag.pipeline import aask, ask, build_graph
    from crag.settings.settings import Settings

    __version__: str

__all__ = ["Answer", "Settings", "__version__", "aask", "ask", "build_graph"]

_HOME = {
    "Answer": "crag.base.answer",
    "Settings": "crag.settings.settings",
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
