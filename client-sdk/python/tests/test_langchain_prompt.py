"""Requests of the LangChain middleware that Route put together."""

from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage

from toolgate._forms import formed
from toolgate.enums import PromptStrategy, StrategyReason
from toolgate.langchain._messages import chat
from toolgate.langchain._prompt import CALL_TOOL, Prompt, opened
from toolgate.rendering import ModelRequest

FIND = "mcp__notes__find"
DEFINED: Any = [{"type": "function", "function": {"name": CALL_TOOL, "parameters": {}}}]


def talk() -> list[AnyMessage]:
    use = {"type": "tool_use", "id": "1", "name": FIND, "input": {"text": "tea"}}
    item = {"type": "function_call", "call_id": "2", "name": FIND, "arguments": "{}"}
    call, other = (ToolCall(name=FIND, args={"text": "tea"}, id=one) for one in ("1", "2"))
    picture: Any = [{"type": "image_url", "image_url": {"url": "data:,"}}]
    return [
        HumanMessage("my notes?", id="a"),
        AIMessage([use, item], tool_calls=[call, other], id="b"),
        ToolMessage("none", tool_call_id="1", name=FIND, id="c"),
        ToolMessage("one", tool_call_id="2", name=FIND, id="d"),
        HumanMessage(picture, id="e"),
    ]


def answered(messages: list[AnyMessage], strategy: PromptStrategy, *more: Any) -> ModelRequest:
    sent = chat(messages)
    sent[0]["content"] += "\n\nTools: x"
    sent[-1]["content"] += "Tools: y"
    return ModelRequest(
        DEFINED, [*sent, *more], (), "{}", strategy, StrategyReason.CHEAPEST, reason_message=""
    )


def read(strategy: PromptStrategy = PromptStrategy.ENVELOPE, *more: Any) -> Prompt:
    messages = talk()
    sent = formed(chat(messages), "openai_chat")
    return Prompt.of_turn(answered(messages, strategy, *more), sent, messages)


def test_what_was_added_is_kept_as_json_and_stands_in_copies() -> None:
    prompt = Prompt(read().to_dict())
    messages = talk()
    first, call, none, one, last = prompt.messages(messages, lambda name: name == FIND)
    assert messages == talk(), "the state's messages are left alone"
    assert (first.content, prompt.ledger) == ("my notes?\n\nTools: x", "{}")
    assert isinstance(last.content, list)
    assert last.content[1] == {"type": "text", "text": "Tools: y"}
    assert isinstance(call, AIMessage)
    wrapped = {"name": FIND, "arguments": {"text": "tea"}}
    assert [(c["name"], c["args"]) for c in call.tool_calls] == [(CALL_TOOL, wrapped)] * 2
    assert isinstance(call.content, list)
    use, item = call.content
    assert isinstance(use, dict)
    assert isinstance(item, dict)
    assert (use["name"], use["input"]) == (CALL_TOOL, wrapped)
    assert item["arguments"] == '{"name": "mcp__notes__find", "arguments": {"text": "tea"}}'
    assert [none.name, one.name] == [CALL_TOOL] * 2


def test_calls_of_defined_and_foreign_tools_are_not_wrapped() -> None:
    prompt = read()
    assert prompt.messages(talk(), lambda _: False)[1] == talk()[1]
    prompt.tools = [{"type": "function", "function": {"name": FIND, "parameters": {}}}]
    assert prompt.messages(talk(), lambda _: True)[1] == talk()[1]


def test_a_description_whose_message_is_gone_stands_at_the_end() -> None:
    (last,) = read().messages(talk()[-1:], lambda _: True)
    texts = [block["text"] for block in last.content if "text" in block]  # type: ignore[index]
    assert texts == ["Tools: y", "Tools: x"]


def test_other_strategies_and_answers_of_another_length_add_nothing() -> None:
    assert read(PromptStrategy.PASS).to_dict() == {"ledger": "{}", "tools": [], "added": {}}
    longer = read(PromptStrategy.ENVELOPE, {"role": "assistant", "content": "Tools: z"})
    assert longer.to_dict() == {"ledger": "", "tools": [], "added": {}}


def test_an_envelope_is_opened_and_a_mistaken_one_is_left_to_gate() -> None:
    def call(given: dict[str, Any], name: str = CALL_TOOL) -> AIMessage:
        return AIMessage("", tool_calls=[ToolCall(name=name, args=given, id="1")])

    wrapped = {"name": FIND, "arguments": {"text": "tea"}}
    assert opened(call(wrapped)) == call({"text": "tea"}, FIND)
    assert opened(call({"name": FIND})) == call({}, FIND)
    mistaken: list[dict[str, Any]] = [
        {},
        {"name": " "},
        {"name": 7},
        {**wrapped, "arguments": "{}"},
    ]
    for given in mistaken:
        assert opened(call(given)) == call(given)
    assert opened(call(wrapped, "other")) == call(wrapped, "other")
