"""`toolgate calibrate`: what it finds in the shipped intents, and the policy that it writes."""

import json
import subprocess
from pathlib import Path

import pytest
from toolgate_command import run

from toolgate import Client, ToolgateError

DATA = Path(__file__).parent.parent / "data"
SET = ("--catalog", str(DATA / "servers"), "--queries", str(DATA / "intents" / "english.jsonl"))


def calibrate(binary: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    return run(binary, "calibrate", *flags)


def test_a10_the_policy_that_is_found_can_be_set(
    binary: Path, notes: Client, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.yaml"
    done = calibrate(binary, *SET, "--out", str(policy), "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["labelled_queries"], report["no_tool_queries"]) == (100, 40)
    points = {point["threshold"]: point["f1"] for point in report["curve"]}
    threshold = report["threshold"]
    best = threshold["rule"]["threshold"]
    assert len(points) == 101
    assert points[best] == max(points.values())
    assert threshold["fitted"]["f1"] == points[best] > threshold["held_out"]["f1"]
    ratio = report["ratio"]
    assert ratio["fitted"]["false_rejects"] <= 0.02
    assert ratio["fitted"]["f1"] > report["now"]["fitted"]["f1"]
    assert policy.read_text() == report["policy"]
    stored = notes.set_policy(policy.read_text())
    assert f"abstain_below: {ratio['rule']['abstain_below']:.2f}" in stored.document
    told = notes.route("write down a note for later", explain=True).ranking
    assert told is not None
    assert abs(told.abstain_below - ratio["rule"]["abstain_below"]) < 1e-6

    again = calibrate(binary, *SET, "--out", str(policy))
    assert again.returncode == 1
    assert "is there already" in again.stderr
    assert policy.read_text() == report["policy"]


def test_a17_a_learned_gate_is_trained_held_out_and_takes_the_place_of_the_ratio(
    binary: Path, notes: Client
) -> None:
    done = calibrate(binary, *SET, "--learn", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    learned, ratio = report["learned"], report["ratio"]
    better = learned["held_out"]["f1"] > ratio["held_out"]["f1"]
    keeps = learned["held_out"]["recall"] >= ratio["held_out"]["recall"] - 0.01
    assert report["learned_is_worth_it"] == (better and keeps)
    assert ("learned:" in report["policy"]) == report["learned_is_worth_it"]
    assert ("no better than the ratio" in done.stderr) != report["learned_is_worth_it"]
    assert learned["fitted"]["false_rejects"] <= 0.05

    gate = {name: learned["rule"][name] for name in ("least", "bias", "weights")}
    intent = "write down a note for later"
    before = [tool.name for tool in notes.route(intent)]
    notes.set_policy(json.dumps({"defaults": {"learned": gate}}))
    assert notes.route(intent).tools[0].name == before[0]
    notes.set_policy(json.dumps({"defaults": {"learned": {**gate, "bias": -1000.0}}}))
    assert not notes.route(intent).tools, "a gate that believes nothing lets nothing pass"
    wrong = json.dumps({"defaults": {"learned": {**gate, "weights": {"beauty": 1.0}}}})
    with pytest.raises(ToolgateError, match="no feature"):
        notes.set_policy(wrong)


def test_too_few_pairs_and_no_labels_are_said(binary: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.jsonl"
    few.write_text('{"query": "show the log", "relevant": ["git/git_log"]}\n')
    catalog = ("--catalog", str(DATA / "servers" / "git.json"))
    done = calibrate(binary, *catalog, "--queries", str(few), "--rule", "threshold")
    assert done.returncode == 0, done.stderr
    assert "too few to tell" in done.stderr
    assert "--no-tool" in done.stderr
    assert "threshold: 0." in done.stdout
    few.write_text('{"query": "show the log"}\n')
    unlabelled = calibrate(binary, *catalog, "--queries", str(few))
    assert unlabelled.returncode == 1
    assert "no query has labels" in unlabelled.stderr
