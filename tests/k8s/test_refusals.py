"""Tests that senseless settings are refused before anything is installed, in words."""

import json

import chart
import pytest
from chart import GPU, POSTGRESQL, Values, merged

JWT: Values = {
    "auth": {
        "methods": ["jwt"],
        "jwks": {"url": "https://login.example/keys"},
        "issuer": "https://login.example/",
        "audience": "toolgate",
    }
}
HPA: Values = {"server": {"autoscaling": {"enabled": True}}}
METRICS: Values = {"monitoring": {"podMonitor": {"enabled": True}, "rules": {"enabled": True}}}

REFUSED: dict[str, tuple[Values, str]] = {
    "replicas of the embedded store": (
        {"server": {"replicas": 2}},
        "server.replicas is more than 1",
    ),
    "autoscaling of the embedded store": (
        merged(HPA, METRICS),
        "server.autoscaling.enabled with store.type=embedded",
    ),
    "postgresql without a URL": (
        merged(POSTGRESQL, {"store": {"postgresql": {"existingSecret": ""}}}),
        "needs store.postgresql.existingSecret",
    ),
    "postgresql without a handle key": (
        merged(POSTGRESQL, {"handleKey": {"existingSecret": ""}}),
        "needs handleKey.existingSecret",
    ),
    "a previous key alone": (
        {"handleKey": {"previous": {"existingSecret": "old"}}},
        "there is no new key to go over to",
    ),
    "a load balancer without authentication": (
        {"server": {"service": {"type": "LoadBalancer"}}},
        "server.service.type=LoadBalancer with auth.methods empty",
    ),
    "a node port without authentication": (
        {"server": {"service": {"type": "NodePort"}}},
        "server.service.type=NodePort with auth.methods empty",
    ),
    "credentials that nobody checks": (
        {"auth": {"adminKey": {"existingSecret": "admin"}}},
        "authentication would be off",
    ),
    "an admin key without api-key": (
        merged(JWT, {"auth": {"adminKey": {"existingSecret": "admin"}}}),
        "needs api-key among auth.methods",
    ),
    "tokens without keys": (
        merged(JWT, {"auth": {"jwks": {"url": ""}}}),
        "set one of auth.jwks.url and auth.jwks.existingSecret",
    ),
    "two sources of keys": (
        merged(JWT, {"auth": {"jwks": {"existingSecret": "jwks"}}}),
        "set one of auth.jwks.url and auth.jwks.existingSecret",
    ),
    "tokens for anybody": (
        merged(JWT, {"auth": {"audience": ""}}),
        "set auth.issuer and auth.audience",
    ),
    "keys without tokens": (
        merged(JWT, {"auth": {"methods": ["api-key"]}}),
        "auth.jwks needs jwt among auth.methods",
    ),
    "a claim without GPUs": (
        {"encoderWorker": {"enabled": True}, "gpu": {"claim": {"enabled": True}}},
        "gpu.claim.enabled without gpu.enabled",
    ),
    "a volume with a name of the chart's": (
        {"server": {"extraVolumes": [{"name": "config", "configMap": {"name": "mine"}}]}},
        "server.extraVolumes has config, which is a volume of the chart's own",
    ),
    "a mount of no volume": (
        {"encoderWorker": {"extraVolumeMounts": [{"name": "authority", "mountPath": "/x"}]}},
        "encoderWorker.extraVolumeMounts has authority, which is not among",
    ),
    "client certificates without TLS": ({"auth": {"methods": ["mtls"]}}, "auth.methods has mtls"),
    "an authority without TLS": (
        {"tls": {"clientCa": {"existingSecret": "ca"}}},
        "there is no TLS to ask for a certificate in",
    ),
    "GPUs without workers": ({"gpu": {"enabled": True}}, "only workers run on GPUs"),
    "GPUs without their image": (
        merged(GPU, {"encoderWorker": {"image": None}}),
        "gpu.enabled needs encoderWorker.image",
    ),
    "nobody embeds": ({"config": {"encoder": {"in_process": False}}}, "nothing would embed"),
    "a volume that is not named": ({"model": {"source": "volume"}}, "needs model.existingClaim"),
    "a model that can't be fetched": (
        {"model": {"source": "fetch", "name": "multilingual-e5-small"}},
        "model.source=fetch can't get multilingual-e5-small",
    ),
    "a grace period that cuts calls off": (
        {"server": {"drainSeconds": 60, "terminationGracePeriodSeconds": 60}},
        "preStopSeconds and drainSeconds need 70",
    ),
    "a worker's grace period": (
        {"encoderWorker": {"terminationGracePeriodSeconds": 19}},
        "encoderWorker.terminationGracePeriodSeconds is 19",
    ),
    "more at least than at most": (
        merged(POSTGRESQL, METRICS, HPA, {"server": {"autoscaling": {"maxReplicas": 2}}}),
        "server.autoscaling.minReplicas is more than maxReplicas",
    ),
    "keda that has nobody to ask": (
        merged(POSTGRESQL, {"server": {"autoscaling": {"enabled": True, "kind": "keda"}}}),
        "needs monitoring.keda.prometheusAddress",
    ),
    "an hpa without metrics": (
        merged(POSTGRESQL, HPA),
        "needs monitoring.podMonitor.enabled and monitoring.rules.enabled",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused(case: str) -> None:
    values, said = REFUSED[case]
    with pytest.raises(chart.RefusedError, match="make no sense together") as refused:
        chart.render(values)
    assert said in str(refused.value)


def test_all_of_it_is_said_at_once() -> None:
    values = merged(
        {"server": {"replicas": 3, "service": {"type": "NodePort"}}, "gpu": {"enabled": True}}
    )
    with pytest.raises(chart.RefusedError) as refused:
        chart.render(values)
    assert str(refused.value).count("\n  - ") == 4


ALLOWED: dict[str, Values] = {
    "a load balancer behind something that authenticates": {
        "server": {"service": {"type": "LoadBalancer"}},
        "auth": {"allowUnauthenticatedExposure": True},
    },
    "a load balancer with tokens": merged(JWT, {"server": {"service": {"type": "LoadBalancer"}}}),
    "nobody in this process, but workers elsewhere": {
        "config": {"encoder": {"in_process": False}},
        "encoderWorker": {"addresses": ["dns://workers.gpu.svc:7072"]},
    },
    "a longer grace period": {"server": {"terminationGracePeriodSeconds": 90}},
    "no pods for now": {"server": {"replicas": 0}},
}


@pytest.mark.parametrize("case", ALLOWED)
def test_what_makes_sense_is_not(case: str) -> None:
    assert chart.render(ALLOWED[case])


# Values that the schema refuses, and a word of what it says.
MISTAKES: dict[str, tuple[Values, str]] = {
    "a misspelt value": ({"sever": {"replicas": 1}}, "sever"),
    "a misspelt value within": ({"server": {"replica": 1}}, "replica"),
    "a misspelt key of the configuration": ({"config": {"router": {"topk": 3}}}, "topk"),
    "a key that the chart sets": ({"config": {"server": {"listen": "0.0.0.0:1"}}}, "listen"),
    "a secret in the values": ({"config": {"handle": {"key": "c2VjcmV0"}}}, "key"),
    "a number out of range": ({"config": {"router": {"top_k": 0}}}, "top_k"),
    "a duration without a unit": ({"config": {"handle": {"ttl": "60"}}}, "ttl"),
    "a text for a number": ({"config": {"limits": {"max_intents": "16"}}}, "max_intents"),
    "an unknown store": ({"store": {"type": "etcd"}}, "type"),
    "an unknown method": ({"auth": {"methods": ["basic"]}}, "methods"),
    "keys without TLS": ({"auth": {"jwks": {"url": "http://login.example"}}}, "url"),
    "a digest cut short": ({"image": {"digest": "sha256:00"}}, "digest"),
    "a GPU that is too old": ({"gpu": {"nodeAffinity": {"minComputeMajor": 7}}}, "minComputeMajor"),
    "devices that are never busy": (
        {"encoderWorker": {"autoscaling": {"deviceBusyPercent": 0}}},
        "deviceBusyPercent",
    ),
    "no name of a resource": ({"gpu": {"resourceName": "gpu"}}, "resourceName"),
    "a folder of the node's": (
        {"server": {"extraVolumes": [{"name": "x", "hostPath": {"path": "/etc/ssl"}}]}},
        "hostPath",
    ),
    "a misspelt peer": ({"networkPolicy": {"clients": [{"podSelectors": {}}]}}, "podSelectors"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_are_refused_by_the_schema(case: str) -> None:
    values, said = MISTAKES[case]
    with pytest.raises(chart.RefusedError, match="don't meet the specifications") as refused:
        chart.render(values)
    assert said in str(refused.value)


def test_the_schema_is_closed_and_refers_to_nothing_outside() -> None:
    def closed(schema: object, place: str) -> None:
        if isinstance(schema, list):
            for item in schema:
                closed(item, place)
        if not isinstance(schema, dict):
            return
        if schema.get("type") == "object":
            assert schema.get("additionalProperties", True) is not True, place
        if "$ref" in schema:
            assert schema["$ref"].startswith("#/$defs/"), place
            assert schema["$ref"].removeprefix("#/$defs/") in whole["$defs"], place
        for name, part in schema.items():
            closed(part, f"{place}/{name}")

    whole = json.loads((chart.CHART / "values.schema.json").read_text())
    closed(whole, "#")
