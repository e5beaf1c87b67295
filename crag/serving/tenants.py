"""Who may ask, and what each may see: the keys of CRAG_SERVE_KEY with the filter that each carries."""

import hashlib
import hmac
from dataclasses import dataclass
from ipaddress import ip_address

from crag.base.errors import SettingsError
from crag.settings.conditions import conditions
from crag.settings.settings import Settings


@dataclass(frozen=True)
class Tenant:
    """One key's view: its filter stands in `settings`, where no request can widen it."""

    name: str
    settings: Settings

    def thread(self, name: str | None) -> str | None:
        """The name under which a conversation of this tenant is kept; no other key can read it."""
        return f"{self.name} {name}" if name and self.name else name


class Tenants:
    """The tenants by key; without keys there is one, whom everybody is."""

    def __init__(self, settings: Settings) -> None:
        """Read CRAG_SERVE_KEY. Raises SettingsError for a key that is empty or a filter that is none."""
        secret = settings.serve_key.get_secret_value() if settings.serve_key else ""
        self._open = None if secret else Tenant("", settings)
        self._by_key = [_tenant(item.strip(), settings) for item in secret.split(",")] if secret else []

    @property
    def keyed(self) -> bool:
        """Whether a key is asked for."""
        return self._open is None

    def of(self, authorization: str) -> Tenant | None:
        """The tenant of an Authorization header, or None for one that may not ask."""
        if self._open:
            return self._open
        scheme, _, key = authorization.partition(" ")
        given = key.strip().encode() if scheme.lower() == "bearer" else b""
        found = None
        for known, tenant in self._by_key:  # all of them, so that the time tells nothing
            if hmac.compare_digest(known, given):
                found = tenant
        return found


def loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _tenant(item: str, settings: Settings) -> tuple[bytes, Tenant]:
    key, colon, given = item.partition(":")
    if not key or (colon and not given):
        raise SettingsError(
            "CRAG_SERVE_KEY reads key or key:filter, several separated by commas; one is empty"
        )
    if colon:
        try:
            own = conditions(given.split("&"))
        except ValueError as error:
            raise SettingsError(f"CRAG_SERVE_KEY: {error}") from None
        settings = settings.model_copy(update={"filter": settings.filter + own})
    return key.encode(), Tenant(hashlib.sha256(key.encode()).hexdigest()[:12], settings)
