"""Packages that the MCP tests run, installed at pinned versions into `.cache/mcp`."""

import fcntl
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

PINS = Path(__file__).with_name("pins.toml")
CACHE = Path(__file__).resolve().parents[2] / ".cache" / "mcp"


def install(group: str) -> Path:
    """Installs a group of packages once for each change of its pins; returns its folder."""
    pins = tomllib.loads(PINS.read_text())[group]
    folder = CACHE / group
    stamp = folder / ".installed"
    wanted = json.dumps(pins, sort_keys=True)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        # Tests of several groups run beside each other.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted:
            if "npm" in pins:
                _install_from_npm(folder, pins["npm"])
            if "pip" in pins:
                _install_from_pip(folder, pins["pip"])
            stamp.write_text(wanted)
    return folder


def search_path() -> str:
    """A PATH with the pinned Node.js before all else."""
    node = install("conformance") / "node_modules" / "node" / "bin"
    return f"{node}{os.pathsep}{os.environ['PATH']}"


def npm_command(folder: Path, name: str) -> str:
    """The path of a command that an npm package of the folder brings."""
    return str(folder / "node_modules" / ".bin" / name)


def pip_command(folder: Path, name: str) -> str:
    """The path of a command that a Python package of the folder brings."""
    return str(folder / "venv" / "bin" / name)


def _install_from_npm(folder: Path, versions: dict[str, str]) -> None:
    (folder / "package.json").write_text('{"private": true}')
    packages = [f"{name}@{version}" for name, version in versions.items()]
    quiet = ["--no-audit", "--no-fund", "--silent", "--save-exact"]
    environment = os.environ | {
        "PUPPETEER_SKIP_DOWNLOAD": "1",
        "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1",
    }
    subprocess.run(["npm", "install", *quiet, *packages], cwd=folder, env=environment, check=True)


def _install_from_pip(folder: Path, versions: dict[str, str]) -> None:
    packages = [f"{name}=={version}" for name, version in versions.items()]
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    pip = [pip_command(folder, "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *packages], check=True)
