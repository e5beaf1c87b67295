"""`crag mcp`: the answers as tools for agents, by the Model Context Protocol."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from crag.base.errors import SettingsError
from crag.cli.shell import Parser, attempt, finish

if TYPE_CHECKING:
    from langchain_core.documents import Document
    from mcp.server.mcpserver import MCPServer

    from crag.settings.settings import Settings

DESCRIPTION = """\
Offer the tools ask, search and sources to an agent, on standard input and output or, with --http, over HTTP
on this machine. CRAG_FILTER limits what any of them can find.
"""

EXAMPLES = """\
examples:
  crag mcp                          as the command of a server in an agent's configuration
  crag mcp --http 127.0.0.1:8765    http://127.0.0.1:8765/mcp
"""
ABOUT = "Answer a question from the user's own documents, with sources; says so where they do not answer."


def parser() -> argparse.ArgumentParser:
    """The command line, without importing anything heavy."""
    p = Parser("crag mcp", DESCRIPTION, EXAMPLES)
    p.add_argument("--http", metavar="HOST:PORT", help="over HTTP instead; loopback addresses only")
    p.add_argument("--kb", metavar="DIR", help="folder of the knowledge base (default .crag/kb)")
    p.add_argument("--description", default=ABOUT, metavar="TEXT", help="what an agent reads about ask")
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    return attempt(parser(), arguments, _run)


def _run(args: argparse.Namespace) -> int:
    from crag.serving.tenants import loopback
    from crag.settings.settings import Settings

    host, _, port = (args.http or "").rpartition(":")
    if args.http and not (port.isdigit() and loopback(host)):
        raise SettingsError(f"--http reads HOST:PORT with a host of this machine, not {args.http}")
    server = create_server(Settings(**({"kb": args.kb} if args.kb is not None else {})), args.description)
    if args.http:
        import uvicorn

        uvicorn.run(server.streamable_http_app(host=host), host=host, port=int(port), access_log=False)
    else:
        server.run()
    return 0


def create_server(settings: "Settings", description: str = ABOUT) -> "MCPServer[Any]":
    """The server with its tools, all of which only read."""
    from mcp.server.mcpserver import MCPServer
    from mcp.types import ToolAnnotations

    from crag import __version__
    from crag.base.state import asked
    from crag.pipeline import aask
    from crag.wiring.parts import Own
    from crag.wiring.services import build_services

    services = build_services(settings, Own())
    server: MCPServer[Any] = MCPServer("crag", version=__version__)
    reads = ToolAnnotations(read_only_hint=True, destructive_hint=False)

    @server.tool(description=description, annotations=reads)
    async def ask(question: str, graph: str = "crag") -> dict[str, Any]:
        answer = await aask(question, settings=settings, graph=graph)
        kept = {
            "answer",
            "answered",
            "verdict",
            "overall_score",
            "grounded",
            "sources",
            "path_text",
            "warnings",
        }
        return answer.model_dump(mode="json", include=kept)

    @server.tool(description="The passages nearest to a query, best first, unjudged.", annotations=reads)
    async def search(query: str, k: int = 4) -> dict[str, Any]:
        found = await services.retriever(asked(query), max(1, min(k, 20)))
        return {"passages": [{"id": one.id, "text": one.page_content, **_labels(one)} for one in found]}

    @server.tool(
        description="The documents that say something about a topic, nearest first.", annotations=reads
    )
    async def sources(topic: str) -> dict[str, Any]:
        found = await services.retriever(asked(topic), 50)
        return {"sources": list({label["source"]: label for label in map(_labels, found)}.values())}

    return server


def _labels(document: "Document") -> dict[str, str]:
    return {key: str(document.metadata.get(key) or "") for key in ("title", "source")}


if __name__ == "__main__":
    finish(main)
