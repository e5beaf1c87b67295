"""What the docs and the import contracts say of the house is what stands there."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def test_the_drawings_are_those_of_the_compiled_graphs() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    drawn = runpy.run_path(str(DOCS / "draw.py"))["drawn"]
    assert page.count("<!-- graph: ") == 4
    assert "retrieve -.-> score;" in page
    assert drawn(page) == page


def test_every_room_is_described_once_and_no_other() -> None:
    """A room is a package, or a module that stands by itself at the top of `crag`."""
    table = (DOCS / "architecture.md").read_text(encoding="utf-8").split("## The rooms")[1]
    rows = re.findall(r"^\| (`.*?) \|", table.split("\n## ")[0], re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    mapped = {ROOT / "crag" / name for name in ("graphs", "eval", "prompts")}
    inits = (path for top in ("crag", "graphs", "eval") for path in (ROOT / top).rglob("__init__.py"))
    packages = {init.parent for init in inits if not {init.parent, *init.parents} & mapped}
    rooms = {f"{path.relative_to(ROOT).as_posix()}/" for path in packages - {ROOT / "crag"}}
    alone = {path.relative_to(ROOT).as_posix() for path in (ROOT / "crag").glob("*.py")}
    assert sorted(named) == sorted(rooms | alone - {"crag/__init__.py"})


def test_no_hall_grows_too_wide() -> None:
    wide = {
        str(folder.relative_to(ROOT)): len(list(folder.glob("*.py")))
        for top in ("crag", "graphs", "eval", "tests")
        for folder in {path.parent for path in (ROOT / top).rglob("*.py")}
    }
    assert {folder: count for folder, count in wide.items() if count > 20} == {}
