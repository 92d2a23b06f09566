"""A release of the chart on a server, and what must be there before it."""

import time
from dataclasses import dataclass
from pathlib import Path

import chart
import yaml
from api import Answer, Api
from chart import Object

DEFINED_SECONDS = 30
STANDARD = "pod-security.kubernetes.io"


@dataclass(frozen=True)
class Release:
    """A rendering of the chart in a namespace of its own, applied once."""

    namespace: str
    objects: list[Object]
    answers: list[Answer]


def define(api: Api, path: Path) -> None:
    """Makes the server know a kind of custom object."""
    definition = yaml.safe_load(path.read_text())
    applied = api.apply(definition)
    assert applied.good, applied.said
    spec = definition["spec"]
    version = next(one["name"] for one in spec["versions"] if one["storage"])
    listed = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
    served = f"/apis/{spec['group']}/{version}"
    give_up = time.monotonic() + DEFINED_SECONDS
    while not (api.ask("GET", served).good and api.ask("GET", listed).good):
        assert time.monotonic() < give_up, f"{listed} is not served"
        time.sleep(0.1)


def make_namespace(api: Api, name: str) -> None:
    """A namespace that only lets restricted pods in, and warns of what would make others."""
    labels = {f"{STANDARD}/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
    about = {"name": name, "labels": labels}
    made = api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": about})
    assert made.good, made.said


def make_what_pods_name(api: Api, objects: list[Object], namespace: str) -> None:
    """Makes what pods name and the chart leaves to an administrator or a controller."""
    specs = [pod["spec"] for pod in map(chart.pod_of, objects) if pod]
    accounts = {one["serviceAccountName"] for one in specs}
    for name in accounts - set(chart.names(objects, "ServiceAccount")):
        about = {"name": name}
        made = api.apply(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about}, namespace
        )
        assert made.good, made.said
    kinds: dict[str, Object] = {
        "priorityClassName": {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "value": 1000,
        },
        "runtimeClassName": {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "handler": "runc",
        },
    }
    for key, body in kinds.items():
        for name in {one[key] for one in specs if key in one}:
            made = api.apply({**body, "metadata": {"name": name}})
            assert made.good, made.said
