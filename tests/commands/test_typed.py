"""A program that uses the library under a type checker, and the check of answers by itself. F111."""

import subprocess
import sys
from pathlib import Path

import pytest

from crag import Settings, check
from crag.base.errors import SettingsError

PROGRAM = """
from crag import Answer, Context, Settings, aask, ask, build_graph, check

settings = Settings(k=3, kb="kb", web="off", openai_api_key="sk")
answer: Answer = ask("What?", settings=settings, graph="crag", thread="t", where={{"lang": "zh"}})
graph = build_graph("crag", settings)
found = check("What?", answer.answer, ["A text."])
numbers = Context(k=2)
{line}
"""


@pytest.mark.timeout(240)
def test_every_misspelling_is_caught(tmp_path: Path) -> None:
    wrong = [
        'ask("What?", seting=settings)',
        'ask("What?", treshold=0.5)',
        'build_graph("crag", settings, retreiver=None)',
        "Settings(kk=3)",
        'Settings(k="three")',
        'check("What?", "A.", document=["A text."])',
        "answer.sorces",
    ]
    (tmp_path / "right.py").write_text(PROGRAM.format(line=""), "utf-8")
    for n, line in enumerate(wrong):
        (tmp_path / f"wrong{n}.py").write_text(PROGRAM.format(line=line), "utf-8")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--cache-dir",
            str(tmp_path / "cache"),
            *map(str, sorted(tmp_path.glob("*.py"))),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    caught = {line.split(":")[0] for line in done.stdout.splitlines() if ": error:" in line}
    assert caught == {f"wrong{n}.py" for n in range(len(wrong))}, done.stdout + done.stderr


def test_answers_of_other_programs_are_checked() -> None:
    settings = Settings(_env_file=None, web="off")
    documents = ["The library closes at 18:00 on Sundays. It opened in 1997."]
    true = check(
        "When does it close?", "The library closes at 18:00 on Sundays [1].", documents, settings=settings
    )
    false = check(
        "When does it close?", "The library closes at 22:00 on Sundays [1].", documents, settings=settings
    )
    assert (true.grounded, false.grounded) == (True, False)
    assert false.reason


@pytest.mark.parametrize(
    ("answer", "documents"), [("", ["A text."]), ("A.", []), ("A.", "A text."), ("A.", [5])]
)
def test_what_cannot_be_checked_is_one_line(answer: str, documents: list[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        check("What?", answer, documents, settings=Settings(_env_file=None))
    assert "\n" not in str(caught.value)
