"""The services and graphs of the settings last used: opening a knowledge base is paid for once a process."""

from dataclasses import fields
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import cast

from langgraph.types import Checkpointer

from crag.base.errors import SettingsError
from crag.base.state import Graph
from crag.base.wording import kind_of
from crag.settings.settings import GRAPHS, Settings
from crag.wiring.context import Bound
from crag.wiring.parts import Own, Services
from crag.wiring.services import build_services


def checked_settings(given: object) -> Settings:
    """The settings that a caller gave, those of the environment for None. Raises SettingsError."""
    if given is None:
        return Settings()
    if not isinstance(given, Settings):
        raise SettingsError(f"settings must be Settings(…), not {kind_of(given)}")
    return given


def compiled(name: str, services: Services, checkpointer: Checkpointer = None) -> Graph:
    """The graph `name` made of these services. Raises SettingsError when there is none of that name."""
    return cast("Graph", _module(name).build(services, checkpointer))


def bound(name: str, services: Services) -> Bound:
    """The services as the graph `name` uses them: some have thresholds, k or parts of their own."""
    own_numbers = getattr(_module(name), "tuned", None)
    return Bound(services, own_numbers) if own_numbers else Bound(services)


def _module(name: str) -> ModuleType:
    if name not in GRAPHS:
        raise SettingsError(f"no graph named {name!r}; there are {', '.join(GRAPHS)}")
    # By name: type checkers cannot follow a package whose folder stands elsewhere.
    return import_module(f"crag.graphs.{name}")


class Recent:
    """Services and the graphs made of them, for as long as they are among the last few used."""

    def __init__(self, settings: Settings, own: Own) -> None:
        self._settings = settings
        self._own = own
        self.services = build_services(settings, own)
        self._graphs: dict[str, Graph] = {}

    def serves(self, settings: Settings, own: Own) -> bool:
        """Whether it was built from these; parts of a caller's own count only as the same object."""
        parts = (field.name for field in fields(Own))
        same = all(getattr(own, name) is getattr(self._own, name) for name in parts)
        return same and (settings is self._settings or settings == self._settings)

    def graph(self, name: str) -> Graph:
        """The compiled graph `name`. Raises SettingsError when there is none of that name."""
        if name not in self._graphs:
            self._graphs[name] = compiled(name, self.services)
        return self._graphs[name]


_recent: list[Recent] = []
_lock = Lock()


def recent(settings: Settings, own: Own) -> Recent:
    """The services of these settings and parts, if they are among the last few, else new ones."""
    with _lock:
        for known in _recent:
            if known.serves(settings, own):
                return known
        fresh = Recent(settings, own)
        _recent[:] = [fresh, *_recent[:3]]
        return fresh
