"""One server for the session; a tenant of its own for each test."""

import gc
import os
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path

import grpc
import pytest
from catalogs import NOTES, SHIPPED, SHIPPED_TENANT, WEATHER
from llm_provider import Provider, Proxies, Proxy
from llm_tools import PATIENT
from toolgate_process import ToolgateProcess

from toolgate import Client
from toolgate._gen.v1 import catalog_pb2_grpc, router_pb2_grpc

StartServer = Callable[[Mapping[str, str]], ToolgateProcess]
StartProxy = Callable[..., Proxy]

_tenants = count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the flag without which no golden file is ever written."""
    told = "write the golden files instead of comparing with them"
    parser.addoption("--update-golden", action="store_true", help=told)


def pytest_collection_finish() -> None:
    """Leaves what the imports made to no further collection of garbage: it is there to the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def binary() -> Path:
    named = os.environ.get("TOOLGATE_BIN")
    if not named:
        pytest.fail(
            "TOOLGATE_BIN must name the toolgate binary: build it and set this, or `make test`"
        )
    path = Path(named).resolve()
    if not path.is_file():
        pytest.fail(f"TOOLGATE_BIN: {path} is no file")
    return path


@pytest.fixture(scope="session")
def server(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolgateProcess]:
    process = ToolgateProcess(binary, tmp_path_factory.mktemp("server"), {"log.level": "debug"})
    process.start()
    yield process
    assert process.stop() == 0, process.log_text()[-4000:]


@pytest.fixture
def start_server(binary: Path, tmp_path: Path) -> Iterator[StartServer]:
    """Starts further servers with settings of their own, each in its own folder."""
    started: list[ToolgateProcess] = []

    def start(settings: Mapping[str, str]) -> ToolgateProcess:
        process = ToolgateProcess(binary, tmp_path / f"server{len(started)}", settings)
        started.append(process)
        return process.start()

    yield start
    for process in started:
        process.stop()


@pytest.fixture(scope="session")
def shipped(server: ToolgateProcess) -> Iterator[Client]:
    """A client of a tenant that has every shipped catalog: to register them takes long. A test that
    changes something undoes it."""
    with server.client(SHIPPED_TENANT, timeout=120) as client:
        for file in sorted(SHIPPED.glob("*.json")):
            client.register_server(file.stem, file)
        yield client


@pytest.fixture
def tenant() -> str:
    return f"tenant-{next(_tenants)}"


@pytest.fixture
def client(server: ToolgateProcess, tenant: str) -> Iterator[Client]:
    with server.client(tenant) as client:
        yield client


@pytest.fixture
def notes(client: Client) -> Client:
    """A client of a tenant that has two MCP servers: `notes` and `weather`."""
    client.register_server("notes", NOTES)
    client.register_server("weather", WEATHER)
    return client


@pytest.fixture
def channel(server: ToolgateProcess) -> Iterator[grpc.Channel]:
    """A bare channel: no deadline, no retries, no conversions."""
    with grpc.insecure_channel(server.target, options=[("grpc.enable_retries", 0)]) as channel:
        yield channel


@pytest.fixture
def router(channel: grpc.Channel) -> router_pb2_grpc.RouterServiceStub:
    return router_pb2_grpc.RouterServiceStub(channel)


@pytest.fixture
def catalog(channel: grpc.Channel) -> catalog_pb2_grpc.CatalogServiceStub:
    return catalog_pb2_grpc.CatalogServiceStub(channel)


@pytest.fixture(scope="session")
def proxies(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxies]:
    proxies = Proxies(binary, tmp_path_factory.mktemp("proxies"))
    yield proxies
    proxies.close()


@pytest.fixture
def start(proxies: Proxies) -> Iterator[StartProxy]:
    """Puts a proxy before a provider; other tests have the same process, one after another. What it
    remembers of them is told apart by a test's own name (`Proxy.unique`)."""

    def start(provider: Provider, settings: str = PATIENT, *arguments: str) -> Proxy:
        return proxies.lend(provider, settings, *arguments)

    yield start
    proxies.take_back()


@pytest.fixture
def start_afresh(binary: Path, tmp_path: Path) -> Iterator[StartProxy]:
    """Starts a proxy of the test's own before a provider."""
    started: list[Proxy] = []

    def start(provider: Provider, settings: str = PATIENT, *arguments: str) -> Proxy:
        folder = tmp_path / f"proxy-{len(started)}"
        folder.mkdir()
        proxy = Proxy(binary, folder, provider.url, settings)
        proxy.start(*arguments)
        started.append(proxy)
        return proxy

    yield start
    for proxy in started:
        proxy.__exit__()
