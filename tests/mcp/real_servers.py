"""Twelve MCP servers from npm and PyPI: what they list and answer, directly and through a URL.

    python tests/mcp/real_servers.py                          # through a gateway, which it starts
    python tests/mcp/real_servers.py --direct                 # each with itself
    python tests/mcp/real_servers.py --box B --write-config gateway.toml     # for a gateway, then:
    python tests/mcp/real_servers.py --box B http://127.0.0.1:7080/mcp/s/    # + the server's name

Nothing here leaves the machine: servers that need an account get a wrong key, and calls of theirs
end with an error that says so.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from fixture_gateway import TOOLGATE
from gateway_process import GatewayProcess
from installing import install, npm_command, pip_command, search_path
from mcp_client import Client, Http, Json, McpError, Stdio, fields_of

# Moments that a server writes into its texts, and their days of the week.
TIMES = r"\d{4}-\d\d-\d\dT[\d:.+-]+|\b[A-Z][a-z]+day\b"


@dataclass(frozen=True)
class Call:
    """A call that changes nothing, and what in its answer differs from run to run."""

    tool: str
    arguments: Json = field(default_factory=dict)
    # A regular expression; what it matches is masked before answers are compared.
    varies: str = ""


@dataclass(frozen=True)
class Server:
    """A server: how it is started, and what is asked of it."""

    name: str
    command: list[str]
    calls: list[Call]
    env: dict[str, str] = field(default_factory=dict)


@dataclass
class Observed:
    """Answers of a server: its tools and the answers to its calls, each field as it was written."""

    era: str
    tools: list[Json]
    tools_text: str
    answers: list[str]


def servers(box: Path) -> list[Server]:
    """The twelve servers; `box` is a folder that they may look at."""
    folder = install("servers")

    def npm(name: str, *arguments: str) -> list[str]:
        return ["node", npm_command(folder, name), *arguments]

    def pip(name: str, *arguments: str) -> list[str]:
        return [pip_command(folder, name), *arguments]

    def file(name: str) -> Json:
        return {"path": str(box / "files" / name)}

    repository = {"repo_path": str(box / "repository")}
    return [
        Server(
            "everything",
            npm("mcp-server-everything", "stdio"),
            [
                Call("echo", {"message": "hello"}),
                Call("get-sum", {"a": 2, "b": 3}),
                Call("get-tiny-image"),
                Call("get-structured-content", {"location": "Chicago"}),
                Call("get-resource-links", {"count": 2}),
                Call("no-such-tool"),
            ],
        ),
        Server(
            "filesystem",
            npm("mcp-server-filesystem", str(box / "files")),
            [
                Call("list_directory", {"path": str(box / "files")}),
                Call("read_text_file", file("one.txt")),
                Call("directory_tree", {"path": str(box / "files")}),
                Call("read_text_file", file("absent.txt")),
                Call("list_allowed_directories"),
            ],
        ),
        Server(
            "memory",
            npm("mcp-server-memory"),
            [
                Call("read_graph"),
                Call("search_nodes", {"query": "nothing"}),
                Call("open_nodes", {"names": ["nobody"]}),
            ],
            {"MEMORY_FILE_PATH": str(box / "memory.json")},
        ),
        Server(
            "sequential-thinking",
            npm("mcp-server-sequential-thinking"),
            [
                Call(
                    "sequentialthinking",
                    {
                        "thought": "one",
                        "nextThoughtNeeded": False,
                        "thoughtNumber": 1,
                        "totalThoughts": 1,
                    },
                ),
                Call("sequentialthinking", {"thought": "without the rest"}),
            ],
        ),
        Server(
            "playwright",
            npm("playwright-mcp", "--headless", "--executable-path", "/no/browser"),
            [Call("browser_tabs", {"action": "none of them"}), Call("browser_no_such_tool")],
        ),
        Server(
            "notion",
            npm("notion-mcp-server"),
            [Call("API-no-such-tool"), Call("API-get-self")],
            {"NOTION_TOKEN": "wrong", **NO_NETWORK},
        ),
        Server(
            "mongodb",
            npm("mongodb-mcp-server", "--telemetry", "disabled"),
            [Call("list-databases"), Call("find", {"database": "d", "collection": "c"})],
        ),
        Server(
            "sentry",
            npm("sentry-mcp", "--access-token=wrong"),
            [Call("no_such_tool"), Call("find_projects", {})],
            NO_NETWORK,
        ),
        Server(
            "chrome-devtools",
            npm("chrome-devtools-mcp", "--headless", "--executablePath", "/no/browser"),
            [Call("list_pages"), Call("no_such_tool")],
        ),
        Server(
            "time",
            pip("mcp-server-time", "--local-timezone", "UTC"),
            [
                Call("get_current_time", {"timezone": "UTC"}, TIMES),
                Call("get_current_time", {"timezone": "Nowhere/Here"}),
                Call(
                    "convert_time",
                    {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
                    r"\d{4}-\d\d-\d\d|\b[A-Z][a-z]+day\b",
                ),
            ],
        ),
        Server(
            "git",
            pip("mcp-server-git", "-r", str(box / "repository")),
            [
                Call("git_status", repository),
                Call("git_log", repository),
                Call("git_diff_unstaged", repository),
                Call("git_show", {**repository, "revision": "no-such-revision"}),
            ],
        ),
        Server(
            "fetch",
            pip("mcp-server-fetch", "--ignore-robots-txt"),
            [Call("fetch", {"url": "http://127.0.0.1:9/"}), Call("fetch", {"url": "no URL"})],
        ),
    ]


# Proxies that refuse, so that no request of a server with a wrong key leaves the machine.
NO_NETWORK = dict.fromkeys(
    ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"], "http://127.0.0.1:9"
) | {"NODE_USE_ENV_PROXY": "1"}


def make_box(box: Path) -> None:
    """Two files and a repository of one commit, the same at every run."""
    (box / "files").mkdir(parents=True)
    (box / "files" / "one.txt").write_text("one\n")
    (box / "files" / "two.txt").write_text("two\n")
    repository = box / "repository"
    author = [
        "-c",
        "user.name=T",
        "-c",
        "user.email=t@example.org",
        "-c",
        "init.defaultBranch=main",
    ]
    date = "2026-01-01T00:00:00+0000"
    environment = os.environ | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}

    def git(*arguments: str) -> None:
        command = ["git", *author, *arguments]
        subprocess.run(command, cwd=repository, env=environment, check=True, capture_output=True)

    repository.mkdir()
    git("init")
    (repository / "one.txt").write_text("one\n")
    git("add", "one.txt")
    git("commit", "-m", "one")
    (repository / "one.txt").write_text("one and more\n")


def direct(server: Server, box: Path) -> Client:
    """A connection to a server's own process."""
    environment = {"PATH": search_path(), "HOME": str(box), **server.env}
    return Client(Stdio(server.command, environment))


def through(url: str) -> Callable[[Server, Path], Client]:
    """Connections through a URL to which the server's name is added."""

    def connect(server: Server, _: Path) -> Client:
        return Client(Http(url.rstrip("/") + "/" + server.name))

    return connect


def observe(server: Server, client: Client) -> Observed:
    """Lists the tools and makes the calls."""
    with client:
        texts = client.tool_texts()
        answers = [_answer(call, client) for call in server.calls]
    tools = [json.loads(text) for text in texts]
    return Observed(client.era, tools, "\n".join(texts), answers)


def canonical(value: Any) -> str:
    """JSON whose order of keys and of lists is the server's."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _answer(call: Call, client: Client) -> str:
    answer = client.call(call.tool, call.arguments)
    if "error" in answer:
        text = canonical(answer)
    else:
        fields = fields_of(fields_of(client.text)["result"])
        # `resultType` and `_meta` belong to the era of a connection, not to the tool.
        bare = [f'"{key}":{fields[key]}' for key in fields if key not in ("resultType", "_meta")]
        text = "\n".join(bare)
    return re.sub(call.varies, "~", text) if call.varies else text


def differences(server: Server, first: Observed, second: Observed) -> list[str]:
    """Lists where two observations of a server do not agree, one line for each."""
    found = []
    if first.tools_text != second.tools_text:
        names = [[tool["name"] for tool in observed.tools] for observed in (first, second)]
        found.append(
            f"tools/list: {names[0]} and {names[1]}"
            if names[0] != names[1]
            else "tools/list: definitions"
        )
    for call, one, other in zip(server.calls, first.answers, second.answers, strict=True):
        if one != other:
            found.append(f"{call.tool}: {one[:300]} and {other[:300]}")
    return found


def tokens(texts: list[str]) -> int:
    """cl100k tokens, by the vocabulary that the product's own counter ships."""
    folder = install("servers")
    vocabularies = Path.home().glob(
        ".cargo/registry/src/*/tiktoken-rs-*/assets/cl100k_base.tiktoken"
    )
    vocabulary = next(iter(sorted(vocabularies)), None)
    if vocabulary is None:
        raise FileNotFoundError("no cl100k_base.tiktoken: build the workspace first")
    done = subprocess.run(
        [pip_command(folder, "python"), "-c", COUNT, str(vocabulary)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


COUNT = """
import base64, json, sys, tiktoken
ranks = {}
for line in open(sys.argv[1]):
    token, rank = line.split()
    ranks[base64.b64decode(token)] = int(rank)
pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
           r" ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")
encoding = tiktoken.Encoding("cl100k", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
print(sum(len(encoding.encode_ordinary(text)) for text in json.load(sys.stdin)))
"""


def prompt_text(tool: Json) -> str:
    """Returns what a host puts into a prompt of a tool: its name, description and schema."""
    keys = ("name", "description", "inputSchema")
    return canonical({key: tool[key] for key in keys if key in tool})


def gateway_config(box: Path) -> str:
    """A gateway's configuration with the twelve servers, started as `direct` starts them."""
    allowed = ["node", pip_command(install("servers"), "*")]
    lines = ["[gateway.spawn]", f"allow = {json.dumps(allowed)}"]
    for server in servers(box):
        environment = {"PATH": search_path(), "HOME": str(box), **server.env}
        pairs = ", ".join(f"{name} = {json.dumps(value)}" for name, value in environment.items())
        lines += [f"[server.{server.name}]", f"command = {json.dumps(server.command)}"]
        lines += [f"env = {{ {pairs} }}"]
    return "\n".join(lines) + "\n"


@contextmanager
def own_gateway(box: Path, folder: Path) -> Iterator[str]:
    """Runs a gateway before the servers; says what a host starts with, and gives its URL."""
    process = GatewayProcess(Path(TOOLGATE), folder, gateway_config(box))
    began = time.monotonic()
    with ExitStack() as stack:
        stack.callback(process.__exit__)
        process.start("serving on")
        tools = process.tools()
        first = time.monotonic() - began
        process.wait_for("behind discover_tools")
        ready = time.monotonic() - began
        print("".join(line for line in process.said if ": ready in " in line), end="")
        whole = tokens([canonical(tool) for tool in tools])
        shown = tokens([prompt_text(tool) for tool in tools])
        print(f"first list of tools after {first:.2f} s, all ready after {ready:.1f} s")
        print(f"a host starts with {len(tools)} tools: {shown} tokens, {whole} with annotations")
        yield f"{process.url}/mcp/s/"


def compare(server: Server, box: Path, connect: Callable[[Server, Path], Client]) -> list[Json]:
    """Compares a server's own process with a second connection; returns its tools.

    Raises:
        DifferentError: They list or answer different things.
    """
    started = time.monotonic()
    first = observe(server, direct(server, box))
    found = differences(server, first, observe(server, connect(server, box)))
    seconds = time.monotonic() - started
    print(
        f"{server.name:20} {first.era} {len(first.tools):3} tools,"
        f" {len(server.calls)} calls, {len(found)} differences, {seconds:.1f} s",
        flush=True,
    )
    if found:
        raise DifferentError("".join(f"  {line}\n" for line in found))
    return first.tools


class DifferentError(Exception):
    """A server that is another through the gateway, one difference a line."""


def main() -> int:
    """Compares each server with itself behind a URL; 1 if one differs or fails."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url", nargs="?", help="the server's name is added to it")
    parser.add_argument("--direct", action="store_true", help="each with itself, no gateway")
    parser.add_argument("--only", nargs="*", help="names of servers")
    parser.add_argument("--box", type=Path, help="the folder that servers see; a temporary one")
    parser.add_argument(
        "--write-config", type=Path, help="writes a gateway's configuration, no more"
    )
    arguments = parser.parse_args()
    failed, texts, calls = list[str](), list[str](), 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        box = (arguments.box or folder / "box").resolve()
        if not (box / "repository").exists():
            make_box(box)
        if arguments.write_config:
            arguments.write_config.write_text(gateway_config(box))
            return 0
        url = arguments.url
        if not url and not arguments.direct:
            url = stack.enter_context(own_gateway(box, folder))
        for server in servers(box):
            if arguments.only and server.name not in arguments.only:
                continue
            try:
                tools = compare(server, box, through(url) if url else direct)
            except (McpError, OSError, DifferentError) as error:
                failed.append(server.name)
                print(f"{server.name:20} FAILED\n{error}", flush=True)
                continue
            texts += [prompt_text(tool) for tool in tools]
            calls += len(server.calls)
    print(f"{calls} calls, {len(texts)} tools, {tokens(texts)} cl100k tokens of their prompts")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
