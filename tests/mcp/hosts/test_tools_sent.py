"""The script of a long conversation, its server's tools, and how requests are counted."""

import pytest
from catalog_server import ANSWERED, tools_of_catalogs
from prompts import prompt_of, tokens
from scripted_model import API_SEARCH, ENVELOPE, HIDDEN_SEARCH, Step, Turn
from working_script import PLAN, Working

FIRST = PLAN[0]


def test_the_catalogs_have_as_many_tools_as_are_asked_for_each_once() -> None:
    for count in (60, 200):
        names = [tool["name"] for tool in tools_of_catalogs(count)]
        assert len(set(names)) == count
        assert {call.tool for call in PLAN} <= set(names)
    with pytest.raises(ValueError, match="the catalogs have"):
        tools_of_catalogs(10_000)


def test_a_tool_that_may_be_called_is_called_without_a_search() -> None:
    working = Working()
    assert working(Turn(["Bash", f"mcp__tg__{FIRST.tool}"], [])) == Step(
        f"mcp__tg__{FIRST.tool}", FIRST.arguments
    )
    assert working(Turn([f"tg_{PLAN[1].tool}"], [ANSWERED])) == Step(
        f"tg_{PLAN[1].tool}", PLAN[1].arguments
    )
    assert working.searches == 0


def test_a_tool_that_is_not_shown_is_searched_for_twice_and_then_given_up() -> None:
    working = Working()
    tools = ["Bash", HIDDEN_SEARCH, ENVELOPE]
    assert working(Turn(tools, [])) == Step(HIDDEN_SEARCH, {"query": FIRST.query})
    assert working(Turn(tools, ["nothing"])) == Step(HIDDEN_SEARCH, {"query": FIRST.tool})
    assert working(Turn(tools, ["nothing", "nothing"])) is None
    assert (working.searches, working.given_up) == (2, [FIRST.tool])


def test_a_tool_that_the_conversation_describes_is_called_in_the_envelope() -> None:
    working = Working()
    said = f'[{{"text": "{{\\"name\\":\\"mcp__tg__{FIRST.tool}\\"}}"}}]'
    call = {"name": f"mcp__tg__{FIRST.tool}", "arguments": FIRST.arguments}
    assert working(Turn([HIDDEN_SEARCH, ENVELOPE], [], said)) == Step(ENVELOPE, call)
    # A longer name is another tool.
    longer = said.replace(FIRST.tool, f"{FIRST.tool}_all")
    assert working(Turn([HIDDEN_SEARCH, ENVELOPE], [], longer)) == Step(
        HIDDEN_SEARCH, {"query": FIRST.query}
    )


def test_the_script_ends_with_the_plan() -> None:
    tools = [API_SEARCH, *(call.tool for call in PLAN)]
    assert Working()(Turn(tools, [ANSWERED] * len(PLAN))) is None


def test_a_deferred_definition_counts_where_it_is_referred_to() -> None:
    own = {"name": "Bash", "description": "Runs", "input_schema": {}}
    deferred = {"name": "mcp__tg__a", "description": "Afar", "defer_loading": True}
    body = {"model": "m", "tools": [own, deferred], "messages": [{"role": "user", "content": "x"}]}
    without = prompt_of("/v1/messages", body)
    reference = {"type": "tool_reference", "tool_name": "mcp__tg__a"}
    content = [{"type": "tool_result", "content": [reference]}]
    more = {**body, "messages": [*body["messages"], {"role": "user", "content": content}]}
    with_it = prompt_of("/v1/messages", more)
    assert without is not None
    assert with_it is not None
    assert len(without.tools) == len(with_it.tools) == 1
    assert "Afar" not in without.text
    assert with_it.text.startswith(without.text)
    assert "Afar" in with_it.text.removeprefix(without.text)


def test_functions_of_a_namespace_count_each_and_marks_of_the_cache_do_not() -> None:
    inner = [{"type": "function", "name": name, "parameters": {}} for name in ("a", "b")]
    body = {"model": "m", "tools": [{"type": "namespace", "name": "n", "tools": inner}]}
    prompt = prompt_of("/v1/responses", {**body, "input": "x"})
    assert prompt is not None
    assert (len(prompt.tools), prompt.api) == (2, "openai_responses")
    marked = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    messages = {"tools": inner, "messages": [{"role": "user", "content": [marked]}]}
    found = prompt_of("/v1/messages", messages)
    assert found is not None
    assert "ephemeral" not in found.text
    assert prompt_of("/v1/messages", {"messages": []}) is None


def test_tokens_are_those_of_cl100k() -> None:
    assert tokens("hello world") == 2
