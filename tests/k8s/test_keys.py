"""The chart speaks of the keys that the server knows, and no others."""

import re
import tomllib
from pathlib import Path

import chart
import generate
import pytest
import table

KNOWN = frozenset(key.name for key in table.known_keys())


def toml_of(objects: list[chart.Object]) -> dict[str, dict[str, object]]:
    text = chart.find(objects, "ConfigMap")["data"]["toolgate.toml"]
    return tomllib.loads(text)


def test_all_keys_are_read() -> None:
    registry = (table.CONFIG / "keys.rs").read_text()
    assert len(re.findall(r"\w+\.spec,", registry)) == len(table.known_keys()) == len(KNOWN)
    assert len(KNOWN) > 50
    assert {"server.listen", "store.path", "handle.key_file", "log.intents"} <= KNOWN


def test_keys_to_come_have_not_come() -> None:
    here = sorted(table.TO_COME & KNOWN)
    here += sorted(table.WORKER_TO_COME & table.worker_variables())
    here += sorted(table.COMMAND_TO_COME & table.command_variables())
    assert not here, (
        f"the server knows {here} now: take them out of its lists in tests/k8s/table.py"
    )


def test_keys_that_the_chart_sets_are_keys() -> None:
    unknown = sorted(table.OWNED - KNOWN - table.TO_COME)
    assert not unknown, f"no such keys: {unknown}"


@pytest.mark.parametrize("example", chart.EXAMPLES, ids=lambda path: path.stem)
def test_the_configuration_has_keys_that_the_server_knows(example: Path) -> None:
    config = toml_of(chart.render(example))
    written = {f"{section}.{key}" for section, keys in config.items() for key in keys}
    assert written <= KNOWN | table.TO_COME
    assert {"server.listen", "server.drain_timeout", "store.path"} <= written


def test_the_templates_have_every_key_that_the_chart_owns_or_leave_it_alone() -> None:
    templates = (chart.CHART / "templates" / "_config.tpl").read_text()
    left_alone = {"store.url", "encoder.model", "encoder.model_dir", "handle.key"}
    # Worker processes within the server's pod: workers are pods here.
    left_alone |= {"encoder.gpus", "encoder.local_workers"}
    for name in sorted(table.OWNED - left_alone):
        assert f"{name.split('.')[1]}:" in templates, name


@pytest.mark.parametrize("example", chart.EXAMPLES, ids=lambda path: path.stem)
def test_variables_are_known_to_the_programs(example: Path) -> None:
    worker = table.worker_variables() | table.WORKER_TO_COME
    command = table.command_variables() | table.COMMAND_TO_COME
    keys = {f"TOOLGATE_{name.replace('.', '_').upper()}" for name in KNOWN}
    for one in chart.render(example):
        for container in chart.containers(chart.pod_of(one) or {"spec": {"containers": []}}):
            ours = {name for name in chart.env(container) if name.startswith("TOOLGATE_")}
            of_worker = container["name"] == "encoder-worker"
            assert ours <= (worker if of_worker else keys | command), container["name"]


def test_values_become_toml_as_they_were_written() -> None:
    values = {
        "config": {
            "router": {"threshold": 0.3, "top_k": 7, "clauses": False},
            "limits": {"max_tools_per_tenant": 10_000_000},
            "encoder": {"query_prefix": 'say "hi" & <go>: \\'},
            "deferral": {"denied_models": ["gpt-3*", "llama"]},
            "shard": {"memory_budget": "1GiB"},
        }
    }
    config = toml_of(chart.render(values))
    assert config["router"] == {"threshold": 0.3, "top_k": 7, "clauses": False}
    assert isinstance(config["router"]["top_k"], int)
    assert config["limits"] == {"max_tools_per_tenant": 10_000_000}
    assert config["encoder"]["query_prefix"] == 'say "hi" & <go>: \\'
    assert config["deferral"] == {"denied_models": ["gpt-3*", "llama"]}
    assert config["shard"] == {"memory_budget": "1GiB"}


def test_pages_name_keys_that_the_server_knows() -> None:
    text = "".join(path.read_text() for path in sorted((table.ROOT / "docs").glob("*.md")))
    sections = "|".join(sorted({name.split(".")[0] for name in KNOWN}))
    named = set(re.findall(rf"`config\.((?:{sections})\.\w+)", text))
    assert named
    assert named <= KNOWN, f"no such keys: {sorted(named - KNOWN)}"


def test_what_is_generated_is_up_to_date() -> None:
    stale = [path.name for path, text in generate.outputs().items() if path.read_text() != text]
    assert not stale, "run `make k8s-generate`"


def test_every_value_has_a_comment_and_a_schema() -> None:
    documented = {path for path, _, _ in generate.documented_values()}
    assert len(documented) > 100
    for path in ("server.replicas", "gpu.resourceName", "networkPolicy.clients", "test.tenant"):
        assert path in documented


def test_the_chart_has_the_version_of_the_program() -> None:
    cargo = tomllib.loads((table.ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    about = chart.helm("show", "chart", str(chart.CHART))
    assert f"version: {cargo['version']}\n" in about
    assert f"appVersion: {cargo['version']}\n" in about
