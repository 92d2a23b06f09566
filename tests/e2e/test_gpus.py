"""`encoder.gpus` where no GPU can be used: CUDA is shown none, or the driver crashes."""

import subprocess
from pathlib import Path

import pytest
from catalogs import NOTES
from conftest import StartServer
from toolgate_process import ToolgateProcess
from waiting import PATIENCE

CRASHES = """
#include <stdlib.h>
__attribute__((constructor)) static void loaded(void) { abort(); }
"""
"""The source of a library that ends the process that loads it."""


@pytest.fixture(params=["no GPU", "a driver that crashes"])
def reason(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Words that say how the search for GPUs failed; empty where it did not."""
    # No machine has a GPU of this number: the tests hold on machines with GPUs too.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4095")
    if request.param == "no GPU":
        return ""
    library = tmp_path / "libcuda.so.1"
    compiler = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
    subprocess.run(compiler, input=CRASHES, text=True, check=True, timeout=PATIENCE)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    return "signal: 6"


def test_auto_embeds_on_the_cpu_and_says_why(start_server: StartServer, reason: str) -> None:
    server = start_server({"encoder.gpus": "auto"})
    line = next(line for line in server.log_text().splitlines() if "no GPU is used" in line)
    assert reason in line
    assert ("the search for GPUs failed" in line) == bool(reason)
    with server.client() as client:
        client.register_server("notes", NOTES)
        route = client.route("write down what was decided")
    assert [tool.name for tool in route.tools]


def test_require_does_not_start(binary: Path, tmp_path: Path, reason: str) -> None:
    server = ToolgateProcess(binary, tmp_path / "server", {"encoder.gpus": "require"})
    assert server.launch().wait(timeout=PATIENCE) == 1
    log = server.log_text()
    assert "no GPU can be used, and one is required (encoder.gpus)" in log
    assert reason in log
