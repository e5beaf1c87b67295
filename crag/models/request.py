"""One request to a model, asked as earlier ones have shown that the model behind its server must be."""

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from crag.base.http import OPENAI_URL, host_of
from crag.base.metering import meter
from crag.models.errors import refused_parameter
from crag.models.vendors import NO_THINKING, body_for
from crag.replies.thinking import begins_in_thought

if TYPE_CHECKING:  # a second of imports that a run without a model does not need
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import BaseMessage

NOSTREAM = "nostream"
"""LangGraph's tag for model calls that stream_mode="messages" leaves out."""

THOUGHTS = "crag_thoughts"
"""The name in a streamed call's metadata under which a `Thoughts` says how careful a stream must be."""

Thoughts = Literal["apart", "mixed", "unknown"]
"""Whether a model's thoughts come with tags or not at all, or are known to come without an opening tag."""

_thoughts: dict[tuple[str, str], Thoughts] = {}
_refused: defaultdict[tuple[str, str, bool], set[str]] = defaultdict(set)
"""Optional parameters that a server's model does not take, by host, model and whether it streams."""


@dataclass(frozen=True)
class Request:
    """How the model `name` at `host` is asked; `compatible` is any server but OpenAI's own."""

    host: str
    name: str
    stream: bool
    temperature: float | None
    compatible: bool

    async def send(
        self, model: "BaseChatModel", messages: "list[BaseMessage]", cap: int | None
    ) -> "BaseMessage":
        """The reply, of at most `cap` tokens; parameters that are refused are left out from then on."""
        config: Any = {"metadata": {THOUGHTS: self._caution()}} if self.stream else {"tags": [NOSTREAM]}
        refused = _refused[self.host, self.name, self.stream]
        while True:
            # Calls side by side learn of a refusal together.
            without = frozenset(refused)
            try:
                return await model.ainvoke(messages, config, **self._options(without, cap))
            except Exception as error:
                parameter = refused_parameter(error)
                if parameter is None or parameter in without:
                    raise
                refused.add(parameter)

    def _options(self, refused: frozenset[str], cap: int | None) -> dict[str, Any]:
        options: dict[str, Any] = {}
        body = body_for(self.host, self.name, stream=self.stream)
        if "enable_thinking" in refused:
            body |= NO_THINKING
        if self.temperature is not None and "temperature" not in refused:
            options["temperature"] = self.temperature
        if self.stream and "stream" in refused:
            options["stream"] = False
        elif self.stream and "stream_options" in refused:
            options["stream_usage"] = False
        if cap and "max_tokens" in refused:
            body["max_completion_tokens"] = cap
        elif cap and self.compatible:
            # The client renames it for OpenAI, whose name for it other servers do not know.
            body["max_tokens"] = cap
        elif cap:
            options["max_tokens"] = cap
        return options | ({"extra_body": body} if body else {})

    def _caution(self) -> Thoughts:
        known = _thoughts.get((self.host, self.name), "unknown")
        return "apart" if self.host == host_of(OPENAI_URL) else known

    def learn(self, reply: str) -> None:
        """Remember whether a reply held thoughts without an opening tag, which a stream cannot tell apart."""
        if begins_in_thought(reply):
            _thoughts[self.host, self.name] = "mixed"
            if self.stream:
                meter().warn(
                    f"{self.name} sends its thoughts without an opening tag, so its answers cannot be shown "
                    "while they are written; switch on the server's reasoning parser"
                )
        elif self.stream:
            # Only what streams proves it: a grader may be asked without thinking.
            _thoughts.setdefault((self.host, self.name), "apart")
