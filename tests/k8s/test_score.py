"""kube-score finds nothing in any example but what is meant."""

import json
from pathlib import Path

import chart
import pytest
import tools
import yaml

# Demands of kube-score that the chart does not meet, in its words, and the reason.
MEANT = {
    "ImagePullPolicy is not set to Always": "a release's tag does not move, and registries fail",
    "CPU limit is not set": "a limit slows bursts that the node has time for; memory has one",
    "Deployment does not have a host podAntiAffinity set": "topology spread does it",
    "Deployment few replicas": "the embedded store has one pod; KEDA may go down to one worker",
    "Deployment update strategy": "with the embedded store, the old pod goes first",
}


def criticisms(objects: list[chart.Object]) -> list[tuple[str, str]]:
    """Objects, and what kube-score says of them."""
    text = yaml.safe_dump_all(objects)
    code, said = tools.run(tools.KUBE_SCORE, "score", "--output-format", "json", "-", stdin=text)
    assert said.startswith("["), f"{code}: {said}"
    return [
        (one["object_name"], comment["summary"])
        for one in json.loads(said)
        for check in one["checks"] or []
        if not check["skipped"] and check["grade"] < 10
        for comment in check["comments"] or [{"summary": check["check"]["id"]}]
    ]


@pytest.mark.parametrize("example", chart.EXAMPLES, ids=lambda path: path.stem)
def test_kube_score_finds_nothing(example: Path) -> None:
    found = criticisms(chart.render(example))
    assert [one for one in found if one[1] not in MEANT] == []


def test_what_is_meant_is_still_said() -> None:
    found = {said for example in chart.EXAMPLES for _, said in criticisms(chart.render(example))}
    assert found == MEANT.keys()


def test_kube_score_would_find_something() -> None:
    objects = chart.render(chart.example("cpu"))
    container = chart.main_container(objects)
    container["securityContext"]["readOnlyRootFilesystem"] = False
    del container["resources"]["limits"]["memory"]
    found = {said for _, said in criticisms(objects)} - MEANT.keys()
    assert len(found) == 2
    assert "Memory limit is not set" in found
