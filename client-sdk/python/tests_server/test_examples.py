"""The examples run as they stand there."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from toolgate import Client

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SEARCH = "toolgate_search_tools"


def run(name: str, target: str, tenant: str) -> list[str]:
    command = [sys.executable, str(EXAMPLES / name), target, tenant]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_loop(target: str, tenant: str) -> None:
    said = run("agent.py", target, tenant)
    post, react = "mcp__slack__slack_post_message", "mcp__slack__slack_add_reaction"
    kept = f"the model sees {SEARCH}, {post}"
    assert said == [
        kept,
        f"refused {post} arguments_invalid",
        kept,
        'run slack/slack_post_message {"channel_id": "C1", "text": "Ten minutes late, sorry!"}',
        kept,
        f"found ['{react}']",
        f"{kept}, {react}",
        'run slack/slack_add_reaction {"channel_id": "C1", "timestamp": "1700000000.000100", '
        '"reaction": "wave"}',
        f"{kept}, {react}",
        "Posted, with a wave.",
    ]


def test_a_loop_over_mcp_servers(target: str, tenant: str) -> None:
    said = run("conversation_mcp_agent.py", target, tenant)
    now = "mcp__time__get_current_time"
    assert said[:3] == [f"the model sees {SEARCH}, {now}"] * 3
    user, call, refused, mended, found, answer, report, text = said[3:]
    assert user == "user: what time is it in Tokyo right now?"
    assert now in call
    assert "arguments_invalid" in refused
    assert now in mended
    assert "is_dst" in found
    assert "'is_error': False" in found
    assert "It is late in Tokyo." in answer
    assert report.startswith("3 requests: ")
    assert text == "It is late in Tokyo."


def module(name: str) -> ModuleType:
    """The example as a module, which runs nothing yet."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_the_loops_prompt_lists_what_the_ledger_counts(client: Client) -> None:
    example = module("agent")
    systems: list[str] = []

    class Kept(example.ScriptedModel):  # type: ignore[misc, name-defined]
        def create(self, *, system: Any, **request: Any) -> Any:
            systems.append(str(system))
            return super().create(system=system, **request)

    client.register_server("slack", example.SLACK, timeout=60)
    example.Agent(client, Kept(example.SCRIPT)).say("post that I'll be ten minutes late")
    pool = client.get_summary_pool().apply_to({})
    listed = [name for name in pool if any(name in system for system in systems)]
    assert (len(systems), listed) == (5, [])
    usage = client.get_usage().total
    assert (usage.route_calls, usage.phase1_tokens) == (5, 0)


@pytest.mark.parametrize(
    "name", ["langchain_agent.py", "openai_agents_agent.py", "pydantic_ai_agent.py"]
)
def test_the_integrations(name: str, target: str, tenant: str) -> None:
    said = run(name, target, tenant)
    shown = [line for line in said if line.startswith("the model s")]
    names = {line.removeprefix("the model sees ").removeprefix("the model saw ") for line in shown}
    assert (len(shown), names) == (3, {f"{SEARCH}, mcp__calendar__add_event"})
    assert [line for line in said if line.startswith("run")] == ["run add_event Lunch 12"]
    assert said[-1] == "Lunch is in your calendar."


@pytest.mark.parametrize(
    "name",
    ["langchain_mcp_agent.py", "openai_agents_mcp_agent.py", "pydantic_ai_mcp_agent.py"],
)
def test_an_agent_over_an_mcp_server(name: str, target: str, tenant: str) -> None:
    said = run(name, target, tenant)
    now = "mcp__time__get_current_time"
    shown = [line for line in said if line.startswith("the model s")]
    names = {line.removeprefix("the model sees ").removeprefix("the model saw ") for line in shown}
    assert (len(shown), names) == (2, {f"{SEARCH}, {now}"})
    assert "Asia/Tokyo" in "\n".join(said)
    assert said[-1].removeprefix("ai: ") == "It is late in Tokyo."


def test_a_graph_over_mcp_servers(target: str, tenant: str) -> None:
    said = run("langgraph_mcp_agent.py", target, tenant)
    shown = [line for line in said if line.startswith("the model sees")]
    now = "mcp__time__get_current_time"
    # The envelope joins once the conversation is long enough for the provider's cache.
    one_by_one = [f"the model sees {SEARCH}, {now}"] * 2
    assert shown == [*one_by_one, f"the model sees {SEARCH}, toolgate_call_tool, {now}"]
    answers = [line for line in said if line.startswith("tool: ")]
    assert "arguments_invalid" in answers[0]
    assert "Asia/Tokyo" in "\n".join(said)
    assert said[-1] == "ai: It is late in Tokyo."


def test_every_example_is_run() -> None:
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names == {
        "agent.py",
        "conversation_mcp_agent.py",
        "langchain_agent.py",
        "langchain_mcp_agent.py",
        "langgraph_mcp_agent.py",
        "openai_agents_agent.py",
        "openai_agents_mcp_agent.py",
        "pydantic_ai_agent.py",
        "pydantic_ai_mcp_agent.py",
    }
