"""with_server.py [KEY=VALUE...] COMMAND...: runs a command beside a server with these settings.

The command finds the server's address in TOOLGATE_TARGET.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from toolgate_process import ToolgateProcess


def main() -> int:
    """The command's exit status."""
    arguments = sys.argv[1:]
    settings: dict[str, str] = {}
    while arguments and "=" in arguments[0]:
        key, _, value = arguments.pop(0).partition("=")
        settings[key] = value
    binary = Path(os.environ["TOOLGATE_BIN"]).resolve()
    with tempfile.TemporaryDirectory(prefix="toolgate-server-") as folder:
        server = ToolgateProcess(binary, Path(folder), settings).start()
        try:
            environment = {
                **os.environ,
                "TOOLGATE_BIN": str(binary),
                "TOOLGATE_TARGET": server.target,
            }
            status = subprocess.run(arguments, env=environment, check=False).returncode
        finally:
            server.stop()
        if status != 0:
            print(server.log_text()[-4000:], file=sys.stderr)
        return status


if __name__ == "__main__":
    sys.exit(main())
