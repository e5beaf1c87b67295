"""The choices that settings and answers name alike."""

from typing import Literal

Aggregate = Literal["max", "mean"]
"""How the scores of a question's documents become one."""

Origin = Literal["default", "env", "flag", "calibration"]
"""Who set a value."""

Evaluator = Literal["auto", "llm", "embedded"]
"""Who judges relevance; auto is a model where one is set."""

Web = Literal["auto", "tavily", "duckduckgo", "searxng", "snapshot", "off"]
"""What is searched as the web; auto is Tavily where its key is set."""

OnUngrounded = Literal["report", "retry"]
"""What follows where a check finds an answer not grounded."""
