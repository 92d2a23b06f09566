"""The gateways that are measured: how each is started before the same MCP servers."""

import json
import os
import subprocess
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from installing import PINS, install, npm_command, pip_command, search_path

Json = dict[str, Any]

ROOT = Path(__file__).resolve().parents[3]
CATALOGS = ROOT / "tests" / "data" / "servers"
# Nothing but loopback is reached.
NO_NETWORK = dict.fromkeys(
    ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"], "http://127.0.0.1:9"
) | {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}


@dataclass(frozen=True)
class Upstream:
    """A server behind a gateway: a command that speaks on stdin and stdout, or a URL."""

    name: str
    catalogs: list[Path]
    command: list[str]
    url: str = ""

    def tools(self) -> list[Json]:
        """Its tools, as its catalogs have them."""
        return [tool for file in self.catalogs for tool in json.loads(file.read_text())["tools"]]


@dataclass(frozen=True)
class Face:
    """A URL of a gateway, and how its tools are called there."""

    label: str
    path: str
    # Separator of a server's name and a tool's; none if the tool's name stands alone.
    separator: str | None
    # The tool that calls the others, if there is one.
    through: str = ""

    def name(self, server: str, tool: str) -> str:
        """Returns the tool's name here."""
        return tool if self.separator is None else f"{server}{self.separator}{tool}"

    def call(self, server: str, tool: str, arguments: Json) -> Json:
        """The parameters of a call of a tool."""
        call = {"name": self.name(server, tool), "arguments": arguments}
        return {"name": self.through, "arguments": call} if self.through else call


@dataclass(frozen=True)
class Launch:
    """A command line with its environment, and the faces that it serves."""

    command: list[str]
    environment: dict[str, str]
    faces: list[Face]


@dataclass(frozen=True)
class Gateway:
    """A gateway, and how it is started before servers, with files in a folder, at a port."""

    name: str
    launch: Callable[[list[Upstream], Path, int], Launch]


def toolgate(
    upstreams: list[Upstream], folder: Path, port: int, settings: tuple[str, ...] = ()
) -> Launch:
    """Toolgate with its own routing plane; the face that hands one server through, if it is one."""
    lines = []
    for upstream in upstreams:
        place = f"url = {json.dumps(upstream.url)}\nauth = 'none'"
        if not upstream.url:
            place = f"command = {json.dumps(upstream.command)}"
        lines.append(f"[server.{upstream.name}]\n{place}\n")
    config = folder / "gateway.toml"
    config.write_text("\n".join(lines))
    command = [os.environ["TOOLGATE_BIN"], "gateway", "--config", str(config)]
    command += ["--data-dir", str(folder / "data"), "--listen", f"127.0.0.1:{port}"]
    for setting in settings:
        command += ["--set", setting]
    faces = [
        Face("Toolgate, search (`/mcp`)", "/mcp", "__", "call_tool"),
        Face("Toolgate, all tools (`/mcp/all`)", "/mcp/all", "__"),
    ]
    if len(upstreams) == 1:
        path = f"/mcp/s/{upstreams[0].name}"
        faces = [Face("Toolgate, one server (`/mcp/s/NAME`)", path, None)]
    return Launch(command, {}, faces)


def fastmcp(
    label: str, options: tuple[str, ...] = (), through: str = ""
) -> Callable[[list[Upstream], Path, int], Launch]:
    """FastMCP's `create_proxy`."""

    def launch(upstreams: list[Upstream], folder: Path, port: int) -> Launch:
        python = pip_command(install("peer-fastmcp"), "python")
        script = Path(__file__).with_name("fastmcp_gateway.py")
        config = _mcp_json(upstreams, folder, "transport", "http")
        command = [python, str(script), str(config), str(port), *options]
        separator = "_" if len(upstreams) > 1 else None
        environment = {"FASTMCP_CHECK_FOR_UPDATES": "off", "FASTMCP_LOG_LEVEL": "WARNING"}
        return Launch(command, environment, [Face(label, "/mcp", separator, through)])

    return launch


def litellm(upstreams: list[Upstream], folder: Path, port: int) -> Launch:
    """LiteLLM's proxy with MCP servers and without models."""
    servers: Json = {}
    for upstream in upstreams:
        if upstream.url:
            place: Json = {"transport": "http", "url": upstream.url}
        else:
            program, *arguments = upstream.command
            place = {"transport": "stdio", "command": program, "args": arguments}
        servers[upstream.name] = {**place, "allow_all_keys": True}
    config = folder / "litellm.yaml"
    # JSON is YAML.
    config.write_text(json.dumps({"model_list": [], "mcp_servers": servers}))
    command = [pip_command(install("peer-litellm"), "litellm"), "--config", str(config)]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    environment = {
        "LITELLM_ENABLE_MCP_STDIO": "true",
        "LITELLM_MCP_STDIO_EXTRA_COMMANDS": Path(upstreams[0].command[0]).name,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    }
    return Launch(command, environment, [Face("LiteLLM", "/mcp", "-")])


def mcp_proxy_python(upstreams: list[Upstream], folder: Path, port: int) -> Launch:
    """The Python package mcp-proxy before one server."""
    command = [pip_command(install("peer-mcp-proxy-python"), "mcp-proxy"), "--port", str(port)]
    command += ["--", *upstreams[0].command]
    return Launch(command, {"HOME": str(folder)}, [Face("mcp-proxy (PyPI)", "/mcp", None)])


def mcp_proxy_node(upstreams: list[Upstream], folder: Path, port: int) -> Launch:
    """The npm package mcp-proxy before one server."""
    program = npm_command(install("peer-mcp-proxy-node"), "mcp-proxy")
    command = ["node", program, "--host", "127.0.0.1", "--port", str(port), "--server", "stream"]
    command += ["--", *upstreams[0].command]
    return Launch(command, {"HOME": str(folder)}, [Face("mcp-proxy (npm)", "/mcp", None)])


TOOLGATE = Gateway("Toolgate", toolgate)
FASTMCP = Gateway("FastMCP", fastmcp("FastMCP, `create_proxy`"))
FASTMCP_CONNECTED = Gateway(
    "FastMCP, connected", fastmcp("FastMCP, `create_proxy`, connected client", ("--connected",))
)
FASTMCP_BM25 = Gateway(
    "FastMCP, BM25",
    fastmcp(
        "FastMCP, `BM25SearchTransform`, connected client",
        ("--connected", "--bm25", "5"),
        "call_tool",
    ),
)
LITELLM = Gateway("LiteLLM", litellm)
MCP_PROXY_PYTHON = Gateway("mcp-proxy (PyPI)", mcp_proxy_python)
MCP_PROXY_NODE = Gateway("mcp-proxy (npm)", mcp_proxy_node)


def environment(folder: Path) -> dict[str, str]:
    """Returns the environment of a gateway's process: this one without proxies to the outside."""
    inherited = {name: value for name, value in os.environ.items() if name != "TOOLGATE_BIN"}
    return inherited | NO_NETWORK | {"PATH": search_path(), "TMPDIR": str(folder)}


def _mcp_json(upstreams: list[Upstream], folder: Path, kind: str, http: str) -> Path:
    servers: Json = {}
    for upstream in upstreams:
        if upstream.url:
            servers[upstream.name] = {"url": upstream.url, kind: http}
        else:
            program, *arguments = upstream.command
            servers[upstream.name] = {"command": program, "args": arguments}
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    return file


def versions() -> str:
    """The versions that are compared, of the peers and of Toolgate."""
    pins = tomllib.loads(PINS.read_text())
    named = [
        f"{package} {version} ({ {'pip': 'PyPI', 'npm': 'npm'}[registry] })"
        for group, registries in pins.items()
        if group.startswith("peer-")
        for registry, packages in registries.items()
        for package, version in packages.items()
    ]
    command = [os.environ["TOOLGATE_BIN"], "--version"]
    own = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return ", ".join([own, *named])
