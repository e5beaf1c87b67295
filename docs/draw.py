"""Draws the compiled graphs into docs/architecture.md: `python docs/draw.py`. A test compares the two."""

import re
from pathlib import Path

PAGE = Path(__file__).parent / "architecture.md"
BLOCK = re.compile(r"(<!-- graph: (\w+) -->\n```mermaid\n).*?(```\n)", re.DOTALL)


def drawn(page: str) -> str:
    """`page` with each marked block drawn anew from the graph it names."""
    from crag import Settings, build_graph

    def draw(block: re.Match[str]) -> str:
        graph = build_graph(block[2], Settings(_env_file=None)).get_graph()
        return block[1] + graph.draw_mermaid() + block[3]

    return BLOCK.sub(draw, page)


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
