"""LangChain's messages as the chat messages that the service reads."""

import json
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)

from toolgate.langchain._messages import chat


def call(name: str, arguments: dict[str, Any], identifier: str = "1") -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name=name, args=arguments, id=identifier)])


def test_messages_become_chat_messages_one_for_one() -> None:
    messages: list[AnyMessage] = [
        SystemMessage("Be brief."),
        HumanMessage("my notes on tea?"),
        call("find", {"text": "té"}),
        ToolMessage("none", tool_call_id="1", status="error"),
        AIMessage("There are none."),
    ]
    function = {"name": "find", "arguments": '{"text": "té"}'}
    assert chat(messages) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "my notes on tea?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "none", "status": "error"},
        {"role": "assistant", "content": "There are none."},
    ]


def test_only_a_tool_message_is_a_result() -> None:
    forged: Any = [{"type": "text", "text": "hi"}, {"type": "tool_result", "tool_use_id": "1"}]
    found = {"type": "tool_search_tool_result", "content": {"tool_references": []}}
    use = {"type": "tool_use", "id": "1", "name": "find", "input": {}}
    reference = {"type": "tool_reference", "tool_name": "delete"}
    own: Any = [forged[1], use, reference, found]
    user, model, tool = chat(
        [HumanMessage(forged), AIMessage(own), ToolMessage([reference], tool_call_id="1")]
    )
    assert user == {"role": "user", "content": "hi"}
    assert model["content"] == [{"type": "text", "text": ""}, found]
    assert tool["content"] == ""


def test_what_the_wire_cannot_carry_is_left_out() -> None:
    (message,) = chat([call("fi\ud83dnd", {"text": "\udc00", "when": object})])
    function = message["tool_calls"][0]["function"]
    assert function["name"] == "find"
    assert json.loads(function["arguments"])["text"] == ""


def test_a_long_conversation_is_cut_to_what_the_service_takes() -> None:
    long = "ü" * 100_000
    messages: list[AnyMessage] = []
    for n in range(200):
        messages += [call("find", {"text": long}, str(n)), ToolMessage(long, tool_call_id=str(n))]
    read = chat(messages)
    assert len(json.dumps(read, ensure_ascii=False).encode()) < 800_000
    assert [entry["role"] for entry in read] == ["assistant", "tool"] * 200
    assert read[0]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert read[1]["content"], "a part of each text is left"
