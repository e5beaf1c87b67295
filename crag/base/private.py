"""Files that hold what people asked and were answered, which only their owner may read."""

import os
from pathlib import Path


def make_private(path: Path) -> None:
    """Make an empty file with its folders, readable by its owner alone; one that is there stays as it is.

    Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
