"""The model that an agent asks: what Route is told of it, for its prices and lists of models."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self
from urllib.parse import urlsplit

from toolgate._requests import RouteArguments
from toolgate.enums import PromptStrategy
from toolgate.rendering import RenderOptions

_OWN_HOSTS = ("api.anthropic.com", "api.openai.com", "openai.azure.com", "googleapis.com")
"""Hosts of the providers' own, and those below them."""
_MODEL_BYTES = 256


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model and its API, as far as a framework's model object tells them."""

    api: str = "openai_chat"
    """The API whose rules and prices hold: a `ToolFormat` in lower case."""
    model: str = ""
    """The model's name; "" for an unknown one."""
    base_url: str = ""
    """Where it is called; "" for the provider's own host, or if nothing says so."""
    context_window: int | None = None
    """Its context window in tokens; None for an unknown one."""
    system_tokens: int = 0
    """Tokens of the system prompt, about; 0 where there is none, or if nothing says so."""
    carries_native: bool = False
    """True if the framework's library sends tools amid a conversation to this model."""

    def told(self, route: RouteArguments) -> RouteArguments:
        """Returns the arguments of a `route` that says which model is asked.

        What the caller said for every turn stands. A host that is not a provider's own is told only
        where the caller chose a mode of deferral: behind a host that it does not know, the service
        would send all tools by default, which additions to messages do not need.
        """
        told: RouteArguments = {}
        if self.model:
            told["model"] = self.model.encode(errors="ignore")[:_MODEL_BYTES].decode(
                errors="ignore"
            )
        if self.base_url and (self._is_own_host or "deferral" in route):
            told["model_base_url"] = self.base_url
        if self.context_window:
            told["context_window"] = self.context_window
        if self.system_tokens:
            told["system_tokens"] = self.system_tokens
        return {**told, **route}

    def render(self, strategy: PromptStrategy | None, **options: Any) -> RenderOptions:
        """Returns how Route is to render a request to the model.

        "native" is left out where the framework's library can't send it, or the host may not take
        it.
        """
        carries = self.carries_native and (not self.base_url or self._is_own_host)
        without = strategy is not PromptStrategy.NATIVE and not carries
        return RenderOptions(self.api, strategy=strategy, without_native=without, **options)

    @property
    def _is_own_host(self) -> bool:
        try:
            host = urlsplit(self.base_url).hostname or ""
        except ValueError:
            return False
        return any(host == own or host.endswith(f".{own}") for own in _OWN_HOSTS)

    def asks_as(self, other: "Endpoint") -> bool:
        """Returns True if the same model is asked, whatever its system prompt."""
        return replace(self, system_tokens=0) == replace(other, system_tokens=0)

    def to_dict(self) -> dict[str, Any]:
        """Returns what to keep of it: a JSON object."""
        return asdict(self)

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> Self:
        """Reads what `to_dict` gave."""
        return cls(**{name: kept[name] for name in cls.__dataclass_fields__ if name in kept})
