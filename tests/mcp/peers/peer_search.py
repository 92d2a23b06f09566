"""Measures whether searches of gateways find the tools that requests of people are for."""

import json
import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from asking_hosts import LegacyHost, text_of
from peer_gateways import CATALOGS, ROOT, Gateway, Json, Upstream, fastmcp, toolgate
from peer_process import Running
from toolgate_process import free_port

INTENTS = ROOT / "tests" / "data" / "intents" / "people.jsonl"
REQUESTS = 100
MOST = 10
CUTS = (1, 5, 10)


@dataclass(frozen=True)
class Request:
    """Somebody's want, and the tools of which each would do, as SERVER/TOOL."""

    text: str
    tools: frozenset[str]


@dataclass(frozen=True)
class Search:
    """A gateway's search: its tool, its arguments, and the names in its answer."""

    gateway: Gateway
    separator: str
    call: Callable[[str, int], Json]
    names: Callable[[Json], list[str]]


@dataclass
class Found:
    """Places at which right tools stood, one for each request; none if it was not found."""

    label: str
    places: list[int | None]
    milliseconds: list[float]
    # Answers with five results at most.
    answers: list[str]

    def share(self, cut: int) -> float:
        """The share of requests with a right tool among the first."""
        return statistics.mean(place is not None and place < cut for place in self.places)


def requests() -> list[Request]:
    """A hundred of the requests that one call serves, the same at every run."""
    lines = [json.loads(line) for line in INTENTS.read_text(encoding="utf-8").splitlines()]
    single = [line for line in lines if line["kind"] == "single"]
    drawn = random.Random(1).sample(single, REQUESTS)
    return [Request(line["query"], frozenset(line["relevant"])) for line in drawn]


def searches() -> list[Search]:
    """Toolgate with its shipped packs and without, and FastMCP's search by words."""
    without = ("packs.enabled=false",)
    bm25 = fastmcp("", ("--connected", "--bm25", str(MOST)))
    return [
        Search(Gateway("Toolgate", toolgate), "__", _discover, _discovered),
        Search(
            Gateway(
                "Toolgate without its shipped packs",
                lambda servers, folder, port: toolgate(servers, folder, port, without),
            ),
            "__",
            _discover,
            _discovered,
        ),
        Search(Gateway("FastMCP, `BM25SearchTransform`", bm25), "_", _search, _searched),
    ]


def measure(search: Search, catalog: Path, root: Path) -> Found:
    """Asks a gateway before all shipped catalogs for each request."""
    files = sorted(CATALOGS.glob("*.json"))
    upstreams = [Upstream(server_name(file), [file], [str(catalog), str(file)]) for file in files]
    folder = Path(tempfile.mkdtemp(dir=root))
    port = free_port()
    launch = search.gateway.launch(upstreams, folder, port)
    names = {
        f"{upstream.name}{search.separator}{tool['name']}": f"{file.stem}/{tool['name']}"
        for upstream, file in zip(upstreams, files, strict=True)
        for tool in upstream.tools()
    }
    found = Found(search.gateway.name, [], [], [])
    with Running(launch, folder, port) as running:
        running.started(running.faces[0], upstreams)
        host = LegacyHost(running.url(running.faces[0]), {})
        for request in requests():
            began = time.perf_counter()
            answer = host.request("tools/call", search.call(request.text, MOST))
            found.milliseconds.append((time.perf_counter() - began) * 1e3)
            shown = [names[name] for name in search.names(answer)]
            places = [place for place, name in enumerate(shown) if name in request.tools]
            found.places.append(min(places, default=None))
            found.answers.append(text_of(answer))
    return found


def server_name(file: Path) -> str:
    """The server's name before all gateways: some take no hyphen in it."""
    return file.stem.replace("-", "_")


def _discover(text: str, most: int) -> Json:
    return {"name": "discover_tools", "arguments": {"query": text, "max_results": most}}


def _discovered(answer: Json) -> list[str]:
    return re.findall(r"^(\S+?)#\w+", text_of(answer), re.MULTILINE)


def _search(text: str, _most: int) -> Json:
    return {"name": "search_tools", "arguments": {"query": text}}


def _searched(answer: Json) -> list[str]:
    return [tool["name"] for tool in json.loads(text_of(answer))]
