"""By kube-apiserver's own rules: strict decoding, validation, and the restricted standard."""

import json
from pathlib import Path

import chart
import pytest
import tools
from chart import Object, Values


def complaints(objects: list[Object]) -> list[str]:
    """Returns the API server's complaints of objects."""
    known = [one for one in objects if one["kind"] not in chart.CUSTOM]
    code, said = tools.run(tools.ADMISSION, stdin=json.dumps(known))
    assert (code, bool(said)) in {(0, False), (1, True)}, said
    return said.splitlines()


@pytest.mark.parametrize("example", chart.EXAMPLES, ids=lambda path: path.stem)
def test_a_server_would_take_every_object_into_a_restricted_namespace(example: Path) -> None:
    assert complaints(chart.render(example)) == []


SWITCHES: list[Values] = [
    {"model": {"source": "fetch"}},
    {"store": {"persistence": {"enabled": False}}, "server": {"bind": "[::]", "preStopSeconds": 0}},
    {
        "gpu": {"enabled": True, "nodeAffinity": {"products": ["NVIDIA-L4"]}},
        "encoderWorker": {"enabled": True, "image": {"tag": "cuda"}},
        "tracing": {"endpoint": "http://collector:4317", "headers": {"existingSecret": "c"}},
        "server": {"nodeRequirements": [{"key": "arch", "operator": "In", "values": ["amd64"]}]},
    },
]


@pytest.mark.parametrize("values", SWITCHES)
def test_so_it_would_with_other_switches(values: Values) -> None:
    assert complaints(chart.render(values)) == []


def test_the_rules_find_what_is_wrong() -> None:
    objects = chart.render()
    spec = chart.find(objects, "Deployment")["spec"]["template"]["spec"]
    spec["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    spec["containers"][0]["volumeMounts"].append({"name": "nowhere", "mountPath": "/x"})
    chart.find(objects, "Service")["spec"]["ports"][0]["port"] = 70_000
    chart.find(objects, "NetworkPolicy")["spec"]["ingres"] = []
    found = complaints(objects)
    assert len(found) == 4
    for part in ("PodSecurity restricted: allowPrivilegeEscalation", "nowhere", "70000", "ingres"):
        assert sum(part in line for line in found) == 1, part
