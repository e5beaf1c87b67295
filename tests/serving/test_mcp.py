import json
from pathlib import Path

from mcp import Client

from crag.serving.mcp import create_server
from crag.settings.settings import Settings


async def test_an_agent_asks_searches_and_looks_for_sources(sample_kb: Path) -> None:
    server = create_server(Settings(_env_file=None, kb=sample_kb, web="off"), "What the handbook says.")
    async with Client(server) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        answer = await client.call_tool("ask", {"question": "What is corrective RAG?"})
        found = await client.call_tool("search", {"query": "chunk size", "k": 2})
        sources = await client.call_tool("sources", {"topic": "chunk size"})
    assert sorted(tools) == ["ask", "search", "sources"]
    assert tools["ask"].description == "What the handbook says."
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
    assert json.loads(answer.content[0].text)["answered"]  # type: ignore[union-attr]
    assert len((found.structured_content or {})["passages"]) == 2
    names = [source["source"] for source in (sources.structured_content or {})["sources"]]
    assert len(names) == len(set(names)) > 1
