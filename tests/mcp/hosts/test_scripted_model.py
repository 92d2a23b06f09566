"""The script of the model, and what counts as a host's trouble."""

import hosts
from scripted_model import (
    DONE,
    ENVELOPE,
    HIDDEN_SEARCH,
    MESSAGE,
    SEARCH,
    ScriptedModel,
    Step,
    Turn,
    next_step,
)

GATEWAY = ["Bash", "mcp__tg__discover_tools", "mcp__tg__call_read_tool", "mcp__tg__call_tool"]
CALL = {"name": "fixture__echo#k3f9a1", "arguments": {"message": MESSAGE}}


def test_behind_a_gateway_it_searches_then_calls_what_was_shown_then_ends() -> None:
    shown = "fixture__echo#k3f9a1(message: string) read: Gives back the message"
    assert next_step(Turn(GATEWAY, [])) == Step("mcp__tg__discover_tools", SEARCH)
    assert next_step(Turn(GATEWAY, [shown])) == Step("mcp__tg__call_read_tool", CALL)
    assert next_step(Turn(GATEWAY, [shown, MESSAGE])) is None


def test_behind_the_llm_proxy_it_searches_then_calls_in_the_envelope_then_ends() -> None:
    tools = ["Bash", HIDDEN_SEARCH, ENVELOPE]
    call = {"name": "mcp__tg__echo", "arguments": {"message": MESSAGE}}
    found = '{"tools":[{"name":"mcp__tg__echo","description":"Gives back the message"}]}'
    assert next_step(Turn(tools, [])) == Step(HIDDEN_SEARCH, SEARCH)
    assert next_step(Turn(tools, [found])) == Step(ENVELOPE, call)
    # The host does not know of the search.
    assert next_step(Turn(tools, [MESSAGE])) is None
    assert next_step(Turn(tools, ["nothing"])) is None


def test_before_a_server_itself_it_calls_the_echo_tool_once() -> None:
    assert next_step(Turn(["tg_echo"], [])) == Step("tg_echo", {"message": MESSAGE})
    assert next_step(Turn(["tg_echo"], [MESSAGE])) is None
    assert next_step(Turn(["echoes", "bash"], [])) is None


def test_a_host_that_lists_nothing_or_loses_the_answer_is_in_trouble() -> None:
    model = ScriptedModel()
    assert "never asked" in (hosts.trouble(model, DONE) or "")
    model.decide(Turn(["bash"], []))
    assert "showed no tool" in (hosts.trouble(model, DONE) or "")
    model.decide(Turn(["tg_echo"], []))
    assert "did not come back" in (hosts.trouble(model, DONE) or "")
    model.decide(Turn(["tg_echo"], [MESSAGE]))
    assert hosts.trouble(model, "") == "it did not finish"
    assert hosts.trouble(model, DONE) is None
    assert "proxy's envelope" in (hosts.trouble(model, DONE, llm=True) or "")
    model.decide(Turn([ENVELOPE], ["mcp__tg__echo"]))
    assert hosts.trouble(model, DONE, llm=True) is None
