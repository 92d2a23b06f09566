"""A real API server takes every example into a namespace under the restricted standard."""

import copy

import chart
import pytest
from api import Answer, Api
from chart import Object
from releases import Release


def named(one: Object) -> str:
    return f"{one['kind']} {one['metadata']['name']}"


def revision(answer: Answer) -> str:
    return str(answer.body["metadata"]["resourceVersion"])


def complaints(objects: list[Object], answers: list[Answer]) -> list[str]:
    """Lists the refusals and warnings of the server."""
    return [
        f"{named(one)}: {answer.status} {answer.said} {answer.warnings}"
        for one, answer in zip(objects, answers, strict=True)
        if not answer.good or answer.warnings
    ]


def made_pod(maker: Object) -> Object:
    """The pod that a controller would make of an object's template."""
    template = chart.pod_of(maker)
    assert template
    pod = {"apiVersion": "v1", "kind": "Pod", **copy.deepcopy(template)}
    pod["metadata"]["name"] = f"{maker['metadata']['name']}-5d4f8c7b6d-abcde"
    pod["metadata"]["labels"]["pod-template-hash"] = "5d4f8c7b6d"
    return pod


def test_it_is_the_version_by_whose_rules_objects_are_checked_without_it(api: Api) -> None:
    modules = (chart.ROOT / "tests" / "k8s" / "admission" / "go.mod").read_text()
    assert f"k8s.io/kubernetes v{api.version()}\n" in modules


def test_it_takes_every_object_without_a_warning(release: Release) -> None:
    assert complaints(release.objects, release.answers) == []
    assert {answer.status for answer in release.answers} == {201}


def test_to_apply_it_again_changes_nothing(api: Api, release: Release) -> None:
    for one, answer in zip(release.objects, release.answers, strict=True):
        before = answer
        if one["kind"] == "PersistentVolumeClaim":
            # The server writes any claim once more than it must, also one that says nothing.
            before = api.apply(one, release.namespace)
        after = api.apply(one, release.namespace)
        assert complaints([one, one], [before, after]) == []
        assert revision(before) == revision(after), named(one)


def test_the_namespace_lets_its_pods_in(api: Api, release: Release) -> None:
    makers = [one for one in release.objects if one["kind"] != "Pod" and chart.pod_of(one)]
    assert makers
    pods = [made_pod(maker) for maker in makers]
    answers = [api.create(pod, release.namespace) for pod in pods]
    assert complaints(pods, answers) == []
    assert {answer.status for answer in answers} == {201}
    gone = [api.delete(pod, release.namespace) for pod in pods]
    assert complaints(pods, gone) == []


def unsafe(maker: Object) -> Object:
    """The object, with a container that may become root."""
    changed = copy.deepcopy(maker)
    pod = chart.pod_of(changed)
    assert pod
    pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    return changed


@pytest.fixture
def objects(api: Api, namespace: str) -> list[Object]:
    """The chart without any value."""
    return chart.render(version=api.version(), namespace=namespace)


def test_the_namespace_refuses_a_pod_that_may_become_root(
    api: Api, namespace: str, objects: list[Object]
) -> None:
    account = chart.find(objects, "ServiceAccount")
    assert api.apply(account, namespace).good
    deployment = unsafe(chart.find(objects, "Deployment"))
    warned = api.apply(deployment, namespace)
    assert warned.good
    assert len(warned.warnings) == 1
    assert "restricted" in warned.warnings[0]
    for pod in (made_pod(deployment), unsafe(chart.find(objects, "Pod", "toolgate-test"))):
        refused = api.create(pod, namespace)
        assert refused.status == 403
        assert 'violates PodSecurity "restricted' in refused.said
        assert "allowPrivilegeEscalation" in refused.said


def test_a_misspelt_field_is_refused(api: Api, namespace: str, objects: list[Object]) -> None:
    policy = copy.deepcopy(chart.find(objects, "NetworkPolicy"))
    policy["spec"]["ingres"] = []
    applied = api.apply(policy, namespace)
    created = api.create(policy, namespace)
    # Of a field that it does not know, the server answers an apply with 500.
    assert (applied.status, created.status) == (500, 400)
    assert ".spec.ingres: field not declared" in applied.said
    assert 'unknown field "spec.ingres"' in created.said


def test_a_misspelt_field_of_a_custom_object_is_refused(api: Api, namespace: str) -> None:
    example = chart.example("keda")
    rendered = chart.render(example, version=api.version(), namespace=namespace)
    for kind in ("PodMonitor", "ScaledObject"):
        changed = copy.deepcopy(next(one for one in rendered if one["kind"] == kind))
        changed["spec"]["misspelt"] = "x"
        refused = api.apply(changed, namespace)
        assert not refused.good
        assert "misspelt" in refused.said


def test_to_apply_something_else_changes_it(
    api: Api, namespace: str, objects: list[Object]
) -> None:
    service = chart.find(objects, "Service")
    first = api.apply(service, namespace)
    changed = copy.deepcopy(service)
    changed["metadata"]["labels"]["team"] = "other"
    second = api.apply(changed, namespace)
    assert first.good
    assert second.good
    assert revision(first) != revision(second)
