"""What a setting may be: keys, addresses, folders, shares, seconds; each tidied and checked as it is read."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, SecretStr
from pydantic_settings import NoDecode

from crag.base.redaction import masked
from crag.settings.conditions import Conditions, conditions


def _clean_key(key: SecretStr) -> SecretStr | None:
    """Strip what editors and shells leave around a key: blanks, quotes, a carriage return."""
    text = key.get_secret_value().strip().strip("'\"").strip()
    if text.lower().startswith("bearer "):
        raise ValueError("the key begins with Bearer, which is added to it; set it to what follows")
    if any(ord(c) < 32 or ord(c) == 127 for c in text):
        raise ValueError("the key contains a control character; copy it again")
    if not text.isascii():
        raise ValueError("the key contains characters that no key has, such as Chinese ones; copy it again")
    return SecretStr(text) if text else None


Key = Annotated[SecretStr | None, AfterValidator(lambda key: key and _clean_key(key))]


def _url(url: str | None) -> str | None:
    """Refuse what is no http address, before anything is sent to it."""
    if url is None:
        return None
    try:
        parts = urlsplit(url.strip())
        complete = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        complete = complete and not any(char.isspace() for char in url.strip())
    except ValueError:
        complete = False
    if not complete:
        raise ValueError("not an http address; it should look like http://127.0.0.1:8000/v1")
    return url.strip()


def _model_url(url: str | None) -> str | None:
    """Refuse the address of one call, to which the name of the call would be added once more."""
    path = urlsplit(url).path.rstrip("/") if url else ""
    for call in ("/chat/completions", "/completions", "/responses", "/embeddings", "/models"):
        if path.endswith(call):
            raise ValueError(f"it ends in {call}, which is added to it; set it to what stands before that")
    return url


def _chroma_url(url: str | None) -> str | None:
    """Refuse what is no address of a server; its scheme may be missing."""
    if url is None:
        return None
    try:
        _url(url if "//" in url else f"http://{url.strip()}")
    except ValueError:
        raise ValueError("not the address of a server; it should look like http://127.0.0.1:8000") from None
    return url.strip()


# Python keeps what the run needs; JSON goes into logs and files.
_shown = PlainSerializer(masked, when_used="json-unless-none")
Url = Annotated[str | None, AfterValidator(_url), _shown]
ModelUrl = Annotated[str | None, AfterValidator(_url), AfterValidator(_model_url), _shown]
ChromaUrl = Annotated[str | None, AfterValidator(_chroma_url), _shown]


def _named(folder: object) -> object:
    """Refuse an empty name, which would be the current folder, and read `~` as shells do."""
    if isinstance(folder, str) and not folder.strip():
        raise ValueError("no folder is named; name one, or leave the setting out")
    with suppress(RuntimeError):  # of a user whom this machine does not know
        return Path(folder).expanduser() if isinstance(folder, (str, Path)) else folder
    return folder


Folder = Annotated[Path, BeforeValidator(_named)]
Where = Annotated[Conditions, NoDecode, BeforeValidator(conditions)]
Unit = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
