"""The MCP gateway in the chart: its file, its Secrets, what reaches it and what it reaches."""

import os
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import chart
import pytest
import yaml
from chart import POSTGRESQL, Object, Values, merged

NAME = "toolgate-gateway"
GATEWAY: Values = {
    "gateway": {
        "enabled": True,
        "publicUrl": "https://tools.example",
        "sealingKey": {"existingSecret": "sealing"},
        "config": {"auth": {"allow_anybody": True}},
    }
}


def file_of(objects: list[Object]) -> dict[str, Any]:
    text: str = chart.find(objects, "ConfigMap", NAME)["data"]["gateway.toml"]
    return tomllib.loads(text)


def gateway_with(**values: Any) -> list[Object]:
    return chart.render(merged(GATEWAY, {"gateway": values}))


def test_there_is_no_gateway_unless_it_is_wanted() -> None:
    assert not [one for one in chart.render() if NAME in one["metadata"]["name"]]
    kinds = {one["kind"] for one in gateway_with() if one["metadata"]["name"] == NAME}
    assert kinds == {"ConfigMap", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service"}


def test_the_file_has_what_the_values_say_and_what_the_chart_knows() -> None:
    config = file_of(chart.render(chart.example("gateway")))
    assert config["gateway"]["public_url"] == "https://tools.example.com"
    assert config["gateway"]["listen"] == "0.0.0.0:7080"
    assert config["gateway"]["sealing_key"] == "file:/run/secrets/toolgate/sealing-key"
    assert config["gateway"]["store_url"] == "file:/run/secrets/toolgate/store-url"
    assert config["gateway"]["replica_url"] == "http://${POD_IP}:7080"
    assert config["gateway"]["start_tokens"] == 2000
    assert isinstance(config["gateway"]["start_tokens"], int)
    assert config["gateway"]["auth"]["methods"] == ["jwt"]
    assert config["server"]["tracker"]["tools"] == {"deny": ["delete_*"]}
    token = "file:/run/secrets/toolgate/notes-token"
    assert config["server"]["notes"]["headers"] == {"Authorization": token}
    assert "store_url" not in file_of(gateway_with())["gateway"]
    assert file_of(gateway_with(bind="[::]"))["gateway"]["replica_url"] == "http://[${POD_IP}]:7080"


def test_values_become_toml_as_they_were_written() -> None:
    servers = {
        "a": {"command": ["x", 'say "hi" & <go>'], "env": {"A B": "1", "${C}": "\\"}},
        "b-c_d": {"url": "https://b", "concurrency": 3, "tools": {"allow": ["x"], "deny": []}},
    }
    assert file_of(gateway_with(servers=servers))["server"] == servers


def test_secrets_are_files_that_the_file_names() -> None:
    objects = chart.render(chart.example("gateway"))
    spec = chart.find(objects, "Deployment", NAME)["spec"]["template"]["spec"]
    volume = next(one for one in spec["volumes"] if one["name"] == "secrets")["projected"]
    files = {
        item["path"]: (source["secret"]["name"], item["key"])
        for source in volume["sources"]
        for item in source["secret"]["items"]
    }
    assert files == {
        "sealing-key": ("toolgate-sealing-key", "key"),
        "store-url": ("toolgate-store", "url"),
        "plane-key": ("toolgate-plane-key", "api-key"),
        "plane-ca.crt": ("toolgate-tls", "ca.crt"),
        "notes-token": ("notes", "token"),
    }
    env = chart.env(chart.main_container(objects, NAME))
    assert env["TOOLGATE_API_KEY_FILE"] == "/run/secrets/toolgate/plane-key"
    assert env["TOOLGATE_CA_FILE"] == "/run/secrets/toolgate/plane-ca.crt"
    assert env["POD_IP"] == {"fieldRef": {"fieldPath": "status.podIP"}}


def test_the_program_is_told_where_the_server_is() -> None:
    arguments = chart.main_container(chart.render(chart.example("gateway")), NAME)["args"]
    assert "--server=https://toolgate.agents.svc:7070" in arguments
    plain = chart.main_container(gateway_with(tenant="acme"), NAME)["args"]
    assert {"--server=http://toolgate.agents.svc:7070", "--tenant=acme"} <= set(plain)


def test_pods_come_before_they_go_and_are_asked_for_themselves() -> None:
    objects = gateway_with(replicas=3, preStopSeconds=7, drainSeconds=20)
    spec = chart.find(objects, "Deployment", NAME)["spec"]
    assert spec["replicas"] == 3
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] == 32
    container = chart.main_container(objects, NAME)
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    assert container["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "http"}
    source = (chart.ROOT / "gateway/mcp/src/http.rs").read_text()
    assert all(f'"{page}"' in source for page in ["/livez", "/readyz"])
    service = chart.find(objects, "Service", NAME)["spec"]
    assert "sessionAffinity" not in service
    image = gateway_with(image={"repository": "with-node", "tag": "1"})
    assert chart.main_container(image, NAME)["image"] == "with-node:1"


def test_the_gateway_reaches_the_server_its_like_and_the_servers_behind_it() -> None:
    objects = chart.render(chart.example("gateway"))
    policy = chart.find(objects, "NetworkPolicy", NAME)
    own = {"podSelector": chart.find(objects, "Deployment", NAME)["spec"]["selector"]}
    plane = {"podSelector": chart.find(objects, "Deployment")["spec"]["selector"]}
    ways = chart.rules(policy, "egress")
    assert [ports for ports, _ in ways] == [[53, 53], [7080], [7070], [5432], [443], [8443]]
    assert ways[1][1] == [own]
    assert ways[2][1] == [plane]
    [(ports, peers)] = chart.rules(policy, "ingress")
    assert ports == [7080]
    assert peers is not None
    assert own in peers
    assert len(peers) == 2
    [grpc, _metrics] = chart.rules(chart.find(objects, "NetworkPolicy"), "ingress")
    assert own in (grpc[1] or [])


def test_the_way_in_has_what_hosts_call_and_nothing_of_operators() -> None:
    route = chart.find(chart.render(chart.example("gateway")), "HTTPRoute", NAME)["spec"]
    assert route["parentRefs"] == [{"name": "public", "namespace": "gateways"}]
    [rule] = route["rules"]
    paths = {match["path"]["value"]: match["path"]["type"] for match in rule["matches"]}
    prefixes = ["/mcp", "/.well-known/oauth-protected-resource", "/gateway/connect"]
    pages = ["/gateway/connected", "/gateway/signed-in"]
    assert paths == dict.fromkeys(prefixes, "PathPrefix") | dict.fromkeys(pages, "Exact")
    source = (chart.ROOT / "gateway/mcp/src/connecting.rs").read_text()
    assert all(f'"{page}"' in source for page in ["/gateway/connect", *pages])
    service = chart.find(chart.render(chart.example("gateway")), "Service", NAME)["spec"]
    assert rule["backendRefs"] == [{"name": NAME, "port": service["ports"][0]["port"]}]


def test_the_few_addresses_of_a_way_in_stand_for_all_hosts() -> None:
    key = "max_connections_per_address"
    assert key not in file_of(gateway_with())["gateway"]
    routed = {"httpRoute": {"enabled": True, "parentRefs": [{"name": "public"}]}}
    assert file_of(gateway_with(**routed))["gateway"][key] == 1_024
    more = gateway_with(**routed, config={"auth": {"allow_anybody": True}, "max_connections": 9})
    assert file_of(more)["gateway"][key] == 9
    own = gateway_with(**routed, config={"auth": {"allow_anybody": True}, key: 5})
    assert file_of(own)["gateway"][key] == 5


def test_its_metrics_are_read_with_a_credential_where_one_is_needed() -> None:
    monitoring: Values = {"monitoring": {"podMonitor": {"enabled": True}}}

    def scraped(gateway: Values) -> tuple[dict[str, Any] | None, list[Any]]:
        objects = chart.render(merged(gateway, monitoring))
        name = "toolgate-gateway"
        monitors = [one for one in objects if one["kind"] == "PodMonitor"]
        found = [one for one in monitors if one["metadata"]["name"] == name]
        (rule,) = chart.find(objects, "NetworkPolicy", name)["spec"]["ingress"]
        return (found[0]["spec"]["podMetricsEndpoints"][0] if found else None), rule["from"]

    endpoint, peers = scraped(GATEWAY)
    assert endpoint is not None
    assert (endpoint["port"], endpoint["path"]) == ("http", "/metrics")
    assert "authorization" not in endpoint
    label = {"targetLabel": "toolgate_component", "replacement": "gateway"}
    assert endpoint["relabelings"] == [label]
    prometheus = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}
    }
    assert prometheus in peers
    with_tokens = yaml.safe_load(chart.example("gateway").read_text())
    endpoint, peers = scraped(with_tokens)
    assert endpoint is None
    assert prometheus not in peers
    key = {"gateway": {"metricsKey": {"existingSecret": "toolgate-metrics-key"}}}
    endpoint, peers = scraped(merged(with_tokens, key))
    assert endpoint is not None
    secret = {"name": "toolgate-metrics-key", "key": "api-key"}
    assert endpoint["authorization"] == {"credentials": secret}
    assert prometheus in peers


REFUSED: dict[str, tuple[Values, str]] = {
    "no URL": ({"gateway": {"publicUrl": ""}}, "gateway.publicUrl"),
    "no key": ({"gateway": {"sealingKey": {"existingSecret": ""}}}, "gateway.sealingKey"),
    "anybody": (
        {"gateway": {"config": {"auth": {"allow_anybody": False}}}},
        "gateway.config.auth.methods, or",
    ),
    "keys in a store of another's": (
        {"gateway": {"config": {"auth": {"methods": ["api-key"]}}}},
        "a store that only the server's pod has",
    ),
    "no key for the server": (
        {"auth": {"methods": ["api-key"]}},
        "needs gateway.planeKey.existingSecret",
    ),
    "a route to nowhere": (
        {"gateway": {"enabled": False, "httpRoute": {"enabled": True, "parentRefs": [{}]}}},
        "nothing to route to",
    ),
    "a route of no Gateway": (
        {"gateway": {"httpRoute": {"enabled": True}}},
        "gateway.httpRoute.parentRefs",
    ),
    "too short a grace period": (
        {"gateway": {"terminationGracePeriodSeconds": 10}},
        "gateway.terminationGracePeriodSeconds is 10",
    ),
    "a volume of the chart's": (
        {"gateway": {"extraVolumes": [{"name": "data", "emptyDir": {}}]}},
        "gateway.extraVolumes has data",
    ),
    "a key that the chart sets": ({"gateway": {"config": {"listen": "x"}}}, "listen"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused(case: str) -> None:
    values, said = REFUSED[case]
    with pytest.raises(chart.RefusedError, match=said):
        chart.render(merged(GATEWAY, values))


def test_keys_in_a_shared_store_are_fine() -> None:
    auth = {"gateway": {"config": {"auth": {"methods": ["api-key"], "allow_anybody": False}}}}
    config = file_of(chart.render(merged(POSTGRESQL, GATEWAY, auth)))
    assert config["gateway"]["auth"]["methods"] == ["api-key"]


def test_the_program_takes_the_file(tmp_path: Path) -> None:
    objects = chart.render(chart.example("gateway"))
    text: str = chart.find(objects, "ConfigMap", NAME)["data"]["gateway.toml"]
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    contents = {
        "sealing-key": "ab" * 32,
        "store-url": "postgres://u@db/toolgate",
        "notes-token": "Bearer x",
    }
    for name, content in contents.items():
        (secrets / name).write_text(content + "\n")
    path = tmp_path / "gateway.toml"
    path.write_text(text.replace("/run/secrets/toolgate", str(secrets)))
    mine = {name: value for name, value in os.environ.items() if not name.startswith("TOOLGATE_")}
    command = [os.environ["TOOLGATE_BIN"], "gateway", "check", str(path)]
    env = mine | {"POD_IP": "10.0.0.7"}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30, env=env, check=False)
    assert ran.returncode == 0, ran.stderr
