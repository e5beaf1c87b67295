"""The door to `crag.base.errors`."""

from crag.base.errors import *  # noqa: F403
