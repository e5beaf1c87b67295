"""Which model behind which server plays a role, and the variables that say so."""

from typing import Literal, NamedTuple

from pydantic import SecretStr

from crag.base.redaction import masked

Role = Literal["generator", "grader", "checker", "judge", "embedding"]


class Names(NamedTuple):
    """The environment variables that a model, its server and its key came from, or would come from."""

    model: str
    base_url: str
    api_key: str

    @classmethod
    def of(cls, role: Role) -> "Names":
        """Those that a role alone reads."""
        if role == "generator":
            return cls("CRAG_MODEL", "OPENAI_BASE_URL", "OPENAI_API_KEY")
        return cls(*(f"CRAG_{role.upper()}_{what}" for what in ("MODEL", "BASE_URL", "API_KEY")))


class Endpoint(NamedTuple):
    """One model behind one OpenAI-compatible server; `base_url` None is OpenAI's own."""

    model: str
    base_url: str | None
    api_key: SecretStr | None
    names: Names | None = None

    def __repr__(self) -> str:
        return masked(f"Endpoint({self.model!r}, {self.base_url!r}, {self.api_key!r})")
