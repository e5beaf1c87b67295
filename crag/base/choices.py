"""The choices that settings and answers name alike."""

from typing import Literal

Aggregate = Literal["max", "mean"]
"""How the scores of a question's documents become one."""

Origin = Literal["default", "env", "flag", "calibration"]
"""Who set a value."""
