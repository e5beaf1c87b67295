"""Everything that can be set, from flags, the environment and `.env`, checked before anything runs."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self, Unpack

from pydantic import (
    AliasChoices,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from crag.base.choices import Aggregate, Evaluator, OnUngrounded, Origin, Web
from crag.base.errors import SettingsError
from crag.base.redaction import masked, remember, secrets_of
from crag.settings.calibration import Calibration, load_calibration
from crag.settings.complaints import (
    all_variables,
    first_complaint,
    keywords,
    no_setting,
    quiet_parser,
    unread,
    variable,
    variables,
)
from crag.settings.endpoints import Endpoint, Names, Role
from crag.settings.given import Given
from crag.settings.kinds import ChromaUrl, Folder, Key, ModelUrl, Seconds, Unit, Url, Where

GRAPHS = ("crag", "batched", "agentic", "fixed")
DEFAULT_MODEL = "gpt-4o-mini"
ENV_FILE = ".env"
OFF = "off"


def _names(*names: str) -> AliasChoices:
    return AliasChoices(*names)


class Settings(BaseSettings):
    """What a run needs to know. Keyword arguments beat the environment, which beats `.env`.

    Raises SettingsError, one line naming the setting and the remedy.
    """

    model_config = SettingsConfigDict(
        env_prefix="CRAG_",
        env_file=ENV_FILE,
        env_file_encoding="utf-8-sig",
        env_ignore_empty=True,
        extra="ignore",
        populate_by_name=True,
        protected_namespaces=(),
    )

    # Models: one server for all of them, or one for each role.
    openai_api_key: Key = Field(None, validation_alias=_names("OPENAI_API_KEY"))
    openai_base_url: ModelUrl = Field(None, validation_alias=_names("OPENAI_BASE_URL", "OPENAI_API_BASE"))
    model: str | None = None
    base_url: ModelUrl = Field(None, validation_alias=_names("CRAG_BASE_URL", "CRAG_MODEL_BASE_URL"))
    api_key: Key = Field(None, validation_alias=_names("CRAG_API_KEY", "CRAG_MODEL_API_KEY"))
    grader_model: str | None = None
    grader_base_url: ModelUrl = Field(
        None, validation_alias=_names("CRAG_GRADER_BASE_URL", "CRAG_GRADER_MODEL_BASE_URL")
    )
    grader_api_key: Key = Field(
        None, validation_alias=_names("CRAG_GRADER_API_KEY", "CRAG_GRADER_MODEL_API_KEY")
    )
    checker_model: str | None = None
    checker_base_url: ModelUrl = Field(
        None, validation_alias=_names("CRAG_CHECKER_BASE_URL", "CRAG_CHECKER_MODEL_BASE_URL")
    )
    checker_api_key: Key = Field(
        None, validation_alias=_names("CRAG_CHECKER_API_KEY", "CRAG_CHECKER_MODEL_API_KEY")
    )
    judge_model: str | None = None
    judge_base_url: ModelUrl = Field(
        None, validation_alias=_names("CRAG_JUDGE_BASE_URL", "CRAG_JUDGE_MODEL_BASE_URL")
    )
    judge_api_key: Key = Field(
        None, validation_alias=_names("CRAG_JUDGE_API_KEY", "CRAG_JUDGE_MODEL_API_KEY")
    )
    embedding_model: str | None = None
    embedding_base_url: ModelUrl = Field(
        None, validation_alias=_names("CRAG_EMBEDDING_BASE_URL", "CRAG_EMBEDDING_MODEL_BASE_URL")
    )
    embedding_api_key: Key = Field(
        None, validation_alias=_names("CRAG_EMBEDDING_API_KEY", "CRAG_EMBEDDING_MODEL_API_KEY")
    )
    embedding_batch: int | None = Field(None, ge=1)
    temperature: float | None = Field(0.0, ge=0, le=2, allow_inf_nan=False)
    timeout: Seconds = 60.0
    retries: int = Field(2, ge=0, le=10)
    concurrency: int = Field(8, ge=1)
    price_input: float | None = Field(None, ge=0, allow_inf_nan=False)
    price_output: float | None = Field(None, ge=0, allow_inf_nan=False)
    cache: Path | None = None
    max_llm_calls: int | None = Field(None, ge=0)
    max_cost_usd: float | None = Field(None, ge=0, allow_inf_nan=False)

    # Judging.
    evaluator: Evaluator = "auto"
    upper: Unit = 0.7
    lower: Unit = 0.3
    aggregate: Aggregate = "max"
    calibration: Path | None = None
    check: bool | None = None
    on_ungrounded: OnUngrounded = "report"
    route: bool = False

    # Knowledge base.
    kb: Folder = Path(".crag/kb")
    chroma_url: ChromaUrl = None
    filter: Where = ()
    where: Where = ()
    collection: str = Field("crag", pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]$")
    threads: Path = Path(".crag/threads.sqlite")
    k: int = Field(4, ge=1, le=100)
    context_tokens: int = Field(6000, ge=200)

    # Serving.
    serve_key: Key = None

    # The web.
    web: Web = "auto"
    web_results: int = Field(3, ge=1, le=20)
    web_timeout: Seconds = 20.0
    tavily_api_key: Key = Field(None, validation_alias=_names("TAVILY_API_KEY", "CRAG_TAVILY_API_KEY"))
    tavily_url: Url = None
    searxng_url: Url = None
    web_snapshot: Path | None = None

    _origins: set[str] = PrivateAttr(default_factory=set)
    _unread: list[str] = PrivateAttr(default_factory=list)
    _calibrated: Calibration | None = PrivateAttr(None)

    def __init__(self, **values: Unpack[Given]) -> None:
        for name in values:
            # Unknown variables of the environment may be anybody's, unknown keywords are mistakes; those
            # with an underscore are pydantic's own.
            if not name.startswith("_") and name not in keywords(Settings.model_fields):
                raise SettingsError(no_setting(name, Settings.model_fields.keys()))
        try:
            with quiet_parser():
                super().__init__(**values)
        except ValidationError as error:
            raise SettingsError(first_complaint(error, Settings.model_fields)) from None
        except UnicodeDecodeError:
            raise SettingsError(f"{ENV_FILE} is not UTF-8 text; save it as UTF-8") from None
        except OSError as error:
            raise SettingsError(f"{ENV_FILE} cannot be read ({error.strerror}); change its rights") from None
        self._origins = set(values)
        remember(secrets_of(dict(self)))
        file = values.get("_env_file", ENV_FILE)
        self._unread = unread(
            all_variables(Settings.model_fields), Path(file) if isinstance(file, (str, Path)) else None
        )
        if self.calibration is not None and str(self.calibration) != OFF:
            self._calibrated = load_calibration(self.calibration)

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Blanks around values are nobody's wish, and nothing but blanks is nothing, as with variables.

        Not so for conditions, as an empty one must not show everything, and for the knowledge base.
        """
        values = {}
        for name, value in given.items():
            text = value.strip() if isinstance(value, str) else value
            checked = isinstance(text, str) and "key" not in name.lower()  # keys are checked by themselves
            if checked and any(ord(char) < 32 or ord(char) == 127 for char in text):
                raise ValueError(
                    f"{variables(name, cls.model_fields)[0]} contains a control character; type it anew"
                )
            if text != "" or name in {"filter", "where", "kb"}:
                values[name] = text
        return values

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.lower < self.upper:
            raise ValueError(f"CRAG_LOWER ({self.lower}) must be below CRAG_UPPER ({self.upper})")
        for web, needed, name in (
            ("tavily", self.tavily_api_key, "TAVILY_API_KEY"),
            ("searxng", self.searxng_url, "CRAG_SEARXNG_URL"),
            ("snapshot", self.web_snapshot, "CRAG_WEB_SNAPSHOT"),
        ):
            if self.web == web and not needed:
                raise ValueError(f"CRAG_WEB={web} needs {name}; set it, or CRAG_WEB=off")
        if self.max_cost_usd is not None and None in (self.price_input, self.price_output):
            raise ValueError(
                "CRAG_MAX_COST_USD needs CRAG_PRICE_INPUT and CRAG_PRICE_OUTPUT, dollars per million tokens"
            )
        if self.evaluator == "llm" and self.endpoint("grader") is None:
            raise ValueError(
                "CRAG_EVALUATOR=llm needs a model; set OPENAI_API_KEY, or CRAG_EVALUATOR=embedded"
            )
        return self

    def endpoint(self, role: Role) -> Endpoint | None:
        """The server and model for a role, or None when the role runs embedded.

        A role without settings of its own uses the generator's. Embeddings stay embedded until
        CRAG_EMBEDDING_MODEL names a model, so that a key that appears later does not outdate the
        knowledge base.
        """
        if role == "embedding" and self.embedding_model is None:
            return None
        model, model_name = self._first(role, "model")
        base_url, url_name = self._first(role, "base_url")
        api_key, key_name = self._first(role, "api_key")
        if base_url is None and api_key is None and role != "embedding":
            return None
        return Endpoint(model or DEFAULT_MODEL, base_url, api_key, Names(model_name, url_name, key_name))

    def _first(self, role: Role, what: str) -> tuple[Any, str]:
        """The value that a role uses and the variable it came from, or None and the one to set."""
        shared = [] if role == "embedding" else [what]
        common = [] if what == "model" else [f"openai_{what}"]
        fields = [*([] if role == "generator" else [f"{role}_{what}"]), *shared, *common]
        for field in fields:
            if (value := getattr(self, field)) is not None:
                return value, variable(field, Settings.model_fields)
        return None, variable(fields[-1], Settings.model_fields)

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            yield name, masked(value) if isinstance(value, str) else value

    @property
    def unread(self) -> list[str]:
        """One line for each CRAG_ name that is no setting, and for each line of `.env` that says nothing."""
        return list(self._unread)

    @property
    def calibrated(self) -> Calibration | None:
        """What stands in the file that `calibration` names, as it was when these settings were made."""
        return self._calibrated

    @property
    def thresholds_source(self) -> Origin:
        """Where upper, lower and aggregate were set: the strongest origin that set any of them."""
        names = {"upper", "lower", "aggregate"}
        if names & self._origins:
            return "flag"
        return "env" if names & self.model_fields_set else "default"
