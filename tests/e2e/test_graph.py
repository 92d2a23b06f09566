"""A tenant above `shard.graph_above` is searched through the graph: it finds what a scan does."""

from catalogs import SHIPPED
from conftest import StartServer

from toolgate import Client

INTENTS = [
    "open a merge request for my branch",
    "which pipelines failed on main today",
    "show me who is in the project",
    "close the issue and say why",
    "read the file that holds the settings",
]


def names(client: Client, intent: str) -> list[str]:
    """The active set for an intent, best first."""
    return [tool.name for tool in client.route(intent)]


def test_the_graph_serves_what_a_scan_finds(start_server: StartServer) -> None:
    scanning = start_server({})
    searching = start_server({"shard.graph_above": "20"})
    scan = scanning.client("acme", timeout=120)
    graph = searching.client("acme", timeout=120)
    with scan, graph:
        for client in (scan, graph):
            client.register_server("gitlab", SHIPPED / "gitlab.json")
        searching.await_log("a shard has its graph")
        for intent in INTENTS:
            found = names(scan, intent)
            assert found
            assert names(graph, intent) == found
    assert "a shard has its graph" not in scanning.log_text()
