"""The drawings in the docs are the graphs that run."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def test_the_drawings_are_those_of_the_compiled_graphs() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    drawn = runpy.run_path(str(DOCS / "draw.py"))["drawn"]
    assert page.count("<!-- graph: ") >= 2
    assert "retrieve --> " in page or "retrieve -.-> " in page or "retrieve -." in page
    assert drawn(page) == page
