"""The chart as helm renders it."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "k8s" / "toolgate"
EXAMPLES = sorted((CHART / "examples").glob("*.yaml"))
# The oldest that the chart takes, the newest whose schemas are here, and those between.
VERSIONS = ["1.30.0", "1.31.0", "1.32.0", "1.33.0", "1.34.0", "1.35.0", "1.36.0", "1.37.0"]
HELM = os.environ.get("HELM") or str(Path(sys.executable).parent / "helm")

# Kinds that operators define, so that no Kubernetes knows them, and the files of their definitions.
CUSTOM = {
    "HTTPRoute": "gateway.networking.k8s.io_httproutes.yaml",
    "PodMonitor": "monitoring.coreos.com_podmonitors.yaml",
    "PrometheusRule": "monitoring.coreos.com_prometheusrules.yaml",
    "ScaledObject": "keda.sh_scaledobjects.yaml",
}

Object = dict[str, Any]
Values = dict[str, Any]

# Enough for a release over PostgreSQL.
POSTGRESQL: Values = {
    "store": {"type": "postgresql", "postgresql": {"existingSecret": "store"}},
    "handleKey": {"existingSecret": "handle"},
}
GPU: Values = {
    "encoderWorker": {"enabled": True, "image": {"tag": "cuda"}},
    "gpu": {"enabled": True},
}


class RefusedError(Exception):
    """helm would not render."""


def example(name: str) -> Path:
    """An example's file, by its name."""
    return CHART / "examples" / f"{name}.yaml"


def merged(*parts: Values) -> Values:
    """One set of values of several, the later winning."""
    whole: Values = {}
    for part in parts:
        for name, value in part.items():
            if isinstance(value, dict) and isinstance(whole.get(name), dict):
                whole[name] = merged(whole[name], value)
            else:
                whole[name] = value
    return whole


def helm(*arguments: str, stdin: str = "") -> str:
    """Returns the output of helm.

    Raises:
        RefusedError: It failed; what it said.
    """
    ran = subprocess.run(
        [HELM, *arguments], input=stdin, capture_output=True, text=True, timeout=60
    )
    if ran.returncode:
        raise RefusedError(ran.stderr)
    return ran.stdout


@functools.cache
def _template(values: str, version: str, release: str, namespace: str) -> str:
    arguments = ["--values", "-", "--kube-version", version, "--namespace", namespace]
    return helm("template", release, str(CHART), *arguments, stdin=values)


def render(
    values: Values | Path | None = None,
    version: str = "1.34.0",
    release: str = "toolgate",
    namespace: str = "agents",
) -> list[Object]:
    """All objects of a release."""
    text = values.read_text() if isinstance(values, Path) else json.dumps(values or {})
    documents = yaml.safe_load_all(_template(text, version, release, namespace))
    return [document for document in documents if document]


def find(objects: list[Object], kind: str, name: str = "toolgate") -> Object:
    """The one object of that kind and name."""
    found = [one for one in objects if one["kind"] == kind and one["metadata"]["name"] == name]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} objects are {kind} {name}")
    return found[0]


def rules(policy: Object, way: str) -> list[tuple[list[int], list[Object] | None]]:
    """Ports and peers of a policy's rules; no peers: anywhere."""
    peer = {"ingress": "from", "egress": "to"}[way]
    return [
        ([port["port"] for port in rule["ports"]], rule.get(peer))
        for rule in policy["spec"].get(way, [])
    ]


def names(objects: list[Object], kind: str) -> list[str]:
    """The names of the objects of that kind."""
    return [one["metadata"]["name"] for one in objects if one["kind"] == kind]


def pod_of(one: Object) -> Object | None:
    """The pod that an object is or makes."""
    if one["kind"] == "Pod":
        return one
    template = one.get("spec", {}).get("template")
    return template if isinstance(template, dict) else None


def containers(pod: Object) -> list[Object]:
    """All containers of a pod, those that run first included."""
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def main_container(objects: list[Object], name: str = "toolgate") -> Object:
    """The container of a Deployment."""
    found: Object = find(objects, "Deployment", name)["spec"]["template"]["spec"]["containers"][0]
    return found


def env(container: Object) -> dict[str, Any]:
    """A container's environment: values, or where they come from."""
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container["env"]}
