"""Dashboard and alerts against a real Prometheus that scrapes what Toolgate runs."""

import json
import os
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from catalogs import NOTES
from gateway_process import GatewayProcess, plain_server
from llm_provider import Provider, Proxy, answer, serving
from llm_tools import CALL, PRICED, SEARCH, enveloped
from otlp_receiver import collecting
from test_llm_proxy_envelope import anthropic_answer, anthropic_request, use
from toolgate_process import ToolgateProcess, free_port
from waiting import PATIENCE, wait_until

from toolgate import Call, ToolgateError

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "k8s" / "toolgate" / "files"
ALERTS = FILES / "alerts.yaml"
DASHBOARD = FILES / "dashboard.json"
DOCS = ROOT / "docs"
RULE_TESTS = sorted((ROOT / "tests" / "observability").glob("*.test.yaml"))

METRIC = re.compile(r"\b(?:toolgate|rpc|process)_[a-z0-9_]+")
SUFFIX = re.compile(r"_(?:total|bucket|sum|count|info)$")
WITHOUT_DATA = {
    "toolgate_scan_findings_total": "only after a finding",
    "toolgate_quarantined_tools_total": "only after a quarantine",
    "toolgate_auth_failures_total": "only where somebody is told apart",
    "toolgate_llm_refused_total": "only where the proxy refuses a request",
    "toolgate_encoder_worker_restarts_total": "only of worker processes that a server runs itself",
}
"""Metrics that the server of these tests has not, and why."""


@dataclass
class Watched:
    """A server, its worker, a gateway, an LLM proxy, and the Prometheus that watches all."""

    server: ToolgateProcess
    worker_admin: str
    address: str
    folder: Path

    def ask(self, path: str, **query: str) -> Any:
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{query}: {error.read().decode()}") from error

    def has(self, metric: str) -> bool:
        return bool(self.ask("query", query=f"last_over_time({metric}[5m])")["result"])


@pytest.fixture(scope="module")
def tools() -> Path:
    """The folder of prometheus and promtool."""
    script = ROOT / "tests" / "ci" / "prometheus.sh"
    found = subprocess.run([script], capture_output=True, text=True, check=True, timeout=300)
    return Path(found.stdout.strip())


@pytest.fixture(scope="module")
def watched(
    binary: Path, tools: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("watched")
    with collecting() as collector, worker(binary, folder) as (address, worker_admin):
        server = ToolgateProcess(
            binary,
            folder / "server",
            {
                "encoder.workers": address,
                "telemetry.otlp_endpoint": collector.endpoint,
                "memory.tenants": "default",
                "memory.refresh_interval": "100ms",
                "usage.flush_interval": "100ms",
            },
        )
        server.start()
        (folder / "gateway").mkdir()
        plane = ("--server", server.target)
        gateway = GatewayProcess(binary, folder / "gateway", plain_server("shed"), plane)
        (folder / "llm").mkdir()
        targets = {
            "toolgate": server.admin,
            "toolgate-encoder-worker": worker_admin,
            "toolgate-gateway": gateway.url.removeprefix("http://"),
        }
        try:
            with (
                gateway,
                proxy(binary, folder / "llm", server) as targets["toolgate-llm"],
                prometheus(tools, folder, targets) as listens,
            ):
                watched = Watched(server, worker_admin, listens, folder)
                wait_until(lambda: "1" in state_of_workers(server), "the worker is used")
                make_calls(server)
                scraped = 'min(changes(process_cpu_seconds_total{job=~"toolgate.*"}[1m])) >= 3'
                wait_until(lambda: watched.ask("query", query=scraped)["result"], "all is scraped")
                wait_until(lambda: watched.has("toolgate_gateway_tools"), "the gateway is scraped")
                wait_until(lambda: watched.has("toolgate_llm_gated_calls_total"), "so is the proxy")
                yield watched
        finally:
            server.stop()


def state_of_workers(server: ToolgateProcess) -> list[str]:
    pattern = r'^toolgate_encoder_worker_state\{.*state="serving"\} (\d)$'
    return re.findall(pattern, server.get("/metrics")[1], re.MULTILINE)


def make_calls(server: ToolgateProcess) -> None:
    """Some of each kind."""
    with server.client() as client:
        client.register_server("notes", NOTES)
        for i in range(30):
            turn = client.route(f"write down note {i}", threshold=-1)
            client.gate(turn.handle, Call("mcp__notes__create_note", {"title": "x"}))
            client.gate(turn.handle, Call("mcp__notes__nothing", {}))
        client.route("words " * 4000)
        client.search_tools("notes")
        with server.client("nobody") as stranger, pytest.raises(ToolgateError):
            stranger.route("hello")


@contextmanager
def proxy(binary: Path, folder: Path, server: ToolgateProcess) -> Iterator[str]:
    """An LLM proxy that has deferred tools, searched, and seen a call; where it listens."""
    search = anthropic_answer(use(SEARCH, {"query": "mail"}, "toolu_s"))
    call = anthropic_answer(use(CALL, enveloped("mcp__mail__send", {"city": "x"}), "toolu_c"))
    steps = [answer(search), answer(call), answer(anthropic_answer())]
    plane = ("--server", f"http://{server.target}")
    with (
        serving(Provider(*steps)) as provider,
        Proxy(binary, folder, provider.url, PRICED).started(*plane) as started,
    ):
        notes = [started.ask("/anthropic/v1/messages", anthropic_request()).note]
        bare = {**anthropic_request(), "tools": []}
        notes.append(started.ask("/anthropic/v1/messages", bare).note)
        assert [note.split(";")[0] for note in notes] == ["envelope", "pass"], notes
        yield f"127.0.0.1:{started.port}"


@contextmanager
def worker(binary: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """An encoder worker; where it serves, and its admin port."""
    listen, admin = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    command = [binary, "encoder-worker", "--listen", listen, "--admin-listen", admin]
    environment = {k: v for k, v in os.environ.items() if k != "TOOLGATE_BIN"}
    with (
        (folder / "worker.log").open("wb") as log,
        process([*command, "--device", "cpu"], log=log, env=environment),
    ):
        yield listen, admin


@contextmanager
def prometheus(tools: Path, folder: Path, targets: dict[str, str]) -> Iterator[str]:
    """A Prometheus with the alerts that scrapes an address for each job; where it listens."""
    scrape = [
        {
            "job_name": name,
            "static_configs": [{"targets": [target], "labels": {"namespace": "test"}}],
        }
        for name, target in targets.items()
    ]
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": scrape,
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    listens = f"127.0.0.1:{free_port()}"
    command = [
        tools / "prometheus",
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address={listens}",
        "--enable-feature=exemplar-storage",
    ]
    with (folder / "prometheus.log").open("wb") as log, process(command, log=log):
        wait_until(lambda: _is_ready(listens), "Prometheus is ready")
        yield listens


@contextmanager
def process(command: list[Any], log: Any, env: dict[str, str] | None = None) -> Iterator[None]:
    running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
    try:
        yield
    finally:
        running.terminate()
        try:
            running.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait(timeout=PATIENCE)


def _is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/-/ready", timeout=PATIENCE) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


# The files' contents


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alerts() -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def shown() -> list[str]:
    """The expressions of the dashboard, as Grafana would send them."""
    expressions = [target["expr"] for panel in panels() for target in panel.get("targets", [])]
    values = {"$__rate_interval": "30s", "$job": ".*"}
    for name, value in values.items():
        expressions = [expression.replace(name, value) for expression in expressions]
    return expressions


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    assert dashboard["schemaVersion"] >= 36
    assert dashboard["uid"] == "toolgate"
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24, panel["title"]
        assert not cells & taken, f"{panel['title']} lies on another panel"
        taken |= cells
        if panel["type"] == "row":
            continue
        title = panel["title"]
        assert panel["description"].endswith("."), title
        assert panel["fieldConfig"]["defaults"]["unit"], title
        assert panel["datasource"]["uid"] == "${datasource}", title
        assert panel["targets"], title
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}", title
            assert 'job=~"$job"' in target["expr"], title
        names = [target["refId"] for target in panel["targets"]]
        assert len(names) == len(set(names)), title


def test_the_dashboard_shows_every_metric_of_the_llm_proxy() -> None:
    table = (DOCS / "llm-proxy.md").read_text()
    documented = re.findall(r"^\| `(toolgate_llm_\w+)` \|", table, re.MULTILINE)
    assert len(documented) > 10
    metrics = {name for text in shown() for name in METRIC.findall(text)}
    names = {name.removesuffix("_bucket") for name in metrics}
    assert set(documented) - names == set()


def test_every_alert_has_a_runbook_and_a_test() -> None:
    text = (DOCS / "alerts.md").read_text()
    sections = {part.split("\n", 1)[0]: part for part in text.split("\n## ")[1:]}
    named = {name for name in sections if name.startswith("Toolgate")}
    assert named == set(alerts())
    for name, rule in alerts().items():
        assert rule["annotations"]["runbook"] == f"docs/alerts.md#{name.lower()}"
        assert rule["annotations"]["summary"], name
        assert rule["labels"]["severity"] in {"critical", "warning"}, name
        for part in ("**Means.**", "**Look at.**", "**Do.**"):
            assert part in sections[name], f"{name} lacks {part}"
    tested = "".join(file.read_text() for file in RULE_TESTS)
    for name in alerts():
        assert f'alertname="{name}"' in tested, f"{name} is in no test"


def test_promtool_passes_the_rules_and_their_tests(tools: Path) -> None:
    commands: list[list[Path | str]] = [["check", "rules", ALERTS], ["test", "rules", *RULE_TESTS]]
    for arguments in commands:
        done = subprocess.run(
            [tools / "promtool", *arguments], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr


# Against what runs


def test_every_rule_and_panel_evaluates(watched: Watched) -> None:
    for expression in [*shown(), *(rule["expr"] for rule in rules())]:
        watched.ask("query", query=expression)
    for group in watched.ask("rules")["groups"]:
        for rule in group["rules"]:
            assert rule["health"] == "ok", rule


def test_what_is_looked_at_is_there(watched: Watched) -> None:
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    expressions = [*shown(), *(rule["expr"] for rule in rules())]
    named = {name for text in expressions for name in re.findall(r"\btoolgate:[a-z0-9_:]+", text)}
    assert named <= recorded
    metrics = {name for text in expressions for name in METRIC.findall(_without_labels(text))}
    missing = {metric for metric in metrics if not watched.has(metric)}
    assert missing <= set(WITHOUT_DATA), missing - set(WITHOUT_DATA)
    unneeded = {name for name in WITHOUT_DATA if watched.has(name)}
    assert unneeded == set(), "these have data: take them off the list"


def test_nothing_fires_while_all_is_well(watched: Watched) -> None:
    # Words of the very long intent, and the stranger's mistake, are no reason either.
    firing = watched.ask("query", query='ALERTS{alertstate="firing"}')["result"]
    names = {alert["metric"]["alertname"] for alert in firing}
    # An unoptimised build on a machine with much else to do may be slow, and is.
    slow = {"ToolgateRouteSlowFast", "ToolgateRouteSlowSlow", "ToolgateEmbedQueueSlow"}
    assert names <= slow, firing


def test_exemplars_are_kept(watched: Watched) -> None:
    query = "rpc_server_call_duration_seconds_bucket"
    now = time.time()
    found = watched.ask("query_exemplars", query=query, start=str(now - 300), end=str(now))
    traces = {one["labels"]["trace_id"] for series in found for one in series["exemplars"]}
    assert traces
    assert all(re.fullmatch(r"[0-9a-f]{32}", trace) for trace in traces)


def test_the_metrics_page_is_complete(watched: Watched) -> None:
    documented = _documented()
    found: dict[str, str] = {}
    pages = [watched.server.get("/metrics")[1]]
    with urllib.request.urlopen(
        f"http://{watched.worker_admin}/metrics", timeout=PATIENCE
    ) as answer:
        pages.append(answer.read().decode())
    labels: dict[str, set[str]] = {}
    for page in pages:
        found.update(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE))
        for name, given in re.findall(r"^([a-z_0-9]+)\{([^}]*)\}", page, re.MULTILINE):
            given_names = set(re.findall(r'(\w+)="', given)) - {"le"}
            labels.setdefault(SUFFIX.sub("", name), set()).update(given_names)
    for family, kind in found.items():
        assert family in documented, f"docs/metrics.md lacks {family}"
        assert documented[family].kind == kind, family
        assert labels.get(family, set()) <= documented[family].labels, family
    gone = set(documented) - set(found) - {SUFFIX.sub("", name) for name in WITHOUT_DATA}
    assert gone == set(), "docs/metrics.md has these, and nobody else"
    assert "tenant" not in set().union(*labels.values())


@dataclass(frozen=True)
class Documented:
    """A row of docs/metrics.md."""

    kind: str
    labels: frozenset[str]


def _documented() -> dict[str, Documented]:
    """By family: the name without what a type appends."""
    row = re.compile(r"^\| `([a-z0-9_]+)` \| (\w+) \|([^|]*)\|", re.MULTILINE)
    rows = row.findall((DOCS / "metrics.md").read_text())
    return {
        re.sub(r"_(?:total|info)$", "", name): Documented(
            kind, frozenset(re.findall(r"`(\w+)`", labels))
        )
        for name, kind, labels in rows
    }


def _without_labels(expression: str) -> str:
    """The expression without what is in braces, and the labels of `by` and `on`."""
    return re.sub(r"\{[^}]*\}|\b(?:by|on) \([^)]*\)", "", expression)
