"""Tests what each switch of the values does."""

import shutil
from pathlib import Path
from typing import Any

import chart
import kubernetes_validate
import pytest
import yaml
from chart import GPU, POSTGRESQL, Object, Values, merged


def deployment(values: Values | None = None, name: str = "toolgate") -> Object:
    spec: Object = chart.find(chart.render(values), "Deployment", name)["spec"]
    return spec


def worker(values: Values) -> Object:
    return deployment(values, "toolgate-encoder-worker")


def test_the_embedded_store_has_one_pod_and_a_volume_that_stays() -> None:
    objects = chart.render()
    spec = deployment()
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "Recreate"}
    claim = chart.find(objects, "PersistentVolumeClaim", "toolgate-store")
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert volume(spec, "store") == {"persistentVolumeClaim": {"claimName": "toolgate-store"}}
    mounts = spec["template"]["spec"]["containers"][0]["volumeMounts"]
    path = next(mount["mountPath"] for mount in mounts if mount["name"] == "store")
    config = chart.find(objects, "ConfigMap")["data"]["toolgate.toml"]
    assert f'path = "{path}/store"' in config


def volume(spec: Object, name: str) -> Object:
    found = [one for one in spec["template"]["spec"]["volumes"] if one["name"] == name]
    assert len(found) == 1
    return {key: value for key, value in found[0].items() if key != "name"}


@pytest.mark.parametrize(
    ("persistence", "expected", "claims"),
    [
        ({"enabled": False}, {"emptyDir": {"sizeLimit": "2Gi"}}, 0),
        ({"existingClaim": "mine"}, {"persistentVolumeClaim": {"claimName": "mine"}}, 0),
    ],
)
def test_the_volume_is_another_or_none(persistence: Values, expected: Object, claims: int) -> None:
    values = {"store": {"persistence": persistence}}
    assert volume(deployment(values), "store") == expected
    assert len(chart.names(chart.render(values), "PersistentVolumeClaim")) == claims


def test_with_postgresql_pods_come_before_they_go() -> None:
    spec = deployment(merged(POSTGRESQL, {"server": {"replicas": 3}}))
    assert spec["replicas"] == 3
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert chart.names(chart.render(POSTGRESQL), "PersistentVolumeClaim") == []


def test_snapshots_fit_into_the_pods_own_disk() -> None:
    spec = deployment(POSTGRESQL)
    assert volume(spec, "store") == {"emptyDir": {"sizeLimit": "2Gi"}}
    limits = spec["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits["ephemeral-storage"] == "3Gi"
    text = chart.find(chart.render(POSTGRESQL), "ConfigMap")["data"]["toolgate.toml"]
    assert 'snapshot_budget = "1GiB"' in text


def test_probes_go_to_the_admin_port_and_liveness_asks_the_process_alone() -> None:
    for name, alive in (("toolgate", "/livez"), ("toolgate-encoder-worker", "/healthz")):
        container = chart.main_container(chart.render(chart.example("gpu")), name)
        probes = {
            probe: container[f"{probe}Probe"]["httpGet"]
            for probe in ("startup", "readiness", "liveness")
        }
        assert probes["startup"] == probes["readiness"] == {"path": "/readyz", "port": "admin"}
        assert probes["liveness"] == {"path": alive, "port": "admin"}
        assert "grpc" not in str(probes)


def test_the_probes_are_pages_that_the_programs_serve() -> None:
    for program, pages in (
        ("server/src", ["/livez", "/readyz"]),
        ("encoder-worker/src", ["/healthz", "/readyz"]),
    ):
        source = (chart.ROOT / program / "admin.rs").read_text()
        assert all(f'.route("{page}"' in source for page in [*pages, "/metrics"])


@pytest.mark.parametrize("part", ["server", "encoderWorker"])
def test_the_grace_period_covers_what_comes_before_the_end(part: str) -> None:
    name = {"server": "toolgate", "encoderWorker": "toolgate-encoder-worker"}[part]
    values = {"encoderWorker": {"enabled": True}}
    change = {part: {"preStopSeconds": 12, "drainSeconds": 40}}
    spec = deployment(merged(values, change), name)["template"]["spec"]
    assert spec["terminationGracePeriodSeconds"] == 57
    assert spec["containers"][0]["lifecycle"] == {"preStop": {"sleep": {"seconds": 12}}}
    none = deployment(merged(values, {part: {"preStopSeconds": 0}}), name)["template"]["spec"]
    assert "lifecycle" not in none["containers"][0]
    assert none["terminationGracePeriodSeconds"] == 15


def test_the_drain_is_told_to_the_programs() -> None:
    values = {
        "encoderWorker": {"enabled": True, "drainSeconds": 20},
        "server": {"drainSeconds": 30},
    }
    objects = chart.render(values)
    assert 'drain_timeout = "30s"' in chart.find(objects, "ConfigMap")["data"]["toolgate.toml"]
    container = chart.main_container(objects, "toolgate-encoder-worker")
    assert chart.env(container)["TOOLGATE_WORKER_DRAIN"] == "20s"


def test_the_server_finds_workers_by_their_headless_service() -> None:
    objects = chart.render({"encoderWorker": {"enabled": True, "addresses": ["10.0.0.7:7072"]}})
    service = chart.find(objects, "Service", "toolgate-encoder-worker")["spec"]
    assert service["clusterIP"] == "None"
    port = service["ports"][0]["port"]
    text = chart.find(objects, "ConfigMap")["data"]["toolgate.toml"]
    address = f"dns://toolgate-encoder-worker.agents.svc:{port}"
    assert f'workers = ["{address}","10.0.0.7:7072"]' in text


def test_services_select_the_pods_they_are_for() -> None:
    objects = chart.render(chart.example("gpu"))
    for service, pods in (
        ("toolgate", "toolgate"),
        ("toolgate-headless", "toolgate"),
        ("toolgate-encoder-worker", "toolgate-encoder-worker"),
    ):
        selector = chart.find(objects, "Service", service)["spec"]["selector"]
        template = chart.find(objects, "Deployment", pods)["spec"]["template"]
        assert selector.items() <= template["metadata"]["labels"].items()
    assert chart.find(objects, "Service", "toolgate-headless")["spec"]["clusterIP"] == "None"
    assert chart.names(chart.render({"server": {"service": {"headless": False}}}), "Service") == [
        "toolgate"
    ]


def test_a_gpu_is_asked_for_whole() -> None:
    values = merged(GPU, {"gpu": {"runtimeClassName": "nvidia"}})
    spec = worker(values)
    pod = spec["template"]["spec"]
    container = pod["containers"][0]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 1
    assert container["resources"]["requests"]["nvidia.com/gpu"] == 1
    assert pod["runtimeClassName"] == "nvidia"
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in pod[
        "tolerations"
    ]
    variables = chart.env(container)
    assert variables["TOOLGATE_WORKER_DEVICE"] == "cuda"
    assert "TOOLGATE_WORKER_MAX_BATCH_TOKENS" not in variables, "the program knows its device"
    assert variables["CUDA_CACHE_PATH"] == "/var/cache/cuda"
    assert container["image"] == "toolgate:cuda"
    assert chart.main_container(chart.render(values))["image"] == "toolgate:0.1.0"


def test_nodes_must_have_a_gpu_that_is_new_enough() -> None:
    spec = worker(merged(GPU, {"gpu": {"nodeAffinity": {"products": ["NVIDIA-L4"]}}}))
    terms = spec["template"]["spec"]["affinity"]["nodeAffinity"]
    (term,) = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "nvidia.com/gpu.compute.major", "operator": "Gt", "values": ["7"]},
        {"key": "nvidia.com/cuda.driver-version.major", "operator": "Gt", "values": ["579"]},
        {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-L4"]},
    ]
    without = worker(merged(GPU, {"gpu": {"nodeAffinity": {"enabled": False}}}))
    assert "affinity" not in without["template"]["spec"]


def test_a_slice_is_asked_for_by_its_name() -> None:
    objects = chart.render(chart.example("gpu-mig"))
    container = chart.main_container(objects, "toolgate-encoder-worker")
    assert container["resources"]["limits"]["nvidia.com/mig-1g.10gb"] == 1
    assert "nvidia.com/gpu" not in container["resources"]["limits"]


CLAIM: Values = merged(GPU, {"gpu": {"claim": {"enabled": True}}})


def claimed(values: Values) -> Object:
    """What a worker's claim asks for."""
    template = chart.find(chart.render(values), "ResourceClaimTemplate", "toolgate-encoder-worker")
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert request["name"] == "gpu"
    found: Object = request["exactly"]
    return found


@pytest.mark.parametrize("version", ["1.34.0", "1.35.0", "1.36.0", "1.37.0"])
def test_a_gpu_is_claimed_as_kubernetes_knows_it(version: str) -> None:
    objects = chart.render(CLAIM, version)
    for name in ("ResourceClaimTemplate", "Deployment"):
        one = chart.find(objects, name, "toolgate-encoder-worker")
        kubernetes_validate.validate(one, version, strict=True)


def test_a_claim_takes_the_place_of_a_resource_and_of_labels_of_nodes() -> None:
    pod = worker(CLAIM)["template"]["spec"]
    claim = {"name": "gpu", "resourceClaimTemplateName": "toolgate-encoder-worker"}
    assert pod["resourceClaims"] == [claim]
    container = pod["containers"][0]
    assert container["resources"]["claims"] == [{"name": "gpu"}]
    assert "nvidia.com/gpu" not in str(container["resources"])
    assert "affinity" not in pod
    assert chart.env(container)["TOOLGATE_WORKER_DEVICE"] == "cuda"
    assert "resourceClaims" not in worker(GPU)["template"]["spec"]
    assert chart.names(chart.render(GPU), "ResourceClaimTemplate") == []


def test_a_claim_is_for_a_device_that_the_worker_can_use() -> None:
    def selectors(values: Values) -> list[str]:
        return [one["cel"]["expression"] for one in claimed(values)["selectors"]]

    capability = (
        "device.attributes['gpu.nvidia.com'].cudaComputeCapability.compareTo(semver('8.0.0')) >= 0"
    )
    driver = "device.attributes['gpu.nvidia.com'].driverVersion.compareTo(semver('580.0.0')) >= 0"
    assert selectors(CLAIM) == [capability, driver]
    assert claimed(CLAIM)["deviceClassName"] == "gpu.nvidia.com"
    profile = "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"
    slices: Values = {"deviceClassName": "mig.nvidia.com", "selectors": [profile]}
    values = merged(CLAIM, {"gpu": {"claim": slices, "nodeAffinity": {"minDriver": 0}}})
    assert selectors(values) == [capability, profile]
    assert claimed(values)["deviceClassName"] == "mig.nvidia.com"


def test_a_claim_needs_a_kubernetes_that_has_them() -> None:
    with pytest.raises(chart.RefusedError, match=r"needs Kubernetes 1\.34 or later, .* v1\.33\.0"):
        chart.render(CLAIM, "1.33.0")


def restarts(values: Values, version: str) -> tuple[Any, Any]:
    """The rules by which a worker's container is started again."""
    objects = chart.render(values, version)
    container = chart.main_container(objects, "toolgate-encoder-worker")
    return container.get("restartPolicy"), container.get("restartPolicyRules")


def test_a_pod_goes_with_its_unfit_gpu() -> None:
    rule = {"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [5]}}
    for version in ("1.35.0", "1.37.0"):
        assert restarts(GPU, version) == ("Never", [rule])
    # Kubernetes has no such rules before, and CPUs no other to go to.
    plain: Values = {"encoderWorker": {"enabled": True}}
    off = merged(GPU, {"gpu": {"replaceUnfit": False}})
    for values, version in ((GPU, "1.34.0"), (plain, "1.37.0"), (off, "1.37.0")):
        assert restarts(values, version) == (None, None)


def test_the_exit_code_of_the_rule_is_the_workers() -> None:
    source = (chart.ROOT / "encoder-worker" / "src" / "error.rs").read_text()
    assert "Self::Canary { served, .. } if *served >= SETTLED_AFTER => 5," in source


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (GPU, {"maxUnavailable": 1, "maxSurge": 0}),
        (merged(GPU, {"gpu": {"surge": True}}), {"maxUnavailable": 0, "maxSurge": 1}),
        ({"encoderWorker": {"enabled": True}}, {"maxUnavailable": 0, "maxSurge": 1}),
    ],
)
def test_workers_come_before_they_go_where_there_is_room(values: Values, expected: Object) -> None:
    assert worker(values)["strategy"]["rollingUpdate"] == expected


def test_without_gpus_nothing_speaks_of_them() -> None:
    text = str(chart.render({"encoderWorker": {"enabled": True}}))
    assert "nvidia" not in text
    assert "cuda" not in text.lower()
    assert "'TOOLGATE_WORKER_DEVICE', 'value': 'cpu'" in text


def test_threads_follow_the_cpu_request() -> None:
    name = "TOOLGATE_ENCODER_THREADS"
    container = chart.main_container(chart.render())
    assert chart.env(container)[name]["resourceFieldRef"]["resource"] == "requests.cpu"
    fixed = chart.main_container(chart.render({"config": {"encoder": {"threads": 3}}}))
    assert name not in chart.env(fixed)
    # 0 threads would be an error of the worker's command line.
    values = {"encoderWorker": {"enabled": True, "resources": {"requests": {"cpu": None}}}}
    unknown = chart.main_container(chart.render(values), "toolgate-encoder-worker")
    assert "TOOLGATE_WORKER_THREADS" not in chart.env(unknown)


MODEL = "/usr/share/toolgate/models/all-MiniLM-L6-v2"


def test_the_model_is_in_the_image() -> None:
    objects = chart.render({"encoderWorker": {"enabled": True}})
    for name in ("toolgate", "toolgate-encoder-worker"):
        container = chart.main_container(objects, name)
        assert chart.env(container)["TOOLGATE_MODEL_DIR"] == MODEL
        assert "models" not in [mount["name"] for mount in container["volumeMounts"]]


def test_the_model_is_fetched_before_the_program_starts() -> None:
    values: Values = {"model": {"source": "fetch", "hub": "https://hub.internal.example"}}
    spec = deployment(values)["template"]["spec"]
    (first,) = spec["initContainers"]
    assert first["args"][:3] == ["model", "fetch", "--model"]
    assert first["args"][-1] == MODEL
    assert chart.env(first)["TOOLGATE_MODEL_HUB"] == "https://hub.internal.example"
    mounts = [
        {mount["name"]: mount for mount in one["volumeMounts"]}
        for one in chart.containers({"spec": spec})
    ]
    assert mounts[0]["models"]["mountPath"] == mounts[1]["models"]["mountPath"]
    assert mounts[1]["models"]["readOnly"]
    policy = chart.find(chart.render(values), "NetworkPolicy")
    assert {"ports": [{"port": 443, "protocol": "TCP"}]} in policy["spec"]["egress"]


def test_the_model_is_on_a_volume() -> None:
    objects = chart.render(chart.example("multilingual"))
    spec = chart.find(objects, "Deployment")["spec"]
    claim = {"claimName": "toolgate-models", "readOnly": True}
    assert volume(spec, "models") == {"persistentVolumeClaim": claim}
    variables = chart.env(chart.main_container(objects))
    assert variables["TOOLGATE_MODEL_DIR"] == "/models/multilingual-e5-small"


def test_autoscaling_goes_by_the_queue_and_the_latency_and_never_by_utilisation() -> None:
    objects = chart.render(chart.example("ha"))
    for name in ("toolgate", "toolgate-encoder-worker"):
        scaler = chart.find(objects, "HorizontalPodAutoscaler", name)["spec"]
        metrics = {one["pods"]["metric"]["name"]: one["type"] for one in scaler["metrics"]}
        assert metrics == {
            "toolgate_embed_queue_depth": "Pods",
            "toolgate_call_p99_seconds": "Pods",
        }
        assert scaler["scaleTargetRef"]["name"] == name
        assert "replicas" not in chart.find(objects, "Deployment", name)["spec"]
        assert scaler["behavior"]["scaleDown"]["stabilizationWindowSeconds"] >= 300
    recorded = [
        rule["record"]
        for group in chart.find(objects, "PrometheusRule")["spec"]["groups"]
        if group["name"] == "toolgate-autoscaling"
        for rule in group["rules"]
    ]
    assert recorded == ["toolgate_call_p99_seconds"]


def test_keda_asks_the_same_of_prometheus() -> None:
    objects = chart.render(chart.example("keda"))
    for name in ("toolgate", "toolgate-encoder-worker"):
        queue, latency = chart.find(objects, "ScaledObject", name)["spec"]["triggers"]
        assert queue["metadata"]["query"].startswith("sum(toolgate_embed_queue_depth{")
        assert queue["metricType"] == "AverageValue"
        assert "histogram_quantile(0.99" in latency["metadata"]["query"]
        assert latency["metricType"] == "Value"
        assert float(latency["metadata"]["threshold"]) in {0.05, 0.025}
    assert chart.names(objects, "HorizontalPodAutoscaler") == []


BUSY: Values = {"encoderWorker": {"autoscaling": {"deviceBusyPercent": 70}}}


def test_workers_are_scaled_by_how_busy_devices_are_where_that_is_set() -> None:
    ha = yaml.safe_load(chart.example("ha").read_text())
    objects = chart.render(merged(ha, BUSY))
    spec = chart.find(objects, "HorizontalPodAutoscaler", "toolgate-encoder-worker")["spec"]
    busy = {one["pods"]["metric"]["name"]: one["pods"]["target"] for one in spec["metrics"]}
    target = {"type": "AverageValue", "averageValue": "700m"}
    assert busy["toolgate_embed_device_busy_ratio"] == target
    assert "device_busy" not in str(chart.find(objects, "HorizontalPodAutoscaler"))
    assert "toolgate_embed_device_busy_ratio" in str(chart.find(objects, "PrometheusRule"))
    assert "device_busy_ratio" not in str(chart.find(chart.render(ha), "PrometheusRule"))


def test_keda_asks_how_busy_devices_are() -> None:
    keda = yaml.safe_load(chart.example("keda").read_text())
    objects = chart.render(merged(keda, BUSY))
    *_, busy = chart.find(objects, "ScaledObject", "toolgate-encoder-worker")["spec"]["triggers"]
    query = busy["metadata"]["query"]
    assert query.startswith("sum(rate(toolgate_embed_device_busy_seconds_total{namespace=")
    assert (busy["metricType"], float(busy["metadata"]["threshold"])) == ("AverageValue", 0.7)
    assert len(chart.find(objects, "ScaledObject")["spec"]["triggers"]) == 2


def test_the_metrics_that_autoscaling_asks_for_are_those_of_the_programs() -> None:
    sources = "".join(
        path.read_text()
        for folder in ("server", "encoder-worker", "serving/src")
        for path in sorted((chart.ROOT / folder).rglob("*.rs"))
    )
    for text in (
        '"toolgate_embed_queue_depth"',
        '"toolgate_embed_device_busy", "Time in device calls", stats.busy',
        '"rpc_server_call_duration"',
        'RouterService/Route"',
        'EncoderService/Embed"',
    ):
        assert text in sources


def test_traces_go_to_the_collector_from_both_programs() -> None:
    values: Values = {
        "tracing": {
            "endpoint": "http://collector.observability:4318",
            "headers": {"existingSecret": "collector"},
        },
        "encoderWorker": {"enabled": True},
    }
    objects = chart.render(values)
    text = chart.find(objects, "ConfigMap")["data"]["toolgate.toml"]
    assert 'otlp_endpoint = "http://collector.observability:4318"' in text
    for name in ("toolgate", "toolgate-encoder-worker"):
        variables = chart.env(chart.main_container(objects, name))
        secret = variables["OTEL_EXPORTER_OTLP_HEADERS"]["secretKeyRef"]
        assert secret == {"name": "collector", "key": "headers"}
        ways = chart.find(objects, "NetworkPolicy", name)["spec"]["egress"]
        assert {"ports": [{"port": 4318, "protocol": "TCP"}]} in ways
    assert "OTEL_EXPORTER_OTLP_HEADERS" not in chart.env(chart.main_container(chart.render()))


def credentials(values: Values | Path) -> dict[str, str]:
    """The variables by which `helm test` calls, and the files that they name, of which Secret."""
    pod = chart.find(chart.render(values), "Pod", "toolgate-test")["spec"]
    variables = chart.env(pod["containers"][0])
    named = [volume for volume in pod["volumes"] if volume["name"] == "secrets"]
    files = {
        f"/run/secrets/toolgate/{item['path']}": source["secret"]["name"]
        for volume in named
        for source in volume["projected"]["sources"]
        for item in source["secret"]["items"]
    }
    paths = {name: value for name, value in variables.items() if value in files}
    assert len(paths) == len(files)
    return {name: files[path] for name, path in paths.items()}


def test_the_test_calls_with_what_callers_need() -> None:
    assert credentials({}) == {}
    assert credentials(chart.example("ha")) == {
        "TOOLGATE_API_KEY_FILE": "toolgate-admin-key",
        "TOOLGATE_CA_FILE": "toolgate-tls",
    }
    assert credentials(chart.example("restricted")) == {
        "TOOLGATE_CLIENT_CERT": "toolgate-test-client",
        "TOOLGATE_CLIENT_KEY": "toolgate-test-client",
        "TOOLGATE_CA_FILE": "toolgate-tls",
    }


def test_without_a_credential_there_is_no_test() -> None:
    # It would need a token of somebody else's.
    assert chart.names(chart.render(chart.example("airgapped")), "Pod") == []
    plain: Values = {"auth": {"methods": ["api-key"], "adminKey": {"existingSecret": "admin"}}}
    assert chart.names(chart.render(plain), "Pod") == []
    off: Values = {"test": {"enabled": False}}
    assert chart.names(chart.render(off), "Pod") == []
    assert "toolgate-test" not in chart.names(chart.render(off), "NetworkPolicy")


def test_evictions_take_one_pod_at_a_time_and_broken_ones_at_once() -> None:
    objects = chart.render(chart.example("ha"))
    for name in ("toolgate", "toolgate-encoder-worker"):
        budget = chart.find(objects, "PodDisruptionBudget", name)["spec"]
        assert budget["maxUnavailable"] == 1
        assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
        assert budget["selector"] == chart.find(objects, "Deployment", name)["spec"]["selector"]
    off = {"server": {"podDisruptionBudget": {"enabled": False}}}
    assert chart.names(chart.render(off), "PodDisruptionBudget") == []


def test_pods_are_spread_over_zones_and_nodes() -> None:
    pod = chart.find(chart.render(chart.example("ha")), "Deployment")["spec"]["template"]
    spread = pod["spec"]["topologySpreadConstraints"]
    assert [(one["topologyKey"], one["whenUnsatisfiable"]) for one in spread] == [
        ("topology.kubernetes.io/zone", "DoNotSchedule"),
        ("kubernetes.io/hostname", "ScheduleAnyway"),
    ]
    off = deployment({"server": {"topologySpread": {"zone": "", "node": ""}}})
    assert "topologySpreadConstraints" not in off["template"]["spec"]


def test_a_change_of_the_configuration_restarts_the_server_and_only_it() -> None:
    changed: Values = {"config": {"router": {"top_k": 3}}, "encoderWorker": {"enabled": True}}
    before = {"encoderWorker": {"enabled": True}}
    assert deployment(changed)["template"] != deployment(before)["template"]
    assert worker(changed)["template"] == worker(before)["template"]


def test_images_go_by_registry_tag_or_digest() -> None:
    def image(**values: str) -> str:
        found: str = chart.main_container(chart.render({"image": values}))["image"]
        return found

    assert image() == "toolgate:0.1.0"
    assert image(registry="registry.example", tag="1.2") == "registry.example/toolgate:1.2"
    digest = "sha256:" + "a" * 64
    assert image(tag="1.2", digest=digest) == f"toolgate@{digest}"


def test_a_load_balancer_lets_in_whom_it_is_told() -> None:
    service = chart.find(chart.render(chart.example("ha")), "Service")["spec"]
    assert service["type"] == "LoadBalancer"
    assert service["loadBalancerSourceRanges"] == ["10.0.0.0/8"]
    assert service["ports"][0]["appProtocol"] == "https"
    plain = chart.find(chart.render(), "Service")["spec"]
    assert plain["ports"][0]["appProtocol"] == "kubernetes.io/h2c"


def test_labels_and_settings_of_pods_arrive() -> None:
    values: Values = {
        "labels": {"team": "agents"},
        "image": {"pullSecrets": ["registry"]},
        "server": {
            "podLabels": {"tier": "front"},
            "podAnnotations": {"note": "x"},
            "nodeSelector": {"disk": "ssd"},
            "priorityClassName": "high",
            "extraEnv": [{"name": "TZ", "value": "UTC"}],
        },
    }
    pod = deployment(values)["template"]
    assert {"team": "agents", "tier": "front"}.items() <= pod["metadata"]["labels"].items()
    assert pod["metadata"]["annotations"]["note"] == "x"
    assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert pod["spec"]["priorityClassName"] == "high"
    assert chart.env(pod["spec"]["containers"][0])["TZ"] == "UTC"


@pytest.mark.parametrize("part", ["server", "encoderWorker"])
def test_a_private_authority_is_mounted_and_named(part: str) -> None:
    name = {"server": "toolgate", "encoderWorker": "toolgate-encoder-worker"}[part]
    authority = {"name": "authority", "configMap": {"name": "company-ca"}}
    mount = {"name": "authority", "mountPath": "/etc/company-ca", "readOnly": True}
    values: Values = {
        "encoderWorker": {"enabled": True},
        "config": {"auth": {"jwks_ca_file": "/etc/company-ca/ca.crt"}},
    }
    change: Values = {
        part: {
            "extraVolumes": [authority],
            "extraVolumeMounts": [mount],
            "extraEnv": [{"name": "SSL_CERT_FILE", "value": "/etc/company-ca/ca.crt"}],
        }
    }
    before = deployment(values, name)["template"]["spec"]
    spec = deployment(merged(values, change), name)["template"]["spec"]
    container = spec["containers"][0]
    assert spec["volumes"] == [*before["volumes"], authority]
    assert container["volumeMounts"] == [*before["containers"][0]["volumeMounts"], mount]
    assert chart.env(container)["SSL_CERT_FILE"] == "/etc/company-ca/ca.crt"
    text = chart.find(chart.render(values), "ConfigMap")["data"]["toolgate.toml"]
    assert 'jwks_ca_file = "/etc/company-ca/ca.crt"' in text


def test_labels_of_pods_never_replace_those_that_are_selected_by() -> None:
    values = {"server": {"podLabels": {"app.kubernetes.io/component": "other"}}}
    spec = deployment(values)
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


def test_notes_say_how_to_call_it_and_what_is_open(tmp_path: Path) -> None:
    # helm shows notes of an installation only: here they are made part of an object.
    shutil.copytree(chart.CHART, tmp_path / "chart")
    templates = tmp_path / "chart" / "templates"
    notes = (templates / "NOTES.txt").rename(templates / "_notes.tpl")
    notes.write_text('{{- define "notes" -}}' + notes.read_text() + "{{- end -}}")
    (templates / "notes.yaml").write_text('kind: Notes\ntext: {{ include "notes" . | quote }}\n')

    def said(*values: str) -> str:
        chosen = [part for value in values for part in ("--set", value)]
        only = ["--show-only", "templates/notes.yaml", "--kube-version", "1.34.0", *chosen]
        text = chart.helm("template", "toolgate", str(tmp_path / "chart"), *only)
        found: str = yaml.safe_load(text)["text"]
        return found

    plain = said()
    assert "http://toolgate.default.svc:7070" in plain
    assert "helm --namespace default test toolgate" in plain
    assert "auth.methods is empty" in plain
    assert "catalog goes with its pod" in said("store.persistence.enabled=false")
    assert "networkPolicy.enabled is false" in said("networkPolicy.enabled=false")
    keys = ["auth.methods={api-key}", "auth.adminKey.existingSecret=admin"]
    assert "plain text" in said(*keys)
    assert "WARNING" not in said(*keys, "tls.existingSecret=tls")
