"""Paths → the files to ingest, and a word on every one that is left out."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from crag.knowledge.loaders import KINDS

SKIPPED_FOLDERS = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__"})


class Found(NamedTuple):
    """A file: where it is (absolute, links kept), what it is cited as, and the path it was reached by."""

    path: Path
    source: str
    root: Path


class Walk(NamedTuple):
    """What the paths hold: files in a stable order, files and folders left out with the reason."""

    files: list[Found]
    skipped: list[tuple[str, str]]
    failed: list[tuple[str, str]]


def walk(paths: Iterable[Path]) -> Walk:
    """Every file below the given paths once, however it is reached.

    A file is cited by its path as given, or relative to the given folder. Hidden files and the folders
    of tools are passed over; a link that leads to what was seen already is followed no further.
    """
    result = Walk([], [], [])
    seen: set[str] = set()
    for given in paths:
        root = Path(os.path.abspath(given.expanduser()))
        if root.is_dir():
            _walk_folder(root, result, seen)
        elif root.is_file():
            _add(Found(root, str(given), root), result, seen)
        elif root.is_symlink() or root.exists():
            result.failed.append((str(given), "not a file or folder, or a link that leads nowhere"))
        else:
            result.failed.append((str(given), "no such file or folder"))
    return result


def _walk_folder(root: Path, result: Walk, seen: set[str]) -> None:
    def unreadable(error: OSError) -> None:
        result.failed.append((str(error.filename), f"cannot be opened: {error.strerror}"))

    for folder, names, files in os.walk(root, followlinks=True, onerror=unreadable):
        real = os.path.realpath(folder)
        if real in seen:
            names.clear()
            continue
        seen.add(real)
        names[:] = sorted(name for name in names if not name.startswith(".") and name not in SKIPPED_FOLDERS)
        for name in sorted(files):
            path = Path(folder, name)
            source = path.relative_to(root).as_posix()
            if name.startswith((".", "~$")):
                continue
            if not path.is_file():
                result.failed.append((source, "not a file, or a link that leads nowhere"))
            elif path.suffix.lower() in KINDS:
                _add(Found(path, source, root), result, seen)
            else:
                result.skipped.append((source, f"unsupported type {path.suffix or 'without extension'}"))


def _add(found: Found, result: Walk, seen: set[str]) -> None:
    real = os.path.realpath(found.path)
    try:
        str(found.path).encode()
    except UnicodeEncodeError:
        name = found.source.encode(errors="replace").decode()
        result.failed.append((name, "its name is not valid UTF-8; rename it"))
        return
    if real not in seen:
        seen.add(real)
        result.files.append(found)
