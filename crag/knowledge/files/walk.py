"""Paths → the files to ingest, and a word on every one that is left out."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from crag.base.language import readable
from crag.knowledge.files.loaders import KINDS

SKIPPED_FOLDERS = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__"})
_LONGEST = 200  # characters of a path that is shown although no file can have it


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


def walk(paths: Iterable[Path | str], own: Path | None = None) -> Walk:
    """Every file below the given paths once, however it is reached.

    A file is cited by its path as given, or relative to the given folder. Hidden files, the folders of
    tools and `own`, the folder of the knowledge base itself, are passed over; a link that leads to what
    was seen already is followed no further.
    """
    result = Walk([], [], [])
    seen = {os.path.realpath(own)} if own else set()
    for given in paths:
        if not str(given).strip():
            # An unset variable in a shell, not the wish to read whatever the current folder holds.
            result.failed.append((str(given), "an empty path; name a file or folder, . for this one"))
            continue
        try:
            _walk(Path(given), result, seen)
        except (OSError, ValueError) as error:
            result.failed.append((_shortened(str(given)), _unopened(error)))
    return result


def absolute(given: Path | str) -> Path:
    """The absolute path, `~` read as shells do, links kept."""
    return Path(os.path.abspath(os.path.expanduser(given)))


def _walk(given: Path, result: Walk, seen: set[str]) -> None:
    root = absolute(given)
    mode = root.stat().st_mode if root.exists() else 0
    if stat.S_ISDIR(mode):
        _walk_folder(root, result, seen)
    elif stat.S_ISREG(mode):
        _add(Found(root, str(given), root), result, seen)
    elif mode or root.is_symlink():
        result.failed.append((str(given), "not a file or folder, or a link that leads nowhere"))
    else:
        result.failed.append((str(given), "no such file or folder"))


def _unopened(error: Exception) -> str:
    return f"cannot be opened: {getattr(error, 'strerror', None) or error}"


def _shortened(path: str) -> str:
    return path if len(path) <= _LONGEST else f"{path[:_LONGEST]}…"


def _walk_folder(root: Path, result: Walk, seen: set[str]) -> None:
    def unreadable(error: OSError) -> None:
        result.failed.append((readable(str(error.filename)), _unopened(error)))

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
            try:
                is_file = path.is_file()
            except OSError as error:
                result.failed.append((readable(source), _unopened(error)))
                continue
            if not is_file:
                result.failed.append((readable(source), "not a file, or a link that leads nowhere"))
            elif path.suffix.lower() in KINDS:
                _add(Found(path, source, root), result, seen)
            else:
                reason = f"unsupported type {readable(path.suffix) or 'without extension'}"
                result.skipped.append((readable(source), reason))


def _add(found: Found, result: Walk, seen: set[str]) -> None:
    real = os.path.realpath(found.path)
    try:
        str(found.path).encode()
    except UnicodeEncodeError:
        result.failed.append((readable(found.source), "its name is not valid UTF-8; rename it"))
        return
    if real not in seen:
        seen.add(real)
        result.files.append(found)
