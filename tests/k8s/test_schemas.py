"""Every object of every example is one that every version of Kubernetes knows."""

from pathlib import Path

import chart
import kubernetes_validate
import pytest


@pytest.mark.parametrize("version", chart.VERSIONS)
@pytest.mark.parametrize("example", chart.EXAMPLES, ids=lambda path: path.stem)
def test_every_object_is_one_that_kubernetes_knows(example: Path, version: str) -> None:
    objects = chart.render(example, version)
    known = [one for one in objects if one["kind"] not in chart.CUSTOM]
    assert len(known) >= 6
    for one in known:
        kubernetes_validate.validate(one, version, strict=True)


def test_the_check_finds_a_misspelt_field() -> None:
    one = chart.find(chart.render(), "Deployment")
    one["spec"]["template"]["spec"]["terminationGracePeriod"] = 3
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(one, "1.34.0", strict=True)


def test_an_older_kubernetes_is_refused() -> None:
    with pytest.raises(chart.RefusedError, match=r"incompatible with Kubernetes v1\.29"):
        chart.render(version="1.29.0")


@pytest.mark.parametrize("example", chart.EXAMPLES, ids=lambda path: path.stem)
def test_helm_lints_without_a_warning(example: Path) -> None:
    said = chart.helm("lint", "--strict", str(chart.CHART), "--values", str(example))
    assert "0 chart(s) failed" in said
    assert "WARNING" not in said


def test_names_of_objects_are_different() -> None:
    for example in chart.EXAMPLES:
        ids = [(one["kind"], one["metadata"]["name"]) for one in chart.render(example)]
        assert len(ids) == len(set(ids)), example.stem


def test_every_object_says_its_namespace_and_release() -> None:
    for example in chart.EXAMPLES:
        for one in chart.render(example):
            assert one["metadata"]["namespace"] == "agents"
            assert one["metadata"]["labels"]["app.kubernetes.io/instance"] == "toolgate"


def test_long_release_names_give_names_that_kubernetes_takes() -> None:
    objects = chart.render(chart.example("gpu"), release="a" * 53)
    assert all(len(one["metadata"]["name"]) <= 63 for one in objects)
    assert len({one["metadata"]["name"] for one in objects if one["kind"] == "Service"}) == 3
