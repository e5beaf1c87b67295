"""`python -m crag.doctor`: what works and what does not, one part at a time, with the remedy."""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crag.base.errors import CragError
from crag.cli.shell import Parser, attempt, finish

if TYPE_CHECKING:
    from crag.settings.endpoints import Endpoint, Role
    from crag.settings.settings import Settings

DESCRIPTION = """\
Test the knowledge base, the embedded models, each model server and the web search, each for itself, and say
of what fails whether the URL, the model, the key, a proxy or a certificate is to blame. The output holds no
key, so that it can be pasted into a report. Each different model server gets one request of a few tokens, a
chosen web search one query; with no configuration nothing leaves this machine.
"""

EXAMPLES = """\
examples:
  python -m crag.doctor             a line for each part
  python -m crag.doctor --json      the same for programs

exit status:
  0 all that is configured works; 1 something does not; 2 wrong usage or configuration; 130 interrupted
"""

_PACKAGES = ("chromadb", "langgraph", "langchain-core", "langchain-openai", "openai", "onnxruntime")


class Check(NamedTuple):
    """One part: `state` is ok, failed or off; `wrong` names the culprit where it is known."""

    part: str
    state: str
    detail: str
    wrong: str | None = None
    remedy: str | None = None


def parser() -> argparse.ArgumentParser:
    """The command line, without importing anything heavy."""
    p = Parser("python -m crag.doctor", DESCRIPTION, EXAMPLES)
    p.add_argument("--kb", metavar="DIR", help="folder of the knowledge base (default .crag/kb)")
    p.add_argument("--json", action="store_true", help="one JSON object on standard output")
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    return attempt(parser(), arguments, _run)


def _run(args: argparse.Namespace) -> int:
    from crag.cli import view
    from crag.settings.settings import Settings

    settings = Settings(**({"kb": args.kb} if args.kb is not None else {}))
    checks = []
    for check in examine(settings):
        checks.append(check)
        if not args.json:
            view.write_answer(_line(check))
    failed = any(check.state == "failed" for check in checks)
    if args.json:
        report = {"ok": not failed, "checks": [check._asdict() for check in checks], **about(settings)}
        view.write_json(json.dumps(report, ensure_ascii=False, indent=2))
    else:
        for title, facts in about(settings).items():
            view.write_answer(f"\n{title}: " + ", ".join(f"{name} {fact}" for name, fact in facts.items()))
    return 1 if failed else 0


def _line(check: Check) -> str:
    blame = f" [{check.wrong}]" if check.wrong else ""
    remedy = f"; {check.remedy}" if check.remedy else ""
    return f"{check.state:6}  {check.part}: {check.detail}{blame}{remedy}"


def examine(settings: "Settings") -> Iterator[Check]:
    """Every part in turn."""
    for line in settings.unread:
        yield Check("settings", "failed", line, "setting", "correct or remove it")
    yield _tried("knowledge base", lambda: _knowledge_base(settings))
    yield _tried("embedded models", _embedded)
    yield from _models(settings)
    yield _web(settings)


def _tried(part: str, work: Callable[[], str]) -> Check:
    try:
        return Check(part, "ok", work())
    except CragError as error:
        return Check(part, "failed", _home(str(error)))


def _home(text: str) -> str:
    """The text without the name of who sits at this machine."""
    return text.replace(str(Path.home()), "~")


def _knowledge_base(settings: "Settings") -> str:
    from crag.knowledge.filtering import clause
    from crag.knowledge.passages import settings_embeddings
    from crag.knowledge.store.errors import place
    from crag.knowledge.store.schema import model_id
    from crag.knowledge.store.store import KnowledgeBase

    embeddings = settings_embeddings(settings)
    kb = KnowledgeBase(settings, embeddings)
    filtered = f", {len(kb.ids(clause(settings.filter)))} meet CRAG_FILTER" if settings.filter else ""
    return f"{kb.count()} passages{filtered} at {_home(place(settings))}, embeddings {model_id(embeddings)}"


def _embedded() -> str:
    from crag.encoders.embeddings import embedded_embeddings

    embeddings = embedded_embeddings()
    return f"{embeddings.model_id}, {len(embeddings.embed_query('ok'))} dimensions"


def _models(settings: "Settings") -> Iterator[Check]:
    """One check for each different server or model, whatever roles share it."""
    roles: dict[Endpoint, list[Role]] = {}
    chats: tuple[Role, ...] = ("generator", "grader", "checker", "judge")
    for role in chats:
        endpoint = settings.endpoint(role)
        if endpoint and not (role == "grader" and settings.evaluator == "embedded"):
            roles.setdefault(endpoint, []).append(role)
    if not roles:
        yield Check("chat models", "off", "none configured; answers quote the documents")
    for endpoint, shared in roles.items():
        yield _model(settings, endpoint, shared)
    embedding = settings.endpoint("embedding")
    if embedding is None:
        yield Check("embeddings", "off", "no server configured; they are made on this machine")
    else:
        yield _model(settings, embedding, ["embedding"])


def _model(settings: "Settings", endpoint: "Endpoint", roles: "list[Role]") -> Check:
    from crag.base.http import host_of
    from crag.cli.probes import Probe

    probe = Probe(roles[0], endpoint, settings.timeout)
    found = probe.run()
    state = "failed" if found.wrong else "ok"
    detail = f"{endpoint.model} at {host_of(probe.base_url)}: {found.detail}"
    return Check(", ".join(roles), state, detail, found.wrong, found.remedy)


def _web(settings: "Settings") -> Check:
    import asyncio

    from crag.web import web_search

    search = web_search(settings)
    if search is None:
        return Check("web search", "off", "none configured; set CRAG_WEB to have one")
    name = "tavily" if settings.web == "auto" else settings.web
    return _tried(
        "web search",
        lambda: f"{name}: {len(asyncio.run(search('corrective RAG', 1)))} result(s) for a test query",
    )


def about(settings: "Settings") -> dict[str, dict[str, Any]]:
    """What a report needs beside the checks: settings that were made, keys only as set, and versions."""
    import platform
    import sqlite3
    from importlib.metadata import PackageNotFoundError, version

    def packages() -> Iterator[tuple[str, str]]:
        for name in _PACKAGES:
            try:
                yield name, version(name)
            except PackageNotFoundError:
                yield name, "missing"

    made = {name: _shown(name, getattr(settings, name)) for name in sorted(settings.model_fields_set)}
    keys = [name for name in type(settings).model_fields if name.endswith("api_key")]
    python = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    return {
        "settings": made | {name: "set" if getattr(settings, name) else "not set" for name in keys},
        "versions": {**python, "system": platform.platform(), **dict(packages())},
    }


def _shown(name: str, value: Any) -> str:
    from crag.base.http import host_of
    from crag.settings.conditions import shown

    if name in {"filter", "where"}:
        return shown(value)
    return _home(host_of(str(value)) if name.endswith("url") else str(value))


if __name__ == "__main__":
    finish(main)
