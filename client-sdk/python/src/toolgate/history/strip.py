"""Takes references that the next request can't resolve out of a history, before it is sent."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from toolgate.history._reading import fields, items, name, text
from toolgate.history._snapshot import is_snapshot

_NOTHING_LEFT = "The tools that were found here are no longer available."
_GONE: Any = object()
"""Stands for what is taken out: null is a value of its own."""
_SEARCH_TOOLS = ("tool_search_tool_regex", "tool_search_tool_bm25")


class Reason(StrEnum):
    """Why something was taken out."""

    VANISHED = "vanished"
    """The request defines no such tool."""
    UNSUPPORTED = "unsupported"
    """The model, or what stands before it, can't take references."""


@dataclass(frozen=True, slots=True)
class Removed:
    """One thing that was taken out."""

    message: int
    """Index of the entry in the history that was given."""
    kind: str
    """Its type, such as "tool_reference"."""
    name: str
    """The tool that it named; of a search, the search tool; "" when it named none."""
    reason: Reason
    """Why it was taken out."""


@dataclass(frozen=True, slots=True)
class Stripped:
    """A history that can be sent."""

    messages: list[Any]
    """The history. What did not change is as it was given; entries that did are new dicts."""
    removed: tuple[Removed, ...]
    """What was taken out, in the history's order. Snapshots are not listed."""


def strip(
    messages: Iterable[Any], available: Collection[str], *, references: bool = True
) -> Stripped:
    """A history without references to tools that the next request can't resolve.

    Tool calls and their results stay, paired as they were. A result or message that would be left
    empty says instead that its tools are gone. Anthropic's `tool_reference` blocks and server-side
    tool searches are seen to, and OpenAI's `tool_search_call`, `tool_search_output` and
    `additional_tools` items; snapshots are taken out.

    Args:
        messages: The history, as in `scan`. It is left alone.
        available: Names of all tools that the request will define, deferred ones included.
        references: Whether the model, and what stands before it, can take references and searches.
    """
    stripper = _Stripper(frozenset(available), references)
    kept: list[tuple[int, Any]] = []
    for index, message in enumerate(messages):
        if not is_snapshot(message):
            kept.extend((index, left) for left in stripper.entry(index, message))
    sendable = stripper.without_lone_reasoning(kept)
    return Stripped(sendable, tuple(sorted(stripper.removed, key=lambda r: r.message)))


class _Stripper:
    def __init__(self, available: frozenset[str], references: bool) -> None:
        self.removed: list[Removed] = []
        self._available = available
        self._references = references
        self._index = 0

    def entry(self, index: int, entry: Any) -> list[Any]:
        """What is left of an entry: itself, a new one, or none."""
        self._index = index
        before = len(self.removed)
        values = fields(entry)
        after = self._changed(values)
        if len(self.removed) == before:
            return [entry]
        return [] if after is _GONE else [after]

    def without_lone_reasoning(self, kept: list[tuple[int, Any]]) -> list[Any]:
        """OpenAI refuses a reasoning item without the item that it led to."""
        gone = {removed.message for removed in self.removed} - {index for index, _ in kept}
        entries = []
        for place, (index, entry) in enumerate(kept):
            follower = kept[place + 1][1] if place + 1 < len(kept) else None
            is_lone = index + 1 in gone and not _is_led_to(follower)
            if is_lone and fields(entry).get("type") == "reasoning":
                self.removed.append(Removed(index, "reasoning", "", Reason.UNSUPPORTED))
            else:
                entries.append(entry)
        return entries

    def _changed(self, values: dict[str, Any]) -> Any:
        match values.get("type"):
            case "tool_search_call" if not self._references:
                self._note("tool_search_call", "", Reason.UNSUPPORTED)
                return _GONE
            case "tool_search_output":
                return self._loaded_tools(values)
            case "additional_tools":
                left = self._loaded_tools(values)
                return left if left is not _GONE and left["tools"] else _GONE
            case _:
                return self._message(values)

    def _loaded_tools(self, values: dict[str, Any]) -> Any:
        if not self._references:
            self._note(values["type"], "", Reason.UNSUPPORTED)
            return _GONE
        return {**values, "tools": self._keep(items(values.get("tools")), self._loaded_tool)}

    def _loaded_tool(self, tool: Any) -> Any:
        values = fields(tool)
        if values.get("type") != "namespace":
            ours = values.get("type") in ("function", "custom")
            return tool if not ours or self._has("tool", values.get("name")) else _GONE
        inner = self._keep(items(values.get("tools")), self._loaded_tool)
        return {**values, "tools": inner} if inner else _GONE

    def _message(self, values: dict[str, Any]) -> dict[str, Any]:
        content = values.get("content")
        if not isinstance(content, list | tuple):
            return values
        kept = self._keep(content, self._block)
        if not kept and content:
            kept = [{"type": "text", "text": _NOTHING_LEFT}]
        return {**values, "content": kept}

    def _block(self, block: Any) -> Any:
        values = fields(block)
        match values.get("type"):
            case "tool_result" | "mcp_tool_result":
                return self._tool_result(values)
            case "tool_search_tool_result":
                return self._search_result(values)
            case "server_tool_use" if not self._references and values.get("name") in _SEARCH_TOOLS:
                self._note("server_tool_use", values["name"], Reason.UNSUPPORTED)
                return _GONE
            case "tool_use" if not self._references and "caller" in values:
                self._note("caller", name(values.get("name")), Reason.UNSUPPORTED)
                return {key: value for key, value in values.items() if key != "caller"}
            case _:
                return block

    def _tool_result(self, values: dict[str, Any]) -> dict[str, Any]:
        content = values.get("content")
        if not isinstance(content, list | tuple) or not content:
            return values
        kept = self._keep(content, self._reference)
        return {**values, "content": kept or [{"type": "text", "text": _NOTHING_LEFT}]}

    def _search_result(self, values: dict[str, Any]) -> Any:
        found = fields(values.get("content"))
        if not self._references:
            self._note("tool_search_tool_result", "", Reason.UNSUPPORTED)
            return _GONE
        if "tool_references" not in found:
            return values
        kept = self._keep(items(found["tool_references"]), self._reference)
        return {**values, "content": {**found, "tool_references": kept}}

    def _reference(self, item: Any) -> Any:
        values = fields(item)
        if values.get("type") != "tool_reference":
            return item
        return item if self._has("tool_reference", values.get("tool_name")) else _GONE

    def _has(self, kind: str, tool: Any) -> bool:
        """Whether a reference may stay; notes it when not."""
        called = name(tool)
        if self._references and called in self._available:
            return True
        reason = Reason.VANISHED if self._references else Reason.UNSUPPORTED
        self._note(kind, called, reason)
        return False

    def _note(self, kind: str, called: str, reason: Reason) -> None:
        self.removed.append(Removed(self._index, kind, called, reason))

    @staticmethod
    def _keep(values: Iterable[Any], change: Callable[[Any], Any]) -> list[Any]:
        changed = (change(value) for value in values)
        return [value for value in changed if value is not _GONE]


def _is_led_to(entry: Any) -> bool:
    """Whether an item of the Responses API is one that reasoning leads to."""
    values = fields(entry)
    return text(values.get("type")).endswith("_call") or values.get("role") == "assistant"
