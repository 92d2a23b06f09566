"""Histories: the vendors' own objects, odd ones, and bounds. The shapes are in test_conformance."""

import json
import random
from typing import Any

import pytest
from anthropic.types import (
    Message,
    ServerToolUseBlock,
    TextBlock,
    ToolReferenceBlock,
    ToolSearchToolResultBlock,
    ToolSearchToolSearchResultBlock,
    ToolUseBlock,
    Usage,
)
from mcp_types import SamplingMessage, TextContent, ToolResultContent, ToolUseContent
from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageFunctionToolCall
from openai.types.chat.chat_completion_message_function_tool_call import Function
from openai.types.responses import ResponseFunctionToolCall, ResponseReasoningItem

from toolgate import SEARCH_TOOL, AgentState, CallStatus, history


def anthropic_message() -> Message:
    """What the Messages API answers when the model searches and then calls."""
    found = ToolSearchToolSearchResultBlock(
        type="tool_search_tool_search_result",
        tool_references=[ToolReferenceBlock(type="tool_reference", tool_name="get_weather")],
    )
    return Message(
        id="msg_01",
        model="claude-sonnet-4-5",
        role="assistant",
        type="message",
        usage=Usage(input_tokens=1, output_tokens=1),
        content=[
            TextBlock(type="text", text="Let me look."),
            ServerToolUseBlock(
                type="server_tool_use", id="s1", name="tool_search_tool_bm25", input={"query": "w"}
            ),
            ToolSearchToolResultBlock(
                type="tool_search_tool_result", tool_use_id="s1", content=found
            ),
            ToolUseBlock(type="tool_use", id="toolu_1", name="get_weather", input={"city": "Oslo"}),
        ],
    )


def test_the_vendors_typed_objects_are_read() -> None:
    chat_call = ChatCompletionMessageFunctionToolCall(
        id="call_1", type="function", function=Function(name="get_time", arguments="{}")
    )
    seen = history.scan(
        [
            {"role": "user", "content": "Weather?"},
            anthropic_message(),
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1"}]},
            ChatCompletionMessage(role="assistant", content=None, tool_calls=[chat_call]),
            {"role": "tool", "tool_call_id": "call_1", "content": "noon"},
            ResponseReasoningItem(id="rs_1", summary=[], type="reasoning"),
            ResponseFunctionToolCall(
                type="function_call", call_id="call_2", name="list_orders", arguments="{}"
            ),
            {"type": "function_call_output", "call_id": "call_2", "output": "[]"},
            SamplingMessage(
                role="assistant", content=ToolUseContent(name="echo", id="m1", input={})
            ),
            SamplingMessage(
                role="user",
                content=ToolResultContent(
                    tool_use_id="m1", content=[TextContent(text="no")], is_error=True
                ),
            ),
        ]
    )
    assert [(call.tool, call.status, call.turn) for call in seen.calls] == [
        ("get_weather", CallStatus.SUCCEEDED, 0),
        ("get_time", CallStatus.SUCCEEDED, 1),
        ("list_orders", CallStatus.SUCCEEDED, 2),
        ("echo", CallStatus.FAILED, 3),
    ]
    assert seen.discovered == ("get_weather", "get_time", "list_orders")


def test_typed_messages_are_stripped_and_untouched_ones_kept() -> None:
    message = anthropic_message()
    same = history.strip([message], ["get_weather"])
    assert same.messages == [message]
    assert same.messages[0] is message
    stripped = history.strip([message], [], references=False)
    assert [block["type"] for block in stripped.messages[0]["content"]] == ["text", "tool_use"]
    assert [removed.kind for removed in stripped.removed] == [
        "server_tool_use",
        "tool_search_tool_result",
    ]


class Hostile(dict[str, Any]):
    """A mapping that fails when it is read."""

    def keys(self) -> Any:
        raise RuntimeError("keys")

    def __getitem__(self, key: str) -> Any:
        raise RuntimeError(key)

    def __iter__(self) -> Any:
        raise RuntimeError("iter")


class Dumps:
    """An object that only looks like the vendors' ones."""

    def model_dump(self, **_options: Any) -> dict[str, Any]:
        raise ValueError("no")


def test_odd_objects_are_passed_over() -> None:
    cyclic: dict[str, Any] = {"role": "user"}
    cyclic["content"] = [cyclic]
    odd: list[Any] = [Hostile(role="user"), Dumps(), Dumps, object(), cyclic, {7: 8}, b"x", {1, 2}]
    odd += [{"role": "assistant", "content": [Hostile(), Dumps, cyclic]}]
    odd += [{"role": "user", "content": [{"type": "tool_result", "content": "{" * 100_000}]}]
    odd += [{"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "\ud800"}]}]
    seen = history.scan(odd)
    assert (seen.discovered, seen.calls) == ((), ())
    seen.state().to_proto()
    assert len(history.strip(odd, []).messages) == len(odd)


KEYS = (
    *("type", "role", "content", "tool_calls", "id", "name", "tool_use_id", "tool_name", "tools"),
    *("tool_references", "call_id", "function", "output", "error", "is_error", "method", "params"),
    *("result", "jsonrpc", "calls", "discovered", "turns", "status"),
)
KINDS = (
    *("tool_use", "tool_result", "tool_reference", "tool_search_tool_result", "function_call"),
    *("mcp_call", "function_call_output", "tool_search_output", "additional_tools", "namespace"),
    "toolgate_snapshot",
)


def test_generated_oddities_never_raise() -> None:
    random_ = random.Random(20)
    scalars: list[Any] = [None, True, 0, -1.5, "", "tool_use", "assistant", "toolu_1", "{", []]

    def value(depth: int) -> Any:
        kind = random_.randrange(4 if depth else 1)
        if kind == 0:
            return random_.choice(scalars)
        if kind == 1:
            return [value(depth - 1) for _ in range(random_.randrange(3))]
        made = {random_.choice(KEYS): value(depth - 1) for _ in range(random_.randrange(6))}
        return {**made, "type": random_.choice(KINDS)} if random_.random() < 0.7 else made

    for _ in range(3000):
        messages = [value(4) for _ in range(3)]
        seen = history.scan(messages, value(3) if random_.random() < 0.2 else None)
        assert len(seen.state().to_proto().SerializeToString()) < 64 * 1024
        assert history.scan([], seen.snapshot()).discovered == seen.discovered
        for references in (True, False):
            stripped = history.strip(messages, ["x"], references=references)
            again = history.strip(stripped.messages, ["x"], references=references)
            assert again.removed == ()


def turn_of(tool: str, call: str, *, failed: bool = False) -> list[Any]:
    """One turn with one call, and its answer."""
    result = {"type": "tool_result", "tool_use_id": call, "is_error": failed}
    return [
        {"role": "assistant", "content": [{"type": "tool_use", "id": call, "name": tool}]},
        {"role": "user", "content": [result]},
    ]


def test_a_long_history_fits_the_state() -> None:
    messages = [
        message
        for turn in range(10_000)
        for message in turn_of(f"mcp__server__tool_{turn:04}", f"call_{turn}", failed=turn % 2 > 0)
    ]
    seen = history.scan(messages)
    assert len(seen.state().to_proto().SerializeToString()) < 56 * 1024
    assert seen.turns == 10_000
    assert seen.discovered[-1] == seen.calls[-1].tool == "mcp__server__tool_9998"
    assert len(seen.calls) > 500


def test_what_preconditions_ask_for_outlives_many_later_calls() -> None:
    messages = turn_of("login", "call_0")
    for turn in range(1, 5000):
        messages += turn_of("poll", f"call_{turn}", failed=turn < 4000)
    seen = history.scan(messages)
    assert (seen.calls[0].tool, seen.calls[0].turn) == ("login", 0)
    assert (seen.calls[-1].tool, seen.calls[-1].turn) == ("poll", 4999)
    assert len(seen.calls) < 5000


def test_the_state_takes_what_a_history_cannot_say() -> None:
    seen = history.scan([{"type": "function_call", "call_id": "c", "name": "search"}])
    state = seen.state(scopes=["repo"], milestones=["planned"], attributes={"plan": "pro"})
    assert isinstance(state, AgentState)
    sent = state.to_proto()
    assert list(sent.scopes) == ["repo"]
    assert list(sent.milestones) == ["planned"]
    assert [call.tool for call in sent.calls] == ["search"]


def test_a_lone_text_is_no_list_of_scopes() -> None:
    with pytest.raises(TypeError, match="scopes takes a list of texts"):
        history.scan([]).state(scopes="repo")


def searched(answer: str) -> tuple[str, ...]:
    call = {"type": "function_call", "call_id": "s1", "name": SEARCH_TOOL.model_name}
    output = {"type": "function_call_output", "call_id": "s1", "output": answer}
    return history.scan([call, output]).discovered


def test_a_long_answer_to_a_search_is_read_within_a_bound() -> None:
    tools = [{"name": f"tool_{n}", "input_schema": {"title": "x" * 5_000}} for n in range(100)]
    assert len(searched(json.dumps({"tools": tools}))) == 100
    assert searched(json.dumps({"tools": tools * 3})) == ()
    assert searched('{"tools": ' + "[" * 100_000) == ()
    assert searched('{"tools": [{"name": "\\ud800"}]}') == ()
