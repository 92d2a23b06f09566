"""The commands of the README and of docs/commands.md run as they stand, after what `make run` does.

A block that can't run here has a comment above it that says why: `<!-- not run: ... -->`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from catalogs import SHIPPED
from conftest import StartServer
from toolgate_process import ToolgateProcess
from waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
PAGES = [(ROOT / "docs" / name).read_text() for name in ("commands.md", "workers.md")]
TEXT = "\n".join([README, *PAGES])
BLOCK = re.compile(r"(<!-- not run: [^>]+ -->\n)?```(sh|python)\n(.*?)```", re.DOTALL)
BLOCKS: list[tuple[str, str, str]] = BLOCK.findall(TEXT)
# Paths of this repository; what a command writes has no folder.
PATH = re.compile(r"(?:^|[\s(`./])((?:tests|examples|docs|client-sdk|k8s|server)/[\w./-]*\w)")


@pytest.fixture
def after_make_run(start_server: StartServer, tmp_path: Path, binary: Path) -> dict[str, str]:
    """The environment of a shell beside a server with the demo's catalogs."""
    server: ToolgateProcess = start_server({})
    with server.client() as client:
        for name in ("git", "slack", "time", "gitlab"):
            client.register_server(name, SHIPPED / f"{name}.json", timeout=120)
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "toolgate").symlink_to(binary.resolve())
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("TOOLGATE_SERVER")}
    inherited.pop("TOOLGATE_BIN", None)
    return {
        **inherited,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "TOOLGATE_ENDPOINT": f"http://{server.target}",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "TARGET": server.target,
        "NO_COLOR": "1",
    }


def test_the_commands_and_snippets_run(after_make_run: dict[str, str]) -> None:
    target = after_make_run.pop("TARGET")
    ran = {"sh": 0, "python": 0}
    for left_out, language, code in BLOCKS:
        if left_out:
            continue
        ran[language] += 1
        if language == "python":
            command = [sys.executable, "-c", code.replace("127.0.0.1:7070", target)]
        else:
            # 3 is an answer: something was found.
            lines = ["found() { [[ $? -eq 3 ]] || exit 1; }", "trap found ERR", code]
            command = ["bash", "-uc", "\n".join(lines)]
        done = subprocess.run(
            command, cwd=ROOT, env=after_make_run, capture_output=True, text=True, timeout=300
        )
        assert done.returncode in (0, 3), f"{code}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}"
        assert done.stdout, f"it printed nothing:\n{code}"
        if language == "python":
            assert "mcp__git__git_diff_unstaged" in done.stdout
            assert done.stdout.endswith("run it\n"), done.stdout
    assert ran["sh"] >= 3, "none was left out by mistake"
    assert ran["python"] == 1


def test_files_that_are_named_are_there() -> None:
    code = "\n".join(code for _, _, code in BLOCKS)
    code += "\n".join(re.findall(r"^    toolgate .*$", TEXT, re.MULTILINE))
    named = set(PATH.findall(code)) | set(re.findall(r"\]\((?!https:)([^)#]+)[^)]*\)", README))
    assert len(named) > 10
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_commands_and_flags_that_are_named_are_there(binary: Path) -> None:
    """Also of those that are not run."""
    code = [line for _, language, code in BLOCKS if language == "sh" for line in code.splitlines()]
    lines = [line.strip().removeprefix("toolgate ") for line in code if "toolgate " in line[:13]]
    lines += re.findall(r"^    toolgate ([^#\n]+)", TEXT, re.MULTILINE)
    helps: dict[tuple[str, ...], str] = {}
    for line in lines:
        words = re.split(r"\s+", line.split("#")[0].strip())
        command = tuple(word for word in words[:2] if re.fullmatch(r"[a-z][a-z-]+", word))
        if words[0] not in ("catalog", "policy", "pack", "bench", "config", "model", "gateway"):
            command = command[:1]
        if command not in helps:
            done = subprocess.run(
                [binary, *command, "--help"], capture_output=True, text=True, timeout=PATIENCE
            )
            assert done.returncode == 0, f"toolgate {line}: {done.stderr}"
            helps[command] = done.stdout
        for flag in (word for word in words if re.fullmatch(r"--[a-z-]+", word)):
            hidden = {"--tier"} if command == ("register",) else set()
            assert flag in helps[command] or flag in hidden, f"toolgate {line}: no {flag}"
