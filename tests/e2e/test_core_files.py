"""Processes that hold keys of others leave no core file."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from toolgate_command import command_environment, run

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="it is the kernel of Linux's to say"
)


def aborted(command: Sequence[str], pipe: Path) -> bool:
    """Ends a program while it opens a pipe to read it. Returns true if its core was written."""
    process = subprocess.Popen(
        command, cwd=pipe.parent, env=command_environment(), stderr=subprocess.DEVNULL
    )
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.prlimit(process.pid, resource.RLIMIT_CORE, (most, most))
    with pipe.open("w"):
        process.send_signal(signal.SIGABRT)
        _, status = os.waitpid(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == -signal.SIGABRT
    return os.WCOREDUMP(status)


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A file of settings that nobody has written."""
    path = tmp_path / "settings.toml"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("arguments", [["llm"], ["run"], ["gateway"]])
def test_what_keys_go_through_leaves_no_core_file(
    binary: Path, pipe: Path, arguments: list[str]
) -> None:
    if not aborted(["cat", str(pipe)], pipe):
        pytest.skip("this machine writes no core files")
    rest = ["--", "true"] if arguments == ["run"] else []
    assert not aborted([str(binary), *arguments, "--config", str(pipe), *rest], pipe)


def test_a_program_behind_the_proxy_may_leave_its_own(binary: Path, tmp_path: Path) -> None:
    asked = "import ctypes; print('dumpable:', ctypes.CDLL(None).prctl(3))"
    ended = run(binary, "run", "--", sys.executable, "-c", asked, folder=tmp_path)
    assert "dumpable: 1" in ended.stdout, ended
