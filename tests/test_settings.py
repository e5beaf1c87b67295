"""What stands in `.env` and the environment, as editors, shells and copying leave it there."""

from pathlib import Path

import pytest

from crag.errors import SettingsError
from crag.settings import Settings


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
