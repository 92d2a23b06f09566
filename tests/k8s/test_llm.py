"""The LLM proxy in the chart: its file, its Secrets, what reaches it and what it reaches."""

import os
import re
import subprocess
import tomllib
import urllib.request
from pathlib import Path
from typing import Any

import chart
import pytest
from chart import POSTGRESQL, Object, Values, merged

NAME = "toolgate-llm"
LLM: Values = {
    "llm": {"enabled": True, "publicUrl": "https://llm.example", "allowAnybody": True},
}


def file_of(objects: list[Object]) -> dict[str, Any]:
    text: str = chart.find(objects, "ConfigMap", NAME)["data"]["llm.toml"]
    return tomllib.loads(text)


def llm_with(**values: Any) -> list[Object]:
    return chart.render(merged(LLM, {"llm": values}))


def test_there_is_no_proxy_unless_it_is_wanted() -> None:
    assert not [one for one in chart.render() if NAME in one["metadata"]["name"]]
    kinds = {one["kind"] for one in llm_with() if one["metadata"]["name"] == NAME}
    assert kinds == {"ConfigMap", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service"}


def test_the_file_has_what_the_values_say_and_what_the_chart_knows() -> None:
    config = file_of(chart.render(chart.example("llm")))
    assert config["llm"] == {
        "listen": "0.0.0.0:7090",
        "public_url": "https://llm.example.com",
        "key_store": "file:/run/secrets/toolgate/store-url",
        "strategy": "auto",
        "keep": ["mcp__company__*"],
        "max_connections": 1024,
        "max_requests": 512,
        "request_memory": "256MiB",
    }
    assert config["upstream"] == {"openai": "https://models.example.com:8443"}
    anybody = file_of(llm_with(bind="[::]"))
    assert anybody["llm"]["listen"] == "[::]:7090"
    assert "key_store" not in anybody["llm"]


def test_secrets_are_files_and_no_key_of_a_provider_is_among_them() -> None:
    objects = chart.render(chart.example("llm"))
    spec = chart.find(objects, "Deployment", NAME)["spec"]["template"]["spec"]
    volume = next(one for one in spec["volumes"] if one["name"] == "secrets")["projected"]
    files = {
        item["path"]: (source["secret"]["name"], item["key"])
        for source in volume["sources"]
        for item in source["secret"]["items"]
    }
    assert files == {
        "store-url": ("toolgate-store", "url"),
        "plane-key": ("toolgate-llm-plane-key", "api-key"),
        "plane-ca.crt": ("toolgate-tls", "ca.crt"),
    }
    container = chart.main_container(objects, NAME)
    env = chart.env(container)
    assert env["TOOLGATE_API_KEY_FILE"] == "/run/secrets/toolgate/plane-key"
    assert env["TOOLGATE_CA_FILE"] == "/run/secrets/toolgate/plane-ca.crt"
    assert container["args"] == [
        "llm",
        "--config=/etc/toolgate/llm.toml",
        "--server=https://toolgate.agents.svc:7070",
    ]
    # A proxy that needs none has no volume of them.
    plain = chart.find(llm_with(), "Deployment", NAME)["spec"]["template"]["spec"]
    assert "secrets" not in [one["name"] for one in plain["volumes"]]
    mounts = plain["containers"][0]["volumeMounts"]
    assert "secrets" not in [one["name"] for one in mounts]


def test_pods_come_before_they_go_and_hosts_stay_with_one() -> None:
    objects = llm_with(preStopSeconds=7, drainSeconds=20)
    spec = chart.find(objects, "Deployment", NAME)["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] == 32
    container = chart.main_container(objects, NAME)
    for probe in ("startupProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/livez", "port": "http"}
    # A pod with all of its connections taken is not killed for it.
    assert container["livenessProbe"]["tcpSocket"] == {"port": "http"}
    source = (chart.ROOT / "gateway/llm/src/proxy.rs").read_text()
    assert '.route("/livez"' in source
    service = chart.find(objects, "Service", NAME)["spec"]
    assert service["sessionAffinity"] == "ClientIP"
    assert service["ports"][0]["targetPort"] == "http"


def test_what_the_chart_waits_for_is_what_the_proxy_takes() -> None:
    """The stop signal, its answers under way, then what it takes out of the server."""
    seconds = 0
    for file, name in [("serving.rs", "DRAIN"), ("proxy.rs", "CLOSING_MAX")]:
        source = (chart.ROOT / "gateway/llm/src" / file).read_text()
        found = re.search(rf"const {name}: Duration = Duration::from_secs\((\d+)\)", source)
        assert found
        seconds += int(found[1])
    spec = chart.find(llm_with(preStopSeconds=0), "Deployment", NAME)["spec"]["template"]["spec"]
    assert spec["terminationGracePeriodSeconds"] == seconds + 5


def test_the_proxy_reaches_the_server_its_keys_and_the_providers() -> None:
    objects = chart.render(chart.example("llm"))
    policy = chart.find(objects, "NetworkPolicy", NAME)
    plane = {"podSelector": chart.find(objects, "Deployment")["spec"]["selector"]}
    ways = chart.rules(policy, "egress")
    assert [ports for ports, _ in ways] == [[53, 53], [7070], [5432], [443], [8443]]
    assert ways[1][1] == [plane]
    [(ports, peers)] = chart.rules(policy, "ingress")
    assert ports == [7090]
    labels = [peer["namespaceSelector"]["matchLabels"] for peer in peers or []]
    name = "kubernetes.io/metadata.name"
    assert labels == [{name: "gateways"}, {name: "monitoring"}]
    own = {"podSelector": chart.find(objects, "Deployment", NAME)["spec"]["selector"]}
    [grpc, _metrics] = chart.rules(chart.find(objects, "NetworkPolicy"), "ingress")
    assert own in (grpc[1] or [])
    without_keys = chart.find(llm_with(), "NetworkPolicy", NAME)
    assert [ports for ports, _ in chart.rules(without_keys, "egress")] == [[53, 53], [7070], [443]]


def test_several_pods_are_where_each_host_stays_with_one() -> None:
    for objects, count in [
        (llm_with(replicas=3, hostsStay=True), 3),
        (chart.render(chart.example("llm")), 2),
    ]:
        assert chart.find(objects, "Deployment", NAME)["spec"]["replicas"] == count


def test_what_authenticates_may_stand_before_a_proxy_without_keys() -> None:
    route: Values = {"enabled": True, "parentRefs": [{"name": "public"}]}
    service: Values = {"type": "LoadBalancer"}
    objects = llm_with(allowUnauthenticatedExposure=True, httpRoute=route, service=service)
    assert chart.find(objects, "HTTPRoute", NAME)
    assert chart.find(objects, "Service", NAME)["spec"]["type"] == "LoadBalancer"


def test_the_way_in_has_what_hosts_call_and_nothing_of_operators() -> None:
    objects = chart.render(chart.example("llm"))
    route = chart.find(objects, "HTTPRoute", NAME)["spec"]
    assert route["parentRefs"] == [{"name": "public", "namespace": "gateways"}]
    [rule] = route["rules"]
    paths = {match["path"]["value"]: match["path"]["type"] for match in rule["matches"]}
    assert paths == dict.fromkeys(["/anthropic", "/openai", "/gemini"], "PathPrefix")
    service = chart.find(objects, "Service", NAME)["spec"]
    assert rule["backendRefs"] == [{"name": NAME, "port": service["ports"][0]["port"]}]


def test_its_metrics_are_read_with_a_key_where_hosts_have_some() -> None:
    def endpoint(objects: list[Object]) -> dict[str, Any] | None:
        monitors = [one for one in objects if one["kind"] == "PodMonitor"]
        found = [one for one in monitors if one["metadata"]["name"] == NAME]
        return found[0]["spec"]["podMetricsEndpoints"][0] if found else None

    scraped = endpoint(chart.render(chart.example("llm")))
    assert scraped is not None
    assert (scraped["port"], scraped["path"]) == ("http", "/metrics")
    secret = {"name": "toolgate-metrics-key", "key": "api-key"}
    assert scraped["authorization"] == {"credentials": secret}
    monitoring: Values = {"monitoring": {"podMonitor": {"enabled": True}}}
    plain = endpoint(chart.render(merged(LLM, monitoring)))
    assert plain is not None
    assert "authorization" not in plain
    keyless: Values = {"llm": {"allowAnybody": False}}
    objects = chart.render(merged(POSTGRESQL, LLM, monitoring, keyless))
    assert endpoint(objects) is None
    [(_, peers)] = chart.rules(chart.find(objects, "NetworkPolicy", NAME), "ingress")
    assert len(peers or []) == 1


REFUSED: dict[str, tuple[Values, str]] = {
    "no URL": ({"llm": {"publicUrl": ""}}, "llm.publicUrl"),
    "a URL without TLS": ({"llm": {"publicUrl": "http://llm.example"}}, "llm.publicUrl"),
    "keys in a store of another's": (
        {"llm": {"allowAnybody": False}},
        "a store that only the server's pod has",
    ),
    "no key for the server": (
        {"auth": {"methods": ["api-key"]}},
        "needs llm.planeKey.existingSecret",
    ),
    "a route to nowhere": (
        {"llm": {"enabled": False, "httpRoute": {"enabled": True, "parentRefs": [{}]}}},
        "nothing to route to",
    ),
    "a load balancer before no keys": (
        {"llm": {"service": {"type": "LoadBalancer"}}},
        "llm.service.type=LoadBalancer with llm.allowAnybody",
    ),
    "a port of nodes before no keys": (
        {"llm": {"service": {"type": "NodePort"}}},
        "llm.service.type=NodePort with llm.allowAnybody",
    ),
    "a route before no keys": (
        {"llm": {"httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}]}}},
        "llm.httpRoute.enabled with llm.allowAnybody",
    ),
    "a route to any of several pods": (
        {
            "llm": {
                "replicas": 2,
                "allowUnauthenticatedExposure": True,
                "httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}]},
            }
        },
        "a pod does not know the conversations of another",
    ),
    "an Ingress of one's own before several pods": (
        {"llm": {"replicas": 2}},
        "a pod does not know the conversations of another",
    ),
    "a route of no Gateway": (
        {"llm": {"httpRoute": {"enabled": True}}},
        "llm.httpRoute.parentRefs",
    ),
    "too short a grace period": (
        {"llm": {"terminationGracePeriodSeconds": 10}},
        "llm.terminationGracePeriodSeconds is 10",
    ),
    "a volume of the chart's": (
        {"llm": {"extraVolumes": [{"name": "config", "emptyDir": {}}]}},
        "llm.extraVolumes has config",
    ),
    "a key that the chart sets": ({"llm": {"config": {"key_store": "x"}}}, "key_store"),
    "a face for Envoy": ({"llm": {"config": {"ext_proc_listen": "x"}}}, "ext_proc_listen"),
    "a provider that nobody knows": ({"llm": {"upstream": {"other": "https://x"}}}, "other"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused(case: str) -> None:
    values, said = REFUSED[case]
    with pytest.raises(chart.RefusedError, match=said):
        chart.render(merged(LLM, values))


def test_the_program_takes_the_file_and_answers_probes(tmp_path: Path) -> None:
    values = chart.render(merged(LLM, {"llm": {"config": {"gate": "off", "keep": ["a"]}}}))
    path = tmp_path / "llm.toml"
    path.write_text(chart.find(values, "ConfigMap", NAME)["data"]["llm.toml"])
    mine = {name: value for name, value in os.environ.items() if not name.startswith("TOOLGATE_")}
    command = [os.environ["TOOLGATE_BIN"], "llm", f"--config={path}", "--listen=127.0.0.1:0"]
    command.append("--server=http://127.0.0.1:9")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=mine) as proxy:
        try:
            assert proxy.stderr is not None
            said = ""
            for line in proxy.stderr:
                said += line
                if found := re.search(r"serving on (http://\S+)", line):
                    break
            else:
                pytest.fail(said)
            with urllib.request.urlopen(f"{found[1]}/livez", timeout=30) as answer:
                assert answer.status == 200
        finally:
            proxy.terminate()
