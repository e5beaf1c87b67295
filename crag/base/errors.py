"""Everything that can go wrong, named once. Each message is one line: the cause, then the remedy."""

EXTRAS = "in a checkout run make setup and use .venv/bin/python, elsewhere pip install 'crag[eval]'"


class CragError(Exception):
    """Root of all errors that crag raises on purpose; `str(error)` is one line fit for a person."""


class SettingsError(CragError):
    """A setting or an argument is missing, malformed or contradicts another."""


class KnowledgeBaseError(CragError):
    """The knowledge base is missing, unreadable, busy or was built with other embeddings."""


class DocumentError(CragError):
    """One file could not be turned into text; other files are not affected."""


class ModelError(CragError):
    """A model server did not give a usable reply.

    `passing` tells that the same call may succeed a little later; `limited` that it was turned away unpaid by
    a rate limit, `wait` for how many seconds, where the server said so.
    """

    passing = False
    limited = False
    wait: float | None = None


class ContextTooLongError(ModelError):
    """The prompt did not fit into the model's window; a shorter one may."""


class InspectedError(ModelError):
    """A vendor's content inspection refused a text; others may pass."""


class CeilingError(ModelError):
    """A call that was not made, because the question had spent what it may."""


class WebSearchError(CragError):
    """A web search failed; the run goes on without it."""
