"""The keywords of Settings by name and type, so that editors and type checkers know them.

To a type checker, pydantic-settings takes any keyword. A test holds these names against the fields.
"""

from pathlib import Path
from typing import Any, TypedDict

from pydantic import SecretStr

from crag.base.choices import Aggregate, Evaluator, OnUngrounded, Web


class Given(TypedDict, total=False):
    """What `Settings(…)` takes; values are checked and tidied as those of the environment are."""

    openai_api_key: str | SecretStr | None
    openai_base_url: str | None
    model: str | None
    base_url: str | None
    api_key: str | SecretStr | None
    grader_model: str | None
    grader_base_url: str | None
    grader_api_key: str | SecretStr | None
    checker_model: str | None
    checker_base_url: str | None
    checker_api_key: str | SecretStr | None
    judge_model: str | None
    judge_base_url: str | None
    judge_api_key: str | SecretStr | None
    embedding_model: str | None
    embedding_base_url: str | None
    embedding_api_key: str | SecretStr | None
    embedding_batch: int | None
    temperature: float | None
    timeout: float
    retries: int
    concurrency: int
    price_input: float | None
    price_output: float | None
    cache: str | Path | None
    max_llm_calls: int | None
    max_cost_usd: float | None
    evaluator: Evaluator
    upper: float
    lower: float
    aggregate: Aggregate
    calibration: str | Path | None
    check: bool | None
    on_ungrounded: OnUngrounded
    route: bool
    kb: str | Path
    chroma_url: str | None
    filter: Any
    where: Any
    collection: str
    threads: str | Path
    k: int
    context_tokens: int
    serve_key: str | SecretStr | None
    web: Web
    web_results: int
    web_timeout: float
    tavily_api_key: str | SecretStr | None
    tavily_url: str | None
    searxng_url: str | None
    web_snapshot: str | Path | None
    _env_file: str | Path | None
