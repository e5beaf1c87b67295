"""ragas behind a door: loaded at the first score, in a thread, because it takes seconds to import."""

from functools import cache
from typing import TYPE_CHECKING

from crag.base.errors import EXTRAS, SettingsError

if TYPE_CHECKING:
    from .engine import Engine


@cache
def engine() -> "Engine":
    """ragas's own metrics. The first call imports it; raises SettingsError where it is not installed."""
    try:
        from .engine import Engine
    except ImportError as error:
        raise SettingsError(f"evaluation needs the extra eval ({error}); {EXTRAS}") from None
    return Engine()
