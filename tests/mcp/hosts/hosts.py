"""Real hosts with one MCP server, `tg`, and the scripted model in the place of theirs.

    python tests/mcp/hosts/hosts.py                              # the fixture
    python tests/mcp/hosts/hosts.py http://127.0.0.1:7080/mcp    # a gateway
    python tests/mcp/hosts/hosts.py --llm target/debug/toolgate  # the fixture, and `toolgate run`

Each must list the server's tools, call one, and finish. Nothing leaves the machine: every other
address is behind a proxy that refuses.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fixture_process import fixture_url
from installing import install, npm_command, pip_command, search_path
from scripted_model import DONE, ENVELOPE, MESSAGE, ScriptedModel, scripted_model

PROMPT = "Say hello with the echo tool"
SECONDS = 90

NO_NETWORK = dict.fromkeys(
    ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"], "http://127.0.0.1:9"
) | {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}


# The first decision waits for the encoder of a plane of its own.
LLM = """[llm]
strategy = "envelope"
decision_timeout = "1m"
first_decision_timeout = "2m"
"""


@dataclass
class Run:
    """What a host is run with: its own home, the MCP server's URL, and the model's."""

    home: Path
    mcp_url: str
    model_url: str
    # Binary of Toolgate, if the host's requests go through an LLM proxy.
    llm: Path | None = None

    def write(self, path: str, text: str) -> Path:
        """Writes a file of the host into its home."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def execute(self, command: list[str], env: dict[str, str] | None = None) -> str:
        """Runs a command in the home; returns what it said. It is ended after SECONDS."""
        environment = {"PATH": search_path(), "HOME": str(self.home), **NO_NETWORK}
        if self.llm:
            self.write("llm.toml", LLM)
            command = [str(self.llm.resolve()), "run", "--", *command]
            cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
            environment["XDG_CACHE_HOME"] = cache
        process = subprocess.Popen(
            command,
            cwd=self.home,
            env=environment | (env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            return process.communicate(timeout=SECONDS)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return process.communicate()[0] + f"\n(ended after {SECONDS} s)"


def claude_code(run: Run) -> str:
    """Claude Code, by Anthropic's messages."""
    servers = {"mcpServers": {"tg": {"type": "http", "url": run.mcp_url}}}
    config = run.write("mcp.json", json.dumps(servers))
    command = [npm_command(install("hosts"), "claude"), "-p", PROMPT, "--mcp-config", str(config)]
    return run.execute(
        [*command, "--strict-mcp-config", "--allowedTools", "mcp__tg", "--output-format", "json"],
        {
            "ANTHROPIC_BASE_URL": run.model_url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            # Else the first request may go out before the server is connected.
            "MCP_CONNECTION_NONBLOCKING": "0",
        },
    )


def codex(run: Run) -> str:
    """Codex, by OpenAI's responses."""
    provider = f"""
[model_providers.scripted]
name = "scripted"
base_url = "{run.model_url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
"""
    # Of a model that it does not know it sends all tools.
    model = 'model = "unknown"' if run.llm else 'model = "gpt-5.4"\nmodel_provider = "scripted"'
    run.write(
        ".codex/config.toml",
        f"""
{model}
approval_policy = "never"
sandbox_mode = "read-only"
{"" if run.llm else provider}
[mcp_servers.tg]
url = "{run.mcp_url}"
""",
    )
    command = [npm_command(install("hosts"), "codex"), "exec", "--skip-git-repo-check", PROMPT]
    keys = {"CODEX_API_KEY": "none", "OPENAI_BASE_URL": f"{run.model_url}/v1"} if run.llm else {}
    return run.execute(command, {"SCRIPTED_KEY": "none", **keys})


def opencode(run: Run) -> str:
    """Run opencode, by OpenAI's chat completions."""
    model = {"name": "one", "tool_call": True, "limit": {"context": 128_000, "output": 4096}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "scripted",
        "options": {"baseURL": f"{run.model_url}/v1", "apiKey": "none"},
        "models": {"one": model},
    }
    config = {
        "$schema": "https://opencode.ai/config.json",
        "model": "scripted/one",
        "autoupdate": False,
        "provider": {"scripted": provider},
        "mcp": {"tg": {"type": "remote", "url": run.mcp_url, "enabled": True}},
    }
    run.write("opencode.json", json.dumps(config))
    command = [npm_command(install("hosts"), "opencode"), "run", PROMPT]
    return run.execute(
        command, {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    )


def gemini_cli(run: Run) -> str:
    """Gemini CLI, by Gemini's API."""
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "telemetry": {"enabled": False},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
        "mcpServers": {"tg": {"httpUrl": run.mcp_url, "trust": True}},
    }
    run.write(".gemini/settings.json", json.dumps(settings))
    command = [npm_command(install("hosts"), "gemini"), "-m", "gemini-2.5-pro"]
    return run.execute(
        [*command, "--approval-mode", "yolo", "--skip-trust", "-p", PROMPT],
        {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": run.model_url},
    )


def openai_agents(run: Run) -> str:
    """Run openai-agents, by OpenAI's chat completions."""
    return _python(run, "openai_agents_host.py")


def fastmcp(run: Run) -> str:
    """FastMCP's client, which has no model: the script is followed by itself."""
    return _python(run, "fastmcp_host.py")


def inspector(run: Run) -> str:
    """The Inspector's command line, which has no model: a listing, then a call."""
    cli = [npm_command(install("hosts"), "mcp-inspector"), "--cli", run.mcp_url]
    cli += ["--transport", "http", "--method"]
    listed = run.execute([*cli, "tools/list"])
    tool = ["--tool-name", "echo", "--tool-arg", f"message={MESSAGE}"]
    if '"discover_tools"' in listed:
        tool = ["--tool-name", "discover_tools", "--tool-arg", "query=echo a message back"]
    return listed + run.execute([*cli, "tools/call", *tool])


def _python(run: Run, script: str) -> str:
    command = [pip_command(install("hosts"), "python"), str(Path(__file__).with_name(script))]
    return run.execute([*command, run.mcp_url, run.model_url])


WITH_MODEL: dict[str, Callable[[Run], str]] = {
    "claude-code": claude_code,
    "codex": codex,
    "opencode": opencode,
    "gemini-cli": gemini_cli,
    "openai-agents": openai_agents,
}
# Hosts whose base URL `toolgate run` can set.
BEHIND_PROXY = ("claude-code", "codex", "gemini-cli")
WITHOUT_MODEL: dict[str, Callable[[Run], str]] = {"fastmcp": fastmcp, "inspector": inspector}


def trouble(model: ScriptedModel, output: str, *, llm: bool = False) -> str | None:
    """What a host with a model left out; none if it called the tool, saw its answer and ended."""
    if llm and model.turns and not any(step.tool == ENVELOPE for step in model.steps):
        return "its requests did not come through the proxy's envelope"
    if not model.turns:
        return "it never asked the model"
    if not model.steps:
        return (
            f"it showed no tool of the server: {max((turn.tools for turn in model.turns), key=len)}"
        )
    if not any(MESSAGE in result for turn in model.turns for result in turn.results):
        results = [turn.results for turn in model.turns if turn.results]
        return f"the tool's answer did not come back: {results[-1:]}"
    return None if DONE in output else "it did not finish"


def check(name: str, mcp_url: str, llm: Path | None) -> str | None:
    """Runs one host; returns what went wrong, with the end of what it said."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home,
        scripted_model() as model,
    ):
        run = Run(Path(home), mcp_url, model.url, llm)
        if name in WITHOUT_MODEL:
            output = WITHOUT_MODEL[name](run)
            # The message came back, or the search found the tool behind the gateway.
            wrong = None if MESSAGE in output or "__echo" in output else "no answer of a tool"
        else:
            output = WITH_MODEL[name](run)
            wrong = trouble(model, output, llm=llm is not None)
    return f"{wrong}\n{output[-1500:]}" if wrong else None


def main() -> int:
    """Runs the hosts that were named, or all; 1 if one fails."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url", nargs="?", help="an MCP server; without it, the fixture")
    parser.add_argument("--only", nargs="*", help="names of hosts")
    parser.add_argument(
        "--llm", type=Path, help="Toolgate's binary: hosts run behind its LLM proxy"
    )
    arguments = parser.parse_args()
    every = BEHIND_PROXY if arguments.llm else [*WITH_MODEL, *WITHOUT_MODEL]
    failed = 0
    # Gemini CLI disconnects at an event without data.
    with fixture_url("--no-priming") as own_url:
        for name in arguments.only or every:
            started = time.monotonic()
            wrong = check(name, arguments.url or own_url, arguments.llm)
            failed += wrong is not None
            seconds = time.monotonic() - started
            print(f"{name:14} {'FAILED' if wrong else 'ok'} {seconds:.1f} s", flush=True)
            print(f"  {wrong}\n" if wrong else "", end="", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
