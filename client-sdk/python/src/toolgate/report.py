"""Costs of a conversation beside its alternatives, from Route's accounting."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolgate.enums import ContextWarning

SAID = {
    ContextWarning.LOW_UTILISATION: "tools and system prompt are most of the request",
    ContextWarning.WINDOW_NEARLY_FULL: "70% of the context window or more is full",
}
"""Warnings in words."""


@dataclass(frozen=True, slots=True)
class Price:
    """Prices of all prompts of a conversation, in tokens of input that no cache holds.

    By the provider's rules for what is read from its cache and written to it; the system prompt and
    the answers are left out. The cache holds what a request has in common with the beginning of the
    one before: definition by definition, then message by message. Tokens of single messages are
    shared out by their bytes.
    """

    sent: float
    """Tokens that were sent."""
    all_tools: float
    """The same conversation with the definitions of all tools in each request."""
    routed_anew: float
    """The same conversation with the active set of each request in `tools`, where a change of it
    costs the cached conversation. Tools of earlier turns are not among them."""


@dataclass(frozen=True, slots=True)
class Report:
    """Costs of a conversation so far. Tokens are cl100k_base tokens, counted by the service."""

    requests: int = 0
    """Requests to the model that were routed."""
    searches: int = 0
    """Searches of the model's."""
    shown_tokens: int = 0
    """Definitions in the requests, by Route's `accounting`: those of tools in `tools` and amid the
    messages, the search with what it lists, and the envelope. The agent's own tools are not among
    them."""
    all_tools_tokens: int = 0
    """Definitions of all tools of the catalog, in as many requests."""
    price: Price | None = None
    """None where the provider's rules are not known: of models behind Chat Completions that are
    none of OpenAI's, and while nothing says which model is asked."""
    unpriced: str = ""
    """The reason that there is no price; "" where there is one, and before the first request."""
    strategies: Mapping[str, int] = field(default_factory=dict)
    """Requests by strategy, in lower case."""
    warnings: tuple[ContextWarning, ...] = ()
    """Warnings of the service, each once."""
    rho: float | None = None
    """Effective context utilisation of the last request, with the tokens that the conversation
    really has (`TokenAccounting.conversation_rho`), from 0 to 1. None where Route was told no
    messages."""
    highest_rho: float | None = None
    """The highest of all requests."""

    @property
    def saved_tokens(self) -> int:
        """Definitions that were not sent; negative where sending all of them would be shorter."""
        return self.all_tools_tokens - self.shown_tokens

    @property
    def is_window_nearly_full(self) -> bool:
        """True once a request filled 70% of the model's context window, of which Route warns."""
        return ContextWarning.WINDOW_NEARLY_FULL in self.warnings

    def __str__(self) -> str:
        said = (
            f"{self.requests} requests: {self.shown_tokens:,} tokens of tools shown, "
            f"{self.saved_tokens:,} saved; {self.searches} searches"
        )
        if self.rho is not None:
            said += f"; rho {self.rho:.2f}, at most {self.highest_rho:.2f}"
        if self.price is not None:
            price = self.price
            said += (
                f"; price {price.sent:,.0f} tokens of uncached input, "
                f"{price.all_tools:,.0f} with all tools, {price.routed_anew:,.0f} routed anew"
            )
        elif self.unpriced:
            said += f"; no price, since {self.unpriced}"
        return "; ".join([said, *(SAID.get(one, one.lower()) for one in self.warnings)])
