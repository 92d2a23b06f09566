"""Real hosts with one MCP server, `tg`, and the scripted model in the place of theirs.

    python tests/mcp/hosts/hosts.py                              # a gateway, which it starts
    python tests/mcp/hosts/hosts.py http://127.0.0.1:7080/mcp    # a server or gateway that runs
    python tests/mcp/hosts/hosts.py --llm target/debug/toolgate  # the fixture, and `toolgate run`

Each must find a tool, call it, and finish. Before a gateway of this script's own, each must also
mend a call that was refused, and call tools that a server added while the host ran: by searching,
and by the list that changed. Behind the LLM proxy each must also have a conversation of 20 answers
with 60 and 200 tools, with the same calls as without the proxy. What hosts with a model send to it
is compared with the files in `golden`. Nothing leaves the machine: every other address is behind a
proxy that refuses.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
# Behind this folder: both have a `scripted_model`.
sys.path.append(str(Path(__file__).resolve().parents[2] / "e2e"))

from catalog_server import catalog_server
from fixture_gateway import gateway
from fixture_process import fixture_url
from golden_bodies import difference
from installing import install, npm_command, pip_command, search_path
from scripted_model import (
    DONE,
    ENVELOPE,
    HIDDEN_SEARCH,
    MESSAGE,
    Script,
    ScriptedModel,
    Turn,
    read_text,
    script_of,
    scripted_model,
)
from working_script import PLAN, REQUEST, Working

PROMPT = "Say hello with the echo tool"
SECONDS = 90

NO_NETWORK = dict.fromkeys(
    ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"], "http://127.0.0.1:9"
) | {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}


GARDEN = Path(__file__).with_name("garden_server.py")

# Scripts before a gateway, and the faces that they are for.
FACES = {
    "find": "/mcp",
    "mend": "/mcp",
    "grow-behind-search": "/mcp",
    "grow-in-list": "/mcp/s/garden",
}

# The script whose last request is compared with a file: a search, a refusal, and a call.
GOLDEN = "mend"

# The first decision waits for the encoder of a plane of its own.
LLM = """[llm]
strategy = "STRATEGY"
defer = ["mcp_*", "tg_*"]
decision_timeout = "1m"
first_decision_timeout = "2m"
"""


@dataclass
class Run:
    """The setting of a host: its own home, the MCP server's URL, the model's, and the script."""

    home: Path
    mcp_url: str
    model_url: str
    script: str = "find"
    # Binary of Toolgate, if the host's requests go through an LLM proxy.
    llm: Path | None = None
    strategy: str = "envelope"
    prompt: str = PROMPT
    # The group of `pins.toml` that has the host.
    group: str = "hosts"
    seconds: int = SECONDS
    # Lets a host defer tools by a search of its own, if it has one.
    is_own_search: bool = False
    # Lets Codex use a model of which it does not know that it searches, also without the proxy.
    is_model_unknown: bool = False

    @property
    def plant(self) -> str:
        """A word that no other run has."""
        return f"fern_{self.home.name.lower()}"

    def write(self, path: str, text: str) -> Path:
        """Writes a file of the host into its home."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def execute(self, command: list[str], env: dict[str, str] | None = None) -> str:
        """Runs a command in the home; returns what it said. It is ended after `seconds`."""
        environment = {"PATH": search_path(), "HOME": str(self.home), **NO_NETWORK}
        if self.llm:
            self.write("llm.toml", LLM.replace("STRATEGY", self.strategy))
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
            return process.communicate(timeout=self.seconds)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return process.communicate()[0] + f"\n(ended after {self.seconds} s)"


def claude_code(run: Run) -> str:
    """Claude Code, by Anthropic's messages."""
    servers = {"mcpServers": {"tg": {"type": "http", "url": run.mcp_url}}}
    config = run.write("mcp.json", json.dumps(servers))
    command = [npm_command(install(run.group), "claude"), "-p", run.prompt]
    command += ["--mcp-config", str(config)]
    return run.execute(
        [*command, "--strict-mcp-config", "--allowedTools", "mcp__tg", "--output-format", "json"],
        {
            "ANTHROPIC_BASE_URL": run.model_url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            # Else the first request may go out before the server is connected.
            "MCP_CONNECTION_NONBLOCKING": "0",
            "ENABLE_TOOL_SEARCH": "true" if run.is_own_search else "false",
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
    model = f'model = "{"unknown" if run.llm or run.is_model_unknown else "gpt-5.4"}"'
    if not run.llm:
        model += '\nmodel_provider = "scripted"'
    run.write(
        ".codex/config.toml",
        f"""
{model}
approval_policy = "never"
sandbox_mode = "read-only"
{"" if run.llm else provider}
[mcp_servers.tg]
url = "{run.mcp_url}"
default_tools_approval_mode = "approve"
required = true
""",
    )
    return _codex(run, ["exec", "--skip-git-repo-check", run.prompt])


def codex_again(run: Run) -> str:
    """Codex, with the next request of a person in the same conversation."""
    return _codex(run, ["exec", "--skip-git-repo-check", "resume", "--last", "Go on"])


def _codex(run: Run, arguments: list[str]) -> str:
    command = [npm_command(install("hosts"), "codex"), *arguments]
    keys = {"CODEX_API_KEY": "none", "OPENAI_BASE_URL": f"{run.model_url}/v1"} if run.llm else {}
    return run.execute(command, {"SCRIPTED_KEY": "none", **keys})


def opencode(run: Run) -> str:
    """Run opencode, by OpenAI's chat completions."""
    model = {"name": "one", "tool_call": True, "limit": {"context": 128_000, "output": 4096}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "scripted",
        "options": {
            "baseURL": "{env:OPENAI_BASE_URL}" if run.llm else f"{run.model_url}/v1",
            "apiKey": "none",
        },
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
    command = [npm_command(install("hosts"), "opencode"), "run", run.prompt]
    environment = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    # The proxy's own base URL, which opencode gets the proxy's address in the place of.
    behind = {"OPENAI_BASE_URL": f"{run.model_url}/v1"} if run.llm else {}
    return run.execute(command, environment | behind)


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
        [*command, "--approval-mode", "yolo", "--skip-trust", "-p", run.prompt],
        {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": run.model_url},
    )


def openai_agents(run: Run) -> str:
    """Run openai-agents, by OpenAI's chat completions."""
    return _python(run, "openai_agents_host.py")


def fastmcp(run: Run) -> str:
    """FastMCP's client, which has no model: the script is followed by itself."""
    return _python(run, "fastmcp_host.py")


def inspector(run: Run) -> str:
    """The Inspector's command line, which has no model: each list and each call is a process."""
    cli = [npm_command(install("hosts"), "mcp-inspector"), "--cli", run.mcp_url]
    cli += ["--transport", "http", "--method"]
    script = script_of(run.script, run.plant)
    output, results = "", list[str]()
    while True:
        listed = run.execute([*cli, "tools/list"])
        output += listed
        step = script(Turn(re.findall(r'^ {6}"name": "([^"]+)"', listed, re.MULTILINE), results))
        if step is None:
            return output
        call = [*cli, "tools/call", "--tool-name", step.tool]
        for name, value in step.arguments.items():
            text = value if isinstance(value, str) else json.dumps(value)
            call += ["--tool-arg", f"{name}={text}"]
        results.append(run.execute(call))
        output += results[-1]


def _python(run: Run, script: str) -> str:
    command = [pip_command(install("hosts"), "python"), str(Path(__file__).with_name(script))]
    return run.execute([*command, run.mcp_url, run.model_url, run.script, run.plant])


WITH_MODEL: dict[str, Callable[[Run], str]] = {
    "claude-code": claude_code,
    "codex": codex,
    "opencode": opencode,
    "gemini-cli": gemini_cli,
    "openai-agents": openai_agents,
}
# Hosts whose base URL `toolgate run` can set.
BEHIND_PROXY = ("claude-code", "codex", "opencode", "gemini-cli")
# Those of which a second version is there too.
LATER = ("claude-code",)
# Numbers of tools of the long conversations behind the proxy.
COUNTS = (60, 200)
WITHOUT_MODEL: dict[str, Callable[[Run], str]] = {"fastmcp": fastmcp, "inspector": inspector}

# Hosts that see a list that changed with the next request of a person only.
AGAIN = {"codex": codex_again}


def trouble(
    model: ScriptedModel, output: str, wanted: str = MESSAGE, *, is_llm: bool = False
) -> str | None:
    """Returns what a host left out; None if it called the tool, saw its answer and ended."""
    if is_llm and model.turns and not any(step.tool == ENVELOPE for step in model.steps):
        return "its requests did not come through the proxy's envelope"
    if not model.turns:
        return "it never asked the model"
    if not model.steps:
        return (
            f"it showed no tool of the server: {max((turn.tools for turn in model.turns), key=len)}"
        )
    if not any(turn.saw(wanted) for turn in model.turns):
        results = [turn.results for turn in model.turns if turn.results]
        return f"the tool's answer did not come back: {results[-1:]}"
    return None if DONE in output else "it did not finish"


def check_behind_proxy(name: str, mcp_url: str, llm: Path, group: str = "hosts") -> str | None:
    """Runs one host behind `toolgate run`; returns what went wrong, with the end of its output."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home,
        scripted_model() as model,
    ):
        output = WITH_MODEL[name](Run(Path(home), mcp_url, model.url, llm=llm, group=group))
        wrong = trouble(model, output, is_llm=True)
    return f"{wrong}\n{output[-1500:]}" if wrong else None


def check_conversation(
    name: str, count: int, llm: Path, group: str, *, is_update: bool
) -> str | None:
    """Runs a long conversation of one host with so many tools, without the proxy and behind it.

    Returns what differs: a call, the end, or the first rewritten request from its file.
    """
    calls = []
    for behind in (None, llm):
        working = Working()
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home,
            catalog_server(count) as catalog,
            scripted_model(working) as model,
        ):
            run = Run(Path(home), catalog.url, model.url, llm=behind, prompt=REQUEST, group=group)
            run.is_model_unknown = True
            run.seconds = 4 * SECONDS
            output = WITH_MODEL[name](run)
        calls.append(catalog.calls)
        if DONE not in output or len(catalog.calls) != len(PLAN):
            told = f"{len(catalog.calls)} calls, and without {working.given_up}"
            return f"it did not finish: {told}\n{output[-1500:]}"
    if calls[0] != calls[1]:
        return f"its calls are others: {calls}"
    first = next(one["body"] for one in model.requests if HIDDEN_SEARCH in json.dumps(one))
    kind = "llm-later" if group == "later-hosts" else "llm"
    return difference(f"{kind}-{name}-{count}", first, is_update=is_update)


def check(name: str, script: str, mcp_url: str, *, is_update: bool | None = None) -> str | None:
    """Runs one host; returns what went wrong, with the end of what it said.

    With `is_update`, the last request to the model is compared with its file, or written to it.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, ExitStack() as stack:
        run = Run(Path(home), mcp_url, "", script)
        wanted = read_text(run.plant) if script.startswith("grow") else MESSAGE
        if name in WITHOUT_MODEL:
            output = WITHOUT_MODEL[name](run)
            wrong = None if wanted in output else "no answer of the tool"
            return f"{wrong}\n{output[-1500:]}" if wrong else None
        scripted: Script = script_of(script, run.plant)
        model = stack.enter_context(scripted_model(scripted))
        run.model_url = model.url
        output = WITH_MODEL[name](run)
        wrong = trouble(model, output, wanted)
        if wrong and script == "grow-in-list" and name in AGAIN:
            output += AGAIN[name](run)
            wrong = trouble(model, output, wanted)
        if wrong is None and is_update is not None:
            output = ""
            wrong = difference(name, model.last_body(), is_update=is_update)
    return f"{wrong}\n{output[-1500:]}" if wrong else None


def garden(name: str) -> str:
    """The entry of a server whose list of tools grows."""
    return f"[server.{name}]\ncommand = {json.dumps([sys.executable, str(GARDEN)])}\n"


@contextmanager
def garden_at_mcp() -> Iterator[str]:
    """The URL of that server for the Inspector, which takes no path that does not end with /mcp."""
    with (
        tempfile.TemporaryDirectory() as folder,
        gateway(Path(folder), more=garden("mcp")) as running,
    ):
        yield f"{running.root}/mcp/s/mcp"


def report(name: str, script: str, checked: Callable[[], str | None]) -> int:
    """Checks one host and says how it went; 1 if it failed."""
    started = time.monotonic()
    wrong = checked()
    seconds = time.monotonic() - started
    print(f"{name:14} {script:18} {'FAILED' if wrong else 'ok'} {seconds:.1f} s", flush=True)
    print(f"  {wrong}\n" if wrong else "", end="", flush=True)
    return int(wrong is not None)


def all_behind_proxy(names: Sequence[str], url: str | None, llm: Path, *, is_update: bool) -> int:
    """Runs hosts behind `toolgate run`; how many failed. Without a URL, the fixture is theirs."""
    failed = 0
    # Gemini CLI disconnects at an event without data.
    with fixture_url("--no-priming") as own_url:
        for name in names:
            for group in ("hosts", "later-hosts") if name in LATER else ("hosts",):
                kind = "later " if group == "later-hosts" else ""
                checked = partial(check_behind_proxy, name, url or own_url, llm, group)
                failed += report(name, f"{kind}llm", checked)
                for count in () if url else COUNTS:
                    talk = partial(check_conversation, name, count, llm, group)
                    checked = partial(talk, is_update=is_update)
                    failed += report(name, f"{kind}llm {count}", checked)
    return failed


def main() -> int:
    """Runs the hosts that were named, or all; 1 if one fails."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url", nargs="?", help="an MCP server; without it, a gateway of its own")
    parser.add_argument("--only", nargs="*", help="names of hosts")
    parser.add_argument(
        "--llm", type=Path, help="Toolgate's binary: hosts run behind its LLM proxy"
    )
    parser.add_argument("--scripts", nargs="*", choices=FACES, help="names of scripts")
    parser.add_argument(
        "--update-golden", action="store_true", help="writes the files instead of comparing"
    )
    arguments = parser.parse_args()
    if arguments.llm:
        names = arguments.only or BEHIND_PROXY
        is_update = arguments.update_golden
        failed = all_behind_proxy(names, arguments.url, arguments.llm, is_update=is_update)
        return int(failed > 0)
    failed = 0
    with ExitStack() as stack:
        places = {"find": arguments.url}
        if not arguments.url:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            running = stack.enter_context(gateway(Path(folder), more=garden("garden")))
            places = {script: running.root + face for script, face in FACES.items()}
        for name in arguments.only or [*WITH_MODEL, *WITHOUT_MODEL]:
            for script in arguments.scripts or places:
                is_kept = script == GOLDEN and name in WITH_MODEL
                is_update = arguments.update_golden if is_kept else None
                url = places[script]
                if name == "inspector" and script == "grow-in-list":
                    url = stack.enter_context(garden_at_mcp())
                checked = partial(check, name, script, url, is_update=is_update)
                failed += report(name, script, checked)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
