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
NOW, CONVERT = "mcp__time__get_current_time", "mcp__time__convert_time"


def run(name: str, target: str, tenant: str) -> list[str]:
    command = [sys.executable, str(EXAMPLES / name), target, tenant]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
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


def check_shown(said: list[str], requests: int) -> None:
    """Holds that each request defines the search and the clock's tools, of those of all servers."""
    shown = [line for line in said if line.startswith("the model s")]
    assert len(shown) == requests
    for line in shown:
        names = set(line.split(" ", 3)[3].split(", "))
        assert {SEARCH, NOW} <= names
        assert {name for name in names if name.startswith("mcp__")} <= {NOW, CONVERT}


def test_a_loop_over_mcp_servers(target: str, tenant: str) -> None:
    said = run("conversation_mcp_agent.py", target, tenant)
    check_shown(said[:3], 3)
    user, call, refused, mended, found, answer, report, text = said[3:]
    assert user == "user: what time is it in Tokyo right now?"
    assert NOW in call
    assert "arguments_invalid" in refused
    assert NOW in mended
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
    ("name", "requests"),
    [
        ("langchain_mcp_agent.py", 2),
        ("langgraph_mcp_agent.py", 3),
        ("openai_agents_mcp_agent.py", 2),
        ("pydantic_ai_mcp_agent.py", 2),
    ],
)
def test_an_agent_over_mcp_servers(name: str, requests: int, target: str, tenant: str) -> None:
    said = run(name, target, tenant)
    check_shown(said, requests)
    assert "Asia/Tokyo" in "\n".join(said)
    assert said[-1].removeprefix("ai: ") == "It is late in Tokyo."
    refused = "\n".join(said).count("arguments_invalid")
    assert refused == requests - 2, "a refused call takes one request more"


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
