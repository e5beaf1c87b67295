"""One step of a graph: its work under a meter and a ceiling, and what it is logged as."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from crag.base.metering import Meter, Spent, metered
from crag.base.state import asked
from crag.models.allowance import of_run, within
from crag.wiring.parts import Services

Update = dict[str, Any]
LOGS = ("path", "spent", "warnings")


def step(
    name: str,
    work: Callable[[Any, Services], Awaitable[Update]],
    services: Services,
    *,
    first: bool = False,
) -> Any:
    """A node for `add_node`: `work` under a meter of its own.

    A `first` step starts the logs afresh, unless the route was before it. It raises SettingsError where no
    question was asked: a graph that is run by Studio or embedded in another has nobody before it who would.
    """

    async def run(state: Any, runtime: Runtime[None]) -> Update:
        began = time.perf_counter()
        if first:
            asked(state.get("question"))
        begins = first and not state.get("routed")
        ceiling = services.ceiling
        allowed = of_run(runtime.control, ceiling, first=begins) if ceiling else None
        with metered() as spending, within(allowed):
            update = await work(state, services)
        update["spent"] = [_spent(name, spending, began)]
        update["warnings"] = spending.warnings
        update.setdefault("path", [])
        if allowed and allowed.reached and not allowed.told:
            allowed.told = True
            update["path"] = [f"ceiling({allowed.reached})", *update["path"]]
        if begins:
            update.update({log: Overwrite(update[log]) for log in LOGS})
        return update

    return run


def _spent(name: str, spending: Meter, began: float) -> Spent:
    return Spent(
        node=name,
        llm_calls=spending.llm_calls,
        input_tokens=spending.input_tokens,
        output_tokens=spending.output_tokens,
        embedding_calls=spending.embedding_calls,
        web_calls=spending.web_calls,
        cost_usd=spending.cost_usd,
        retries=spending.retries,
        cached_calls=spending.cached_calls,
        began=began,
        ended=time.perf_counter(),
    )
