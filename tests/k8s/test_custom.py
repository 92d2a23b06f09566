"""Objects of operators are as their operators define them."""

import functools
from typing import Any

import chart
import jsonschema
import pytest
import tools
import yaml


def closed(schema: Any) -> Any:
    """A schema that refuses what it does not name, as a strict API server does."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    whole = {name: closed(part) for name, part in schema.items()}
    if isinstance(whole.get("properties"), dict) and "additionalProperties" not in whole:
        whole["additionalProperties"] = bool(whole.get("x-kubernetes-preserve-unknown-fields"))
    if whole.get("x-kubernetes-int-or-string"):
        whole["type"] = ["integer", "string"]
    return whole


@functools.cache
def validator(kind: str) -> jsonschema.Draft202012Validator:
    definition = yaml.safe_load((tools.DEFINITIONS / chart.CUSTOM[kind]).read_text())
    served = next(one for one in definition["spec"]["versions"] if one["storage"])
    schema = closed(served["schema"]["openAPIV3Schema"])
    schema["properties"]["metadata"] = {"type": "object"}
    return jsonschema.Draft202012Validator(schema)


def problems(one: chart.Object) -> list[str]:
    found = validator(one["kind"]).iter_errors(one)
    return [f"{'/'.join(str(part) for part in error.path)}: {error.message}" for error in found]


@pytest.mark.parametrize(("example", "count"), [("ha", 3), ("keda", 3), ("gateway", 1), ("llm", 3)])
def test_objects_of_operators_are_as_defined(example: str, count: int) -> None:
    custom = [one for one in chart.render(chart.example(example)) if one["kind"] in chart.CUSTOM]
    assert len(custom) >= count
    for one in custom:
        assert problems(one) == []


def test_the_check_finds_a_misspelt_field() -> None:
    monitor = chart.find(chart.render(chart.example("ha")), "PodMonitor")
    monitor["spec"]["podMetricsEndpoint"] = monitor["spec"].pop("podMetricsEndpoints")
    assert problems(monitor)


def test_targets_are_known_as_toolgates_whatever_the_release_is_called() -> None:
    """ToolgateDown goes by this label: a pod that never answered has no series of its own."""
    objects = chart.render(chart.example("ha"), release="router")
    monitors = [one for one in objects if one["kind"] == "PodMonitor"]
    found = []
    for monitor in monitors:
        assert problems(monitor) == []
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        found += endpoint["relabelings"]
    assert found == [
        {"targetLabel": "toolgate_component", "replacement": component}
        for component in ("server", "encoder-worker")
    ]
