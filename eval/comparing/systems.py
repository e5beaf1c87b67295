"""What is compared: a graph and the settings in which it differs from the others."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from crag.base.errors import SettingsError
from crag.base.redaction import masked
from crag.base.wording import meant
from crag.settings.endpoints import Role
from crag.settings.settings import GRAPHS, Settings

SHARED = (
    "kb",
    "collection",
    "threads",
    "web_snapshot",
    "embedding_model",
    "embedding_batch",
    "judge_model",
    "concurrency",
    "where",
    "filter",
)
"""Settings that all systems have in common, or the comparison would be of knowledge bases."""

_KEY = re.compile(r"(?<![\w-])(?:(?:sk|tvly|xai)-|(?:gsk|ghp|hf|lsv2_[a-z]+)_|AIza)[\w-]{8,}")
"""How the keys of common vendors look; the user's own are known to `masked`."""

_KEY_NAMED = "a key must not stand in a system's name; set it in the environment or .env (CRAG_…_API_KEY)"
_ROLES: dict[str, Role] = {"model": "generator", "grader_model": "grader", "checker_model": "checker"}
_CALIBRATED = {"upper", "lower", "aggregate"}


@dataclass(frozen=True)
class System:
    """One side of the comparison; `overrides` are the settings that only it has, as they were typed."""

    name: str
    graph: str
    overrides: dict[str, str] = field(default_factory=dict)


def parse_system(text: str) -> System:
    """`crag`, or `crag:aggregate=mean,k=8`. Raises SettingsError, with a near name for a misspelt one."""
    if _KEY.search(text):  # and it would stand in every file and on the screen
        raise SettingsError(_KEY_NAMED)
    graph, _, rest = text.strip().partition(":")
    graph = graph.strip()
    if graph not in GRAPHS:
        raise SettingsError(f"no system named {graph!r}{_near(graph, GRAPHS)}; there are {', '.join(GRAPHS)}")
    overrides: dict[str, str] = {}
    for part in rest.split(",") if rest.strip() else []:
        name, equals, value = (piece.strip() for piece in part.partition("="))
        name = name.lower().removeprefix("crag_").replace("-", "_")
        if not equals or not name or not value:
            raise SettingsError(
                f"system {text!r}: {part!r} is not SETTING=VALUE, as in {graph}:aggregate=mean"
            )
        _check(name, graph)
        if name in overrides:
            raise SettingsError(f"system {text!r} sets {name} twice")
        overrides[name] = value
    given = ",".join(f"{name}={value}" for name, value in overrides.items())
    return System(f"{graph}:{given}" if given else graph, graph, overrides)


def parse_systems(text: str) -> list[System]:
    """`fixed,crag:aggregate=mean,k=8`: the first is the baseline. Raises SettingsError."""
    texts: list[str] = []
    for part in text.split(","):
        # What assigns without naming a graph goes on with the settings of the system before.
        if texts and "=" in part and ":" not in part.partition("=")[0]:
            texts[-1] += f",{part}"
        elif part.strip():
            texts.append(part)
    systems = [parse_system(one) for one in texts]
    names = [system.name for system in systems]
    if not systems:
        raise SettingsError("no system to ask; give --systems fixed,crag")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SettingsError(f"the system {twice} is named twice")
    return systems


def with_settings(systems: list[System], common: Mapping[str, Any]) -> dict[str, Settings]:
    """The settings of each system by its name; systems without overrides of their own share one object.

    `common` are keyword arguments of Settings for all of them. Raises SettingsError.
    """
    made: dict[tuple[tuple[str, str], ...], Settings] = {}
    result = {}
    for system in systems:
        key = tuple(sorted(system.overrides.items()))
        try:
            made[key] = made.get(key) or Settings(**{**common, **system.overrides})
        except SettingsError as error:
            raise SettingsError(f"system {system.name}: {error}" if key else str(error)) from None
        if masked(system.name) != system.name:
            raise SettingsError(_KEY_NAMED)
        _refuse_idle(system, made[key])
        result[system.name] = made[key]
    _refuse_twins(systems, result)
    return result


def _refuse_idle(system: System, settings: Settings) -> None:
    """A model that nobody would call makes two systems of one."""
    for name in system.overrides.keys() & _ROLES.keys():
        if settings.endpoint(_ROLES[name]) is None:
            raise SettingsError(
                f"system {system.name}: no model is called without a server, so {name} would change nothing; "
                "set OPENAI_API_KEY or OPENAI_BASE_URL"
            )


def _refuse_twins(systems: list[System], settings: Mapping[str, Settings]) -> None:
    """What was typed may differ where what is meant does not: k=5 and k=05, or a default that is said."""
    for number, one in enumerate(systems):
        for other in systems[:number]:
            if one.graph == other.graph and _meant(settings[one.name]) == _meant(settings[other.name]):
                raise SettingsError(f"the systems {other.name} and {one.name} are the same; leave one out")


def _meant(settings: Settings) -> tuple[dict[str, Any], set[str]]:
    """All values, and those that beat a calibration because somebody set them."""
    return settings.model_dump(), _CALIBRATED & settings.model_fields_set if settings.calibrated else set()


def _check(name: str, graph: str) -> None:
    # What was typed is not said again: a key or a URL with a password may stand in it.
    fields = Settings.model_fields
    if name not in fields:
        raise SettingsError(
            f"system {graph}: no setting named {name!r}{_near(name, fields)}; .env.example lists them"
        )
    if name in SHARED or name.endswith("_url"):
        raise SettingsError(f"system {graph}: {name} is the same for all systems; set CRAG_{name.upper()}")
    if name.endswith("_key"):
        raise SettingsError(f"a key must not stand in a system's name; set CRAG_{name.upper()} instead")


def _near(name: str, known: Iterable[str]) -> str:
    hint = meant(name, known)
    return f"; {hint}" if hint else ""
