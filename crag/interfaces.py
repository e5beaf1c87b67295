"""The door to `crag.base.interfaces`."""

from crag.base.interfaces import *  # noqa: F403
