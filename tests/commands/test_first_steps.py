"""What somebody meets who has only just fetched the project: example settings, a Python without packages."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import AliasChoices, SecretStr

from crag.settings.settings import Settings

ROOT = Path(__file__).parents[2]
EXAMPLE = re.compile(r"# ([A-Z][A-Z0-9_]+)=([^#]*?)(?:\s+#.*)?")


def example() -> dict[str, str]:
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    return {found[1]: found[2] for line in lines if (found := EXAMPLE.fullmatch(line))}


def variable(field: str) -> str:
    alias = Settings.model_fields[field].validation_alias
    return str(alias.choices[0]) if isinstance(alias, AliasChoices) else f"CRAG_{field.upper()}"


@pytest.mark.parametrize("field", Settings.model_fields)
def test_the_example_of_settings_holds_every_setting(field: str) -> None:
    assert variable(field) in example()


def test_the_example_of_settings_shows_the_defaults_and_can_be_used_as_it_stands(tmp_path: Path) -> None:
    shown = example()
    file = tmp_path / ".env"
    file.write_text("\n".join(f"{name}={value}" for name, value in shown.items()), encoding="utf-8")
    read = Settings(_env_file=file, calibration="off")
    bare = Settings(_env_file=None)
    differing = {
        variable(field)
        for field, given in read
        if given != getattr(bare, field) and not isinstance(given, SecretStr)
    }
    # These are off by default: what is shown is what they look like.
    assert differing == {
        "CRAG_CACHE",
        "CRAG_CALIBRATION",
        "CRAG_CHROMA_URL",
        "CRAG_EMBEDDING_BATCH",
        "CRAG_FILTER",
        "CRAG_MAX_COST_USD",
        "CRAG_MAX_LLM_CALLS",
        "CRAG_MODEL",
        "CRAG_PRICE_INPUT",
        "CRAG_PRICE_OUTPUT",
        "CRAG_SEARXNG_URL",
        "CRAG_WEB_SNAPSHOT",
        "CRAG_WHERE",
        "OPENAI_BASE_URL",
    }
    assert read.unread == []


@pytest.mark.parametrize("command", ["crag.run", "crag.ingest", "crag.doctor"])
def test_a_python_without_the_packages_is_told_in_one_line(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-S", "-m", command, *(["data/kb"] if command != "crag.doctor" else [])],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        r"crag: this Python lacks the package \w+; in a checkout run make setup and use \.venv/bin/python, "
        r"elsewhere pip install 'crag\[eval\]'\n",
        done.stderr,
    )


def test_routes_without_a_question_set_is_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "eval/routes.py", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr == f"crag: {tmp_path}/questions.jsonl cannot be read: No such file or directory\n"


PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "data" / "README.md"])
LINK = re.compile(r"\]\((?!https?://)([^()#\s]*)(?:#([^()\s]*))?\)")


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for name, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name} links to {name}"
        assert not anchor or anchor in anchors(target), f"{page.name} links to {name}#{anchor}"


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_a_readme_opens_with_the_question_and_the_checks_alone(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    commands = text.split("```bash\n")[1].split("```")[0].splitlines()
    assert [re.sub(r'"[^"]*"', '"…"', command.split("#")[0].strip()) for command in commands] == [
        'make ask Q="…"',
        "make test",
    ]
