"""What the docs and the import contracts say of the house is what stands there."""

import re
import runpy
import tomllib
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def test_the_drawings_are_those_of_the_compiled_graphs() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    drawn = runpy.run_path(str(DOCS / "draw.py"))["drawn"]
    assert page.count("<!-- graph: ") == 4
    assert "retrieve -.-> score;" in page
    assert drawn(page) == page


def modules(*folders: str) -> set[str]:
    files = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix() for path in files if path.name != "__init__.py"}


def test_every_module_has_a_layer() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    named = {name for layer in contracts[0]["layers"] for name in re.findall(r"[\w.]+", layer)}
    known = {path.removesuffix(".py").replace("/", ".") for path in modules("crag")}
    assert len(known) > 50
    # A package may stand for all it holds.
    assert {module for module in known if not {module, module.rpartition(".")[0]} & named} == set()


def test_every_module_has_one_room() -> None:
    table = (DOCS / "architecture.md").read_text(encoding="utf-8").split("## The rooms")[1]
    rooms = [room for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for room in in_full(row)]
    assert len(rooms) > 80
    places = {path: [r for r in rooms if fnmatch(path, r)] for path in modules("crag", "eval", "graphs")}
    assert {path: found for path, found in places.items() if len(found) != 1} == {}
    assert [room for room in rooms if not list(ROOT.glob(room))] == []


def in_full(row: str) -> list[str]:
    """The patterns of a row's files; a name without a folder stands in the folder named before it."""
    folder, rooms = "", []
    for name in re.findall(r"`([^`]+)`", row):
        folder = name[: name.rindex("/") + 1] if "/" in name else folder
        rooms.append(f"{folder}*" if name.endswith("/") else folder + name.rpartition("/")[2])
    return rooms
