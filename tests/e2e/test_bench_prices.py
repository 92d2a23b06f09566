"""`toolgate bench prices`: the rules by which benchmarks in other languages price prompts."""

import json
from pathlib import Path
from typing import Any

from toolgate_command import run

ROOT = Path(__file__).resolve().parents[2]


def prices(binary: Path, *arguments: str) -> list[dict[str, Any]]:
    done = run(binary, "bench", "prices", "--json", *arguments, folder=ROOT)
    assert done.returncode == 0, done.stderr
    rules: list[dict[str, Any]] = json.loads(done.stdout)
    return rules


def test_prices_are_of_one_model_of_each_api_or_of_one_that_is_named(binary: Path) -> None:
    rules = {rule["api"]: rule for rule in prices(binary)}
    assert list(rules) == ["anthropic", "openai_responses", "openai_chat", "gemini"]
    assert rules["openai_chat"] == {
        "api": "openai_chat",
        "model": "gpt-5.5",
        "write": 1.0,
        "read": 0.1,
        "least": 1024,
        "step": 128,
    }
    (haiku,) = prices(binary, "--api", "anthropic", "--model", "claude-haiku-4-5")
    assert (haiku["write"], haiku["least"]) == (1.25, 4096)


def test_prices_are_a_table_and_an_unknown_api_has_none(binary: Path) -> None:
    shown = run(binary, "bench", "prices", folder=ROOT)
    assert [line.split()[0] for line in shown.stdout.splitlines()[:2]] == ["API", "anthropic"]
    unknown = run(binary, "bench", "prices", "--api", "x", "--model", "y", folder=ROOT)
    assert unknown.returncode == 2
    assert "x is no API that has prices" in unknown.stderr
