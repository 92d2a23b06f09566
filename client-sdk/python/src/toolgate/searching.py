"""Answers of SearchTools, as frozen values."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from toolgate._gen.v1 import router_pb2
from toolgate.enums import DegradedReason, SearchForm, from_wire
from toolgate.rendering import Rendered, rendered_from_proto, tools_of
from toolgate.routing import ActiveTool, Refusal


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The tools found. Iterating over it gives them."""

    tools: tuple[ActiveTool, ...]
    """Best first; for `select:` in the order asked, for a prefix by name."""
    handle: str
    """Names the active set with these tools added; with detail "names" nothing is added."""
    handle_expire_time: datetime
    """When the handle expires, in UTC."""
    catalog_revision: int
    """The catalog revision that this answer is based on."""
    form: SearchForm
    """Reading of the query."""
    pending_servers: tuple[str, ...]
    """MCP servers that are announced but have not registered their tools yet."""
    refusals: tuple[Refusal, ...]
    """Names of `select:` that were not had; locked tools that would have been found."""
    message: str
    """For the model, why there is nothing or not everything; "" when there is."""
    searched_tools: int
    """Tools that were searched."""
    lacking_required_terms: int
    """Tools that match a term but not every `+` term, when nothing was found."""
    degraded: tuple[DegradedReason, ...]
    """In what way the answer is worse than usual; empty: in none."""
    deferred_tools: int = 0
    """Tools of the catalog that this caller finds only by searching."""
    rendered: Rendered | None = None
    """The tools found in the format that `render` asked for; None without. The definitions in
    `tools` are then empty."""

    @property
    def rendered_tools(self) -> list[dict[str, Any]]:
        """The tools found as the provider's API takes them.

        Raises:
            ValueError: `search_tools` had no `render`.
        """
        return tools_of(self.rendered)

    def __iter__(self) -> Iterator[ActiveTool]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self.tools)

    def to_tool_references(self) -> list[dict[str, Any]]:
        """The content of a tool result for Anthropic's Messages API.

        It expands references to the definitions that were sent with `defer_loading: true`.
        """
        return [{"type": "tool_reference", "tool_name": tool.model_name} for tool in self.tools]

    def to_tool_result(self) -> dict[str, Any]:
        """A JSON object to hand to a model whose provider expands no references.

        `tools` holds what the asked detail gave of each; `deferred_tools`, `message` and
        `pending_servers` are there when they say something.
        """
        result: dict[str, Any] = {"tools": [_shown(tool) for tool in self.tools]}
        if self.deferred_tools:
            result["deferred_tools"] = self.deferred_tools
        if self.message:
            result["message"] = self.message
        if self.pending_servers:
            result["pending_servers"] = list(self.pending_servers)
        return result

    @classmethod
    def from_proto(cls, message: router_pb2.SearchToolsResponse) -> "SearchResult":
        """Reads the wire's form."""
        return cls(
            tools=tuple(ActiveTool.from_proto(tool) for tool in message.tools),
            handle=message.active_set_handle,
            handle_expire_time=message.handle_expire_time.ToDatetime(UTC),
            catalog_revision=message.catalog_revision,
            form=from_wire(SearchForm, router_pb2.SearchForm, "SEARCH_FORM_", message.form),
            pending_servers=tuple(message.pending_servers),
            refusals=tuple(Refusal.from_proto(refusal) for refusal in message.refusals),
            message=message.message,
            searched_tools=message.searched_tools,
            lacking_required_terms=message.lacking_required_terms,
            degraded=tuple(
                from_wire(DegradedReason, router_pb2.DegradedReason, "DEGRADED_REASON_", reason)
                for reason in message.degraded
            ),
            deferred_tools=message.deferred_tools,
            rendered=rendered_from_proto(message),
        )


def _shown(tool: ActiveTool) -> dict[str, Any]:
    if tool.input_schema_json:
        return {
            "name": tool.model_name,
            "description": tool.description,
            "input_schema": tool.input_schema,
        }
    if tool.signature:
        return {"name": tool.model_name, "signature": tool.signature}
    return {"name": tool.model_name}
