"""A gateway as a process, with the fixture behind it."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fixture_process import BINARY

TOOLGATE = os.environ.get(
    "TOOLGATE_BIN", str(Path(__file__).resolve().parents[2] / "target" / "debug" / "toolgate")
)


@contextmanager
def gateway_url(folder: Path) -> Iterator[str]:
    """Runs a gateway with its files in a folder; gives the URL that hands the fixture through."""
    config = folder / "gateway.toml"
    config.write_text(
        f'[gateway]\nlisten = "127.0.0.1:0"\n[server.fixture]\ncommand = ["{BINARY}", "--stdio"]\n'
    )
    process = subprocess.Popen(
        [TOOLGATE, "gateway", "--config", str(config), "--data-dir", str(folder / "data")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            if "1 server ready" in line:
                break
        serving = re.search(r"serving on (http://\S+)/mcp", said)
        assert serving, f"the gateway ended before it served: {said}"
        yield f"{serving[1]}/mcp/s/fixture"
    finally:
        process.terminate()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()
