"""Questions as they are typed or piped in."""

from crag.base.errors import DocumentError, SettingsError


def decoded(data: bytes, where: str) -> str:
    """The text in whatever encoding the shell writes, which is not always UTF-8. Raises SettingsError."""
    from crag.knowledge.files.decoding import decode

    try:
        return decode(data).text if data.strip() else ""
    except DocumentError as error:
        raise SettingsError(f"the question {where}: {error}") from None
