"""What stands in `.env` and the environment, as editors, shells and copying leave it there."""

from pathlib import Path
from typing import Any

import pytest

from crag.base.errors import SettingsError
from crag.settings.settings import Settings


def key(text: str, tmp_path: Path) -> str | None:
    file = tmp_path / ".env"
    file.write_bytes(text.encode())
    found = Settings(_env_file=file).openai_api_key
    return found.get_secret_value() if found else None


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffOPENAI_API_KEY=sk-one\nCRAG_K=3\n",
        "\ufeffOPENAI_API_KEY=sk-one\r\nCRAG_K=3\r\n",
        "OPENAI_API_KEY='sk-one'\r\n",
        'OPENAI_API_KEY="sk-one"',
        "OPENAI_API_KEY = sk-one  \n",
        'OPENAI_API_KEY="sk-one\\r"',
    ],
)
def test_a_key_is_read_without_what_editors_leave_around_it(text: str, tmp_path: Path) -> None:
    """F47."""
    assert key(text, tmp_path) == "sk-one"


@pytest.mark.parametrize("value", ["sk-one\r", "'sk-one'", ' "sk-one" ', "sk-one\n"])
def test_a_key_of_the_environment_is_cleaned_too(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """F47."""
    monkeypatch.setenv("OPENAI_API_KEY", value)
    found = Settings(_env_file=None).openai_api_key
    assert found
    assert found.get_secret_value() == "sk-one"


def test_a_key_with_a_control_character_inside_is_named_and_not_shown() -> None:
    """F47."""
    with pytest.raises(SettingsError) as caught:
        Settings(_env_file=None, openai_api_key="sk-TEST\x1bSECRET")
    assert str(caught.value) == "OPENAI_API_KEY: the key contains a control character; copy it again"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"k": "abc"}, "CRAG_K: must be a whole number, not 'abc'"),
        ({"k": 0}, "CRAG_K: must be at least 1, not '0'"),
        ({"upper": "nan"}, "CRAG_UPPER: must be a finite number, not 'nan'"),
        ({"upper": "high"}, "CRAG_UPPER: must be a number, not 'high'"),
        ({"timeout": 0}, "CRAG_TIMEOUT: must be more than 0, not '0'"),
        ({"check": "perhaps"}, "CRAG_CHECK: must be true or false, not 'perhaps'"),
        ({"aggregate": "min"}, "CRAG_AGGREGATE: must be 'max' or 'mean', not 'min'"),
        ({"collection": "a b"}, "CRAG_COLLECTION: must be 3 to 512 letters"),
    ],
)
def test_a_value_that_does_not_fit_is_told_in_plain_words(given: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings(_env_file=None, **given)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("agregate", "agregate is not a setting; did you mean aggregate?"),
        ("CRAG_K", "CRAG_K is not a setting"),
        ("quux", "quux is not a setting"),
    ],
)
def test_a_keyword_that_is_no_setting_is_refused(name: str, said: str) -> None:
    with pytest.raises(SettingsError) as told:
        Settings(_env_file=None, **{name: 1})
    assert str(told.value) == said


def test_a_keyword_may_be_the_name_of_a_variable_that_has_one_of_its_own() -> None:
    found = Settings(_env_file=None, OPENAI_BASE_URL="http://127.0.0.1:9/v1", CRAG_MODEL_API_KEY="sk-one")  # type: ignore[call-arg]
    assert found.openai_base_url == "http://127.0.0.1:9/v1"
    assert found.api_key is not None


def test_an_empty_name_is_not_the_current_folder_and_a_tilde_is_home(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError) as told:
        Settings(_env_file=None, kb=" ")
    assert str(told.value) == "CRAG_KB: no folder is named; name one, or leave the setting out"
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.setenv("CRAG_KB", "~/kb")
    assert Settings(_env_file=None).kb == Path("/home/ann/kb")


def unread(text: str, tmp_path: Path) -> list[str]:
    file = tmp_path / ".env"
    file.write_bytes(text.encode())
    return [line.partition("line ")[2] for line in Settings(_env_file=file).unread]


def test_a_misspelt_vendor_s_name_or_one_that_begins_unseen_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "TAVILY_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert unread("OPENAI_KEY=a\nTAVILY_APIKEY=b\n\u200bCRAG_K=3\n", tmp_path) == [
        "1: OPENAI_KEY is not a setting; did you mean OPENAI_API_KEY?",
        "2: TAVILY_APIKEY is not a setting; did you mean TAVILY_API_KEY?",
        "3: this is not NAME=value; it is ignored",
    ]
    assert unread("OPENAI_ORG_ID=a\nOPENAI_API_VERSION=b\nOPENAI_ADMIN_KEY=c\n", tmp_path) == []


def test_the_older_name_of_the_server_is_not_overlooked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what is meant for a server of one's own would be sent to OpenAI."""
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted")
    endpoint = Settings(_env_file=None).endpoint("generator")
    assert endpoint
    assert endpoint.base_url == "http://127.0.0.1:9/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:10/v1")
    endpoint = Settings(_env_file=None).endpoint("generator")
    assert endpoint
    assert endpoint.base_url == "http://127.0.0.1:10/v1"


def test_blanks_around_values_and_blank_values_are_nobody_s_wish(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRAG_EVALUATOR", " embedded ")
    monkeypatch.setenv("CRAG_MODEL", "  ")
    monkeypatch.setenv("CRAG_K", " ")
    settings = Settings(_env_file=None, collection=" ")
    assert (settings.evaluator, settings.model, settings.k, settings.kb) == (
        "embedded",
        None,
        4,
        Path(".crag/kb"),
    )


@pytest.mark.parametrize("empty", ["", " ", "tenant="])
def test_an_empty_filter_is_refused_and_not_left_out(empty: str) -> None:
    with pytest.raises(SettingsError, match="CRAG_FILTER"):
        Settings(_env_file=None, filter=empty)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("CRAG_MODEL", "a\nb\x1b[31m", "CRAG_MODEL contains a control character"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:9/\x07v1", "OPENAI_BASE_URL contains a control character"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1 x", "OPENAI_BASE_URL: not an http address"),
        ("CRAG_TIMEOUT", "1e308", "CRAG_TIMEOUT: must be at most 86400"),
    ],
)
def test_a_value_that_no_request_can_carry_is_one_line(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=said):
        Settings(_env_file=None)


def test_a_settings_file_that_may_not_be_read_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / ".env"
    file.write_text("CRAG_K=3", "utf-8")

    def refused(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr("dotenv.main.DotEnv._get_stream", refused)
    with pytest.raises(SettingsError, match=r"\.env cannot be read \(Permission denied\)"):
        Settings(_env_file=file)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"openai_base_url": "http://127.0.0.1:8000/v1/chat/completions?key=SECRET"},
         "OPENAI_BASE_URL: it ends in /chat/completions, which is added to it; "
         "set it to what stands before that"),
        ({"embedding_base_url": "http://127.0.0.1:8000/v1/embeddings/"},
         "CRAG_EMBEDDING_BASE_URL: it ends in /embeddings, which is added to it; "
         "set it to what stands before that"),
        ({"openai_api_key": "Bearer sk-SECRET"},
         "OPENAI_API_KEY: the key begins with Bearer, which is added to it; set it to what follows"),
    ],
)  # fmt: skip
def test_what_is_added_to_addresses_and_keys_is_not_given_twice(values: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings(_env_file=None, **values)
    assert str(refused.value) == said


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://exa mple", "http://", "ftp://host", "http://h:99999", "h:0", "//"]
)
def test_the_address_of_a_chroma_server_is_checked_at_the_start(url: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Settings(_env_file=None, chroma_url=url)
    assert str(refused.value) == (
        "CRAG_CHROMA_URL: not the address of a server; it should look like http://127.0.0.1:8000"
    )
    assert Settings(_env_file=None, chroma_url=" localhost:8000 ").chroma_url == "localhost:8000"
