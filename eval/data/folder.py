"""The folder a benchmark writes to, and how a run that was stopped goes on there."""

import argparse
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from crag.base.errors import SettingsError

from .journal import FILE

OUTPUTS = Path(".crag/benchmark")
WRITTEN = ("result.json", "rows.csv", "report.html")


def out_folder(args: argparse.Namespace) -> Path:
    """The folder that the flags name or mean. Raises SettingsError."""
    if args.out:
        return _free(Path(args.out), resume=args.resume)
    if args.resume:
        begun = sorted(path.parent for path in OUTPUTS.glob(f"*/{FILE}"))
        if not begun:
            raise SettingsError(f"nothing to resume in {OUTPUTS}; name the folder by --out DIR")
        return begun[-1]
    return OUTPUTS / datetime.now().strftime("%Y-%m-%d-%H%M%S")


def _free(out: Path, *, resume: bool) -> Path:
    """The folder, if nothing would be overwritten that this command did not write; raises SettingsError."""
    if not resume and not (out / FILE).exists():
        taken = [name for name in WRITTEN if (out / name).exists()]
        if taken:
            raise SettingsError(f"{out} holds a {taken[0]} of something else; give another --out")
    return out


def _command_line() -> list[str]:
    """How this run was called, without `--resume` and `--out`, to tell how to go on."""
    words, skip = [], False
    for word in sys.argv[1:]:
        if skip or word == "--resume" or word.startswith("--out="):
            skip = False
            continue
        if word == "--out":
            skip = True
            continue
        words.append(word)
    return words


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A name to write a file under, which takes the place of `path` when it is all there."""
    fresh = path.with_name(f".{path.name}.new")
    try:
        yield fresh
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def resume_command(out: Path) -> str:
    """The line that goes on with this run."""
    return shlex.join(
        ["python", "-m", "crag.eval.benchmark", *_command_line(), "--resume", "--out", str(out)]
    )
