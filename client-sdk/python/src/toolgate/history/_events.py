"""What one entry of a history says, whichever API it belongs to.

Who speaks, which tools were found, which calls were made, and how they ended.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from toolgate.history._reading import blocks, fields, first, items, name, says_error, text


@dataclass(frozen=True, slots=True)
class Spoke:
    """The entry is the model's, or somebody else's."""

    model: bool


@dataclass(frozen=True, slots=True)
class Found:
    """A tool's definition was loaded."""

    tool: str


@dataclass(frozen=True, slots=True)
class Called:
    """The model called a tool. The key pairs it with its answer; None: the answer comes next."""

    key: str | None
    tool: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A call ended. The content is what it answered."""

    key: str | None
    failed: bool
    content: Any = None


Event = Spoke | Found | Called | Answered
_MODEL_ROLES = frozenset({"assistant", "model"})


def read(entry: Any) -> Iterator[Event]:
    """The events of one message, Responses item or JSON-RPC message; none for anything else."""
    values = fields(entry)
    kind = text(values.get("type"))
    if reader := _RESPONSES_ITEMS.get(kind):
        yield from reader(values)
    elif role := text(values.get("role")):
        yield from _message(role, values)
    elif "method" in values or "jsonrpc" in values:
        yield from _json_rpc(values)
    elif not kind and isinstance(values.get("content"), list):
        yield from _mcp_result(None, values)


def _message(role: str, values: dict[str, Any]) -> Iterator[Event]:
    yield Spoke(role in _MODEL_ROLES)
    content = values.get("content")
    for block in blocks(content):
        yield from _block(fields(block))
    for call in items(values.get("tool_calls")):
        yield from _chat_call(fields(call))
    if role == "tool":
        failed = values.get("status") == "error" or says_error(content)
        yield Answered(_key(values.get("tool_call_id")), failed, content)


def _block(block: dict[str, Any]) -> Iterator[Event]:
    kind = block.get("type")
    if kind in ("tool_use", "mcp_tool_use"):
        yield from _called(block.get("id"), block.get("name"))
    elif kind in ("tool_result", "mcp_tool_result"):
        yield from _tool_result(block)
    elif kind == "tool_search_tool_result":
        found = fields(block.get("content"))
        for reference in items(found.get("tool_references")):
            yield from _found(fields(reference).get("tool_name"))


def _tool_result(block: dict[str, Any]) -> Iterator[Event]:
    content = block.get("content")
    for item in items(content):
        values = fields(item)
        if values.get("type") == "tool_reference":
            yield from _found(values.get("tool_name"))
    flag = first(block, "is_error", "isError")
    failed = says_error(content) if flag is None else flag is not False
    yield Answered(_key(first(block, "tool_use_id", "toolUseId")), failed, content)


def _chat_call(call: dict[str, Any]) -> Iterator[Event]:
    function = fields(first(call, "function", "custom"))
    yield from _called(call.get("id"), function.get("name"))


def _function_call(item: dict[str, Any]) -> Iterator[Event]:
    yield Spoke(True)
    yield from _called(item.get("call_id"), item.get("name"))


def _function_call_output(item: dict[str, Any]) -> Iterator[Event]:
    yield Spoke(False)
    output = item.get("output")
    yield Answered(_key(item.get("call_id")), says_error(output), output)


def _hosted_mcp_call(item: dict[str, Any]) -> Iterator[Event]:
    yield from _function_call({**item, "call_id": item.get("id")})
    failed = item.get("error") is not None or item.get("status") == "failed"
    if failed or item.get("output") is not None:
        yield Answered(_key(item.get("id")), failed, item.get("output"))


def _loaded_tools(item: dict[str, Any]) -> Iterator[Event]:
    for tool in items(item.get("tools")):
        values = fields(tool)
        if values.get("type") == "namespace":
            for inner in items(values.get("tools")):
                yield from _found(fields(inner).get("name"))
        else:
            yield from _found(values.get("name"))


def _models_own(_item: dict[str, Any]) -> Iterator[Event]:
    yield Spoke(True)


_RESPONSES_ITEMS: dict[str, Callable[[dict[str, Any]], Iterator[Event]]] = {
    "function_call": _function_call,
    "custom_tool_call": _function_call,
    "function_call_output": _function_call_output,
    "custom_tool_call_output": _function_call_output,
    "mcp_call": _hosted_mcp_call,
    "tool_search_call": _models_own,
    "reasoning": _models_own,
    # These stand among the model's items or among ours; they belong to neither's turn.
    "tool_search_output": _loaded_tools,
    "additional_tools": _loaded_tools,
}


def _json_rpc(values: dict[str, Any]) -> Iterator[Event]:
    number = values.get("id")
    is_id = isinstance(number, str | int) and not isinstance(number, bool)
    key = f"json-rpc:{number}" if is_id else None
    if values.get("method") == "tools/call":
        yield Spoke(True)
        if tool := name(fields(values.get("params")).get("name")):
            yield Called(key, tool)
    elif values.get("error") is not None:
        yield Spoke(False)
        yield Answered(key, True)
    elif "result" in values:
        yield from _mcp_result(key, fields(values["result"]))


def _mcp_result(key: str | None, result: dict[str, Any]) -> Iterator[Event]:
    yield Spoke(False)
    flag = first(result, "isError", "is_error")
    yield Answered(key, flag is not None and flag is not False, result.get("content"))


def _called(key: Any, tool: Any) -> Iterator[Event]:
    if called := name(tool):
        yield Called(_key(key), called)


def _found(tool: Any) -> Iterator[Event]:
    if found := name(tool):
        yield Found(found)


def _key(value: Any) -> str | None:
    return text(value) or None
