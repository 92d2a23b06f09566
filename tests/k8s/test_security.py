"""The restricted Pod Security Standard, and the little that pods can reach."""

from pathlib import Path
from typing import Any

import chart
import pytest
from chart import POSTGRESQL, Object, merged

# The kinds of volumes that the restricted standard allows.
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "projected", "secret"}
VOLUMES |= {"persistentVolumeClaim"}


def breaches(pod: Object) -> list[str]:
    """Where a pod breaks the restricted standard, or a rule of our own beyond it."""
    spec = pod["spec"]
    found = [f"spec.{name}" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    whole = spec.get("securityContext", {})
    for volume in spec.get("volumes", []):
        found += [f"volume {volume['name']}: {kind}" for kind in volume.keys() - VOLUMES - {"name"}]
    if spec.get("automountServiceAccountToken") is not False:
        found.append("automountServiceAccountToken")
    if spec.get("enableServiceLinks") is not False:
        found.append("enableServiceLinks")
    if whole.get("fsGroup") != whole.get("runAsGroup"):
        # Volumes would not be the program's to write.
        found.append("fsGroup")
    for container in chart.containers(pod):
        own = container.get("securityContext", {})

        def effective(name: str, own: Any = own) -> Any:
            return own.get(name, whole.get(name))

        rules = {
            "privileged": not own.get("privileged"),
            "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is False,
            "runAsNonRoot": effective("runAsNonRoot") is True,
            "runAsUser": (effective("runAsUser") or 0) >= 10_000,
            "runAsGroup": (effective("runAsGroup") or 0) >= 10_000,
            "seccompProfile": (effective("seccompProfile") or {}).get("type") == "RuntimeDefault",
            "capabilities": own.get("capabilities") == {"drop": ["ALL"]},
            "readOnlyRootFilesystem": own.get("readOnlyRootFilesystem") is True,
            "hostPort": not any(port.get("hostPort") for port in container.get("ports", [])),
            "memory": "memory" in container["resources"]["limits"],
        }
        found += [f"{container['name']}: {name}" for name, kept in rules.items() if not kept]
    return found


@pytest.mark.parametrize("example", chart.EXAMPLES, ids=lambda path: path.stem)
def test_pods_keep_to_the_restricted_standard(example: Path) -> None:
    pods = [pod for one in chart.render(example) if (pod := chart.pod_of(one))]
    assert pods
    for pod in pods:
        assert breaches(pod) == []


def test_the_pod_that_fetches_the_model_keeps_to_it_too() -> None:
    deployment = chart.find(chart.render({"model": {"source": "fetch"}}), "Deployment")
    pod = deployment["spec"]["template"]
    assert [one["name"] for one in chart.containers(pod)] == ["model", "server"]
    assert breaches(pod) == []


def test_the_check_finds_breaches() -> None:
    pod = chart.find(chart.render(), "Deployment")["spec"]["template"]
    pod["spec"]["volumes"].append({"name": "host", "hostPath": {"path": "/"}})
    pod["spec"]["containers"][0]["securityContext"]["capabilities"] = {"add": ["SYS_ADMIN"]}
    assert breaches(pod) == ["volume host: hostPath", "server: capabilities"]


def test_no_object_is_a_secret() -> None:
    for example in chart.EXAMPLES:
        assert chart.names(chart.render(example), "Secret") == []


def test_secrets_are_files_from_the_named_secrets() -> None:
    objects = chart.render(chart.example("ha"))
    spec = chart.find(objects, "Deployment")["spec"]["template"]["spec"]
    volume = next(one for one in spec["volumes"] if one["name"] == "secrets")["projected"]
    assert volume["defaultMode"] == 0o440
    files = {
        item["path"]: (source["secret"]["name"], item["key"])
        for source in volume["sources"]
        for item in source["secret"]["items"]
    }
    assert files == {
        "store-url": ("toolgate-store", "url"),
        "handle-key": ("toolgate-handle-key", "key"),
        "admin-key": ("toolgate-admin-key", "admin-key"),
        "tls.crt": ("toolgate-tls", "tls.crt"),
        "tls.key": ("toolgate-tls", "tls.key"),
    }
    text = chart.find(objects, "ConfigMap")["data"]["toolgate.toml"]
    for path in files:
        assert f'"/run/secrets/toolgate/{path}"' in text


def test_a_rotated_handle_key_and_client_certificates_are_mounted_too() -> None:
    objects = chart.render(chart.example("restricted"))
    text = chart.find(objects, "ConfigMap")["data"]["toolgate.toml"]
    for line in (
        'previous_key_file = "/run/secrets/toolgate/previous-handle-key"',
        'client_ca_file = "/run/secrets/toolgate/client-ca.crt"',
        'methods = ["mtls"]',
    ):
        assert line in text
    assert chart.names(objects, "ServiceAccount") == []


def test_workers_are_reached_by_the_server_and_reach_nothing() -> None:
    objects = chart.render(chart.example("gpu"))
    policy = chart.find(objects, "NetworkPolicy", "toolgate-encoder-worker")
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    server = chart.find(objects, "Deployment")["spec"]["selector"]
    grpc, metrics = chart.rules(policy, "ingress")
    assert grpc == ([7072], [{"podSelector": server}])
    assert metrics[0] == [7073]
    assert chart.rules(policy, "egress") == []


def test_the_server_reaches_what_it_needs() -> None:
    policy = chart.find(chart.render(chart.example("ha")), "NetworkPolicy")
    ways = chart.rules(policy, "egress")
    assert [ports for ports, _ in ways] == [[53, 53], [7072], [5432], [4317], [443]]
    # Only keys by https may be anywhere.
    assert [ports for ports, peers in ways if peers is None] == [[443]]
    assert [ports for ports, _ in chart.rules(policy, "ingress")] == [[7070], [7071]]


def labels_of_the_test() -> dict[str, str]:
    pod = chart.find(chart.render(), "Pod", "toolgate-test")
    labels: dict[str, str] = pod["metadata"]["labels"]
    selector = {
        name: labels[f"app.kubernetes.io/{name}"] for name in ("name", "instance", "component")
    }
    return {f"app.kubernetes.io/{name}": value for name, value in selector.items()}


def test_without_options_the_server_reaches_names_alone() -> None:
    policy = chart.find(chart.render(), "NetworkPolicy")
    assert [ports for ports, _ in chart.rules(policy, "egress")] == [[53, 53]]
    assert policy["spec"]["ingress"][0]["from"] == [
        {"podSelector": {"matchLabels": labels_of_the_test()}},
        {"namespaceSelector": {"matchLabels": {"toolgate/client": "true"}}},
    ]


def test_ports_of_what_is_elsewhere_are_opened() -> None:
    values = merged(
        POSTGRESQL,
        {
            "encoderWorker": {"addresses": ["dns://workers.gpu.svc:7172", "10.0.0.7:7272"]},
            "tracing": {"endpoint": "https://collector.example"},
            "auth": {
                "methods": ["jwt"],
                "jwks": {"url": "https://login.example:8443/keys"},
                "issuer": "i",
                "audience": "a",
            },
            "networkPolicy": {"postgresql": {"port": 6432}, "monitoring": []},
        },
    )
    policy = chart.find(chart.render(values), "NetworkPolicy")
    ports = [ports for ports, _ in chart.rules(policy, "egress")]
    assert ports == [[53, 53], [7172], [7272], [6432], [4317], [8443]]
    assert [ports for ports, _ in chart.rules(policy, "ingress")] == [[7070]]


@pytest.mark.parametrize("example", chart.EXAMPLES, ids=lambda path: path.stem)
def test_no_policy_has_an_empty_list_of_rules(example: Path) -> None:
    # The API server takes each apply of such a list for a change.
    for policy in chart.render(example):
        if policy["kind"] == "NetworkPolicy":
            assert [] not in policy["spec"].values(), policy["metadata"]["name"]


def test_policies_can_be_left_to_others() -> None:
    assert chart.names(chart.render({"networkPolicy": {"enabled": False}}), "NetworkPolicy") == []
