import subprocess
import sys
import time
from importlib.metadata import version

import pytest

import crag
from crag import __main__ as command
from crag.cli import shell


@pytest.fixture(autouse=True)
def _called_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "_called", False)


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        command.main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"crag {version('crag')}\n"
    assert crag.__version__ == version("crag")


def test_help_names_every_command_and_loads_nothing_heavy() -> None:
    code = (
        "import sys; from crag.__main__ import main\n"
        "assert main([]) == 0\n"
        "print([m for m in ('pydantic', 'langchain_core', 'numpy', 'shtab') if m in sys.modules])"
    )
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert time.perf_counter() - began < 10
    assert done.stdout.endswith("[]\n")
    assert all(f"  {name} " in done.stdout for name in command.COMMANDS)


@pytest.mark.parametrize("name", list(command.COMMANDS))
def test_every_command_helps_under_the_name_it_was_called_by(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        command.main([name, "--help"])
    assert end.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: crag {name}")
    assert "python -m crag" not in shown


def test_an_unknown_command_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        command.main(["akse"])
    assert end.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("name", command.SHELLS)
def test_completion_knows_commands_and_flags(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["completion", name]) == 0
    script = capsys.readouterr().out
    assert "benchmark" in script
    assert "on-ungrounded" in script
