"""`python -m tests.fault_map`: the faults that users of such systems report, and the tests that hold each.

A test holds a fault when its docstring begins, or that of its file ends, with the number. Exit status 1 when
one has none.
"""

import ast
import re
import sys
from pathlib import Path

FAULTS = {
    1: "digits of a reply joined to another number",
    2: "a score behind a label, or no score at all",
    5: "fractions, and several numbers in one reply",
    7: "thoughts in the reply",
    10: "NaN and infinity as scores or settings",
    11: "one unread score moves or zeroes others",
    12: "thinking uses up the tokens of the answer",
    13: "a verdict that real replies never reach",
    16: "thresholds that cannot separate",
    17: "questions longer than a search takes",
    18: "refusals of the search service look alike",
    23: "private questions leave the machine",
    24: "the rewritten query replaces the question",
    26: "Chinese sentences cut at the wrong place",
    27: "web pages overflow the context",
    28: "servers cut prompts silently",
    32: "citations of sources that do not exist",
    33: "answers in another language than the question",
    35: "answers from the model's memory",
    37: "another embedding model than at ingestion",
    38: "texts that come twice",
    39: "passages of files that changed or went",
    40: "metadata that the store refuses",
    41: "inserts larger than the store takes",
    42: "embedding servers with small batches",
    43: "embedding servers that want text",
    45: "PDFs without text",
    46: "encodings guessed wrong",
    47: "byte-order marks and carriage returns",
    48: "files dropped in silence",
    49: "two processes on one store",
    50: "a wrong path that becomes an empty store",
    51: "downloads and telemetry",
    53: "terminals that lack a character",
    55: "a key asked for where none is needed",
    56: "response formats that servers refuse",
    57: "parameters that models refuse",
    59: "wrong URL, model, proxy or certificate",
    61: "installations that break at import",
    62: "loops that end without an answer",
    63: "parallel steps writing one key",
    64: "graphs that the Studio server cannot load",
    65: "blocking calls in the event loop",
    67: "streams that say things twice",
    68: "tracing without a valid key",
    69: "unscored rows in a mean",
    70: "slow judges and runs that start over",
    71: "judges that write no clean JSON",
    72: "a default vendor nobody chose",
    73: "data sets in other columns, contexts not used",
    74: "honest refusals punished",
    75: "differences within the noise",
    79: "documents graded one after another",
    80: "rate limits and retries upon retries",
    81: "costs that surprise",
    82: "orders in documents and pages",
    85: "keys in outputs",
    87: "codes and names that vectors miss",
    89: "facts beside Chinese characters that are never looked up",
    92: "models that think where the reply is not streamed",
    93: "texts that a vendor's inspection refuses",
    95: "waits that stand in words",
    96: "calls of tools in the text of a reply",
    113: "records that ruin a store for good",
    114: "two files' records under one id",
    115: "conditions that end the process",
    116: "a record's own score and reason",
    125: "paths unquoted in commands for pasting",
}
_CODES = re.compile(r"(?:F\d+(?:, | and )?)+")


def tests_of_faults(folder: Path) -> dict[int, list[str]]:
    """The tests of each number, as `file::test`."""
    found: dict[int, list[str]] = {number: [] for number in FAULTS}
    for path in sorted(folder.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        of_file = _codes(tree)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for number in {*of_file, *_codes(node)} & FAULTS.keys():
                    found[number].append(f"{path.name}::{node.name}")
    return found


def _codes(node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) -> list[int]:
    words = re.split(r"(?<=[.:])\s", ast.get_docstring(node) or "")
    lists = [word.rstrip(".:") for word in words[-1 if isinstance(node, ast.Module) else 0 :][:1]]
    return [int(n) for text in lists if _CODES.fullmatch(text) for n in re.findall(r"\d+", text)]


def main() -> int:
    """Print the map."""
    found = tests_of_faults(Path(__file__).parent)
    for number, title in FAULTS.items():
        names = found[number]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        sys.stdout.write(f"F{number:<3} {title:48} {', '.join(names[:3]) or 'NO TEST'}{more}\n")
    missing = [number for number, names in found.items() if not names]
    sys.stdout.write(f"{len(FAULTS)} faults, {len(missing)} without a test: {missing}\n")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
