"""`toolgate bench prices`: the rules by which benchmarks in other languages price prompts."""

import json
from pathlib import Path
from typing import Any

import pytest
from toolgate_command import run

from toolgate._endpoints import Endpoint
from toolgate._tally import Rates

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


@pytest.mark.parametrize(
    ("api", "model"),
    [
        ("anthropic", ""),
        ("anthropic", "claude-opus-4-8"),
        ("anthropic", "claude-opus-4-6"),
        ("anthropic", "claude-opus-4-7"),
        ("anthropic", "claude-opus-5-20260724"),
        ("anthropic", "claude-fable-5"),
        ("anthropic", "Claude-Haiku-4-5-20251001"),
        ("anthropic", "claude-sonnet-4-6"),
        ("anthropic", "claude-3-5-haiku-latest"),
        ("openai_responses", ""),
        ("openai_responses", "o3"),
        ("openai_responses", "gpt-5.5"),
        ("openai_responses", "GPT-5.6-terra"),
        ("openai_responses", "openai/gpt-5.12"),
        ("openai_chat", "gpt-4o"),
        ("openai_chat", "gpt-6.1"),
        ("gemini", ""),
        ("gemini", "models/gemini-2.5-pro"),
        ("gemini", "gemini-3-pro"),
    ],
)
def test_reports_of_the_client_go_by_the_services_prices(
    binary: Path, api: str, model: str
) -> None:
    (rule,) = prices(binary, "--api", api, "--model", model)
    told = Rates.of(Endpoint(api, model))
    assert told is not None
    names = ("write", "read", "least", "step")
    assert [getattr(told, name) for name in names] == [rule[name] for name in names]
