"""The README's examples of the integrations run as they stand there."""

import ast
import asyncio
import re
import sys
from pathlib import Path
from typing import Any

from agents import Agent, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call
from desk import FIND, Desk
from pydantic_ai import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import FunctionToolset

from toolgate import Client

README = Path(__file__).resolve().parents[1] / "README.md"


def example(marker: str) -> str:
    """The one example that has this text."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    (found,) = [block for block in blocks if marker in block]
    return str(found)


def run(marker: str, **scope: Any) -> dict[str, Any]:
    """Runs the example; its `python` is the one that runs the tests."""
    text = example(marker).replace('"python"', repr(sys.executable))
    code = compile(text, str(README), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    started = eval(code, scope)
    if asyncio.iscoroutine(started):
        asyncio.run(started)
    return scope


def test_pydantic_ai(client: Client) -> None:
    desk = Desk()
    script = [ModelResponse([ToolCallPart(FIND, {"text": "milk"})]), ModelResponse([TextPart("1")])]

    def answer(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        return script.pop(0)

    toolset = FunctionToolset[Any]([desk.find_notes])
    scope = run("Toolgate.from_tools", client=client, toolset=toolset, model=FunctionModel(answer))
    result = scope["agent"].run_sync("search through my notes", deps=["notes:write"])
    assert (result.output, desk.ran) == ("1", ["find_notes"])


def test_pydantic_ai_over_an_mcp_server(client: Client) -> None:
    call = ToolCallPart("mcp__time__get_current_time", {"timezone": "Europe/Oslo"})
    script = [ModelResponse([call]), ModelResponse([TextPart("Noon.")])]

    def answer(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        return script.pop(0)

    scope = run("Toolgate.from_mcp", client=client, model=FunctionModel(answer))
    result = scope["agent"].run_sync("what time is it in Oslo right now?")
    assert b"is_dst" in result.all_messages_json()


def test_openai_agents_over_an_mcp_server(client: Client) -> None:
    set_tracing_disabled(True)
    zone = {"timezone": "Europe/Oslo"}
    call = function_call("mcp__time__get_current_time", zone, call_id="call_1")
    agent = Agent(name="desk", model=ScriptedModel([[call], [assistant_message("Noon.")]]))
    scope = run("Conversation.from_mcp(client, {", client=client, agent=agent)
    assert "is_dst" in str(scope["result"].to_input_list())


def test_openai_agents(client: Client) -> None:
    desk = Desk()
    set_tracing_disabled(True)
    call = function_call(FIND, {"text": "milk"}, call_id="call_1")
    agent = Agent(name="desk", model=ScriptedModel([[call], [assistant_message("1")]]))
    tools = [function_tool(desk.find_notes)]
    scope = run("Conversation.from_tools", client=client, agent=agent, tools=tools)
    assert (scope["result"].final_output, desk.ran) == ("1", ["find_notes"])
