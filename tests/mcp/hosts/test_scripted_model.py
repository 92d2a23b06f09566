"""The script of the model, and what counts as a host's trouble."""

import hosts
from scripted_model import DONE, MESSAGE, SEARCH, ScriptedModel, Step, Turn, next_step

GATEWAY = ["Bash", "mcp__tg__discover_tools", "mcp__tg__call_read_tool", "mcp__tg__call_tool"]
CALL = {"name": "fixture__echo#k3f9a1", "arguments": {"message": MESSAGE}}


def test_behind_a_gateway_it_searches_then_calls_what_was_shown_then_ends() -> None:
    shown = "fixture__echo#k3f9a1(message: string) read: Gives back the message"
    assert next_step(Turn(GATEWAY, [])) == Step("mcp__tg__discover_tools", SEARCH)
    assert next_step(Turn(GATEWAY, [shown])) == Step("mcp__tg__call_read_tool", CALL)
    assert next_step(Turn(GATEWAY, [shown, MESSAGE])) is None


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
