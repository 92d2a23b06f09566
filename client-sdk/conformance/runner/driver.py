"""One language's driver as a process: a request a line, an answer a line."""

import json
import os
import queue
import subprocess
import threading
from pathlib import Path
from typing import Any

ANSWER_SECONDS = 300
"""The longest that one answer may take; soaks take longest."""


class DriverError(Exception):
    """The driver broke the protocol: it ended, hung, crashed, or wrote something else."""


class Driver:
    """A running driver."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            # A driver has only what is installed with its package.
            env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
        )
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._collect, daemon=True).start()

    def ask(self, op: str, args: dict[str, Any], client: dict[str, Any] | None = None) -> Any:
        """The answer to one request: an object with `ok` or `error`."""
        request = {"op": op, "args": args, **({"client": client} if client is not None else {})}
        assert self._process.stdin is not None
        try:
            # ASCII, so that lone surrogates get through too.
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            line = self._lines.get(timeout=ANSWER_SECONDS)
        except OSError as error:
            raise DriverError(f"it ended: {error}") from error
        except queue.Empty:
            self._process.kill()
            raise DriverError(f"{op}: no answer within {ANSWER_SECONDS} s") from None
        if not line:
            raise DriverError(f"{op}: it ended with {self._process.wait()}; see {self._log.name}")
        answer = json.loads(line)
        kind = answer.get("error", {}).get("kind")
        if kind in ("crash", "driver"):
            raise DriverError(f"{op}: {answer['error']['message']}")
        return answer

    def open_files(self) -> int:
        """File descriptors that the process has open, sockets included."""
        return len(os.listdir(f"/proc/{self._process.pid}/fd"))

    def resident_kib(self) -> int:
        """Its resident memory."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    def close(self) -> int:
        """Ends the driver's input; its exit status."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            return self._process.wait(timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            return self._process.wait()
        finally:
            self._log.close()

    def _collect(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(b"")
