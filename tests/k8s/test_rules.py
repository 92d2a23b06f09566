"""Alerts, recording rules and the dashboard are ones that Prometheus and Grafana can read."""

import json
from pathlib import Path

import chart
import tools
import yaml


def groups() -> str:
    """The rules of the chart as a file of Prometheus's."""
    rule = chart.find(chart.render(chart.example("ha")), "PrometheusRule")
    return yaml.safe_dump(rule["spec"], sort_keys=False)


def test_promtool_reads_every_rule(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(groups())
    code, said = tools.run(tools.PROMTOOL, "check", "rules", str(path))
    assert code == 0, said
    assert "SUCCESS" in said


def test_alerts_come_through_as_they_were_written() -> None:
    written = yaml.safe_load((chart.CHART / "files" / "alerts.yaml").read_text())["groups"]
    rendered = yaml.safe_load(groups())["groups"]
    assert rendered[: len(written)] == written


def series(namespace: str, pod: str, method: str, le: str) -> str:
    labels = f'namespace="{namespace}",pod="{pod}",rpc_method="{method}",le="{le}"'
    return f"rpc_server_call_duration_seconds_bucket{{{labels}}}"


ROUTE = "toolgate.v1.RouterService/Route"
EMBED = "toolgate.v1.EncoderService/Embed"
CALLED = {
    series("agents", "toolgate-a1-b2", ROUTE, "0.1"): "0+10x20",
    series("agents", "toolgate-a1-b2", ROUTE, "+Inf"): "0+10x20",
    # Another namespace's, another method's, an idle pod's: not recorded.
    series("other", "toolgate-a1-b2", ROUTE, "+Inf"): "0+10x20",
    series("agents", "toolgate-a1-b3", "toolgate.v1.RouterService/Gate", "+Inf"): "0+10x20",
    series("agents", "toolgate-encoder-worker-a1-b2", EMBED, "0.01"): "0+10x20",
    series("agents", "toolgate-encoder-worker-a1-b2", EMBED, "+Inf"): "0+10x20",
    series("agents", "toolgate-a1-b4", ROUTE, "+Inf"): "7x20",
}
RECORDED = {
    "labels": '{namespace="agents",pod="toolgate-a1-b2"}',
    "value": 0.099,
}
WORKER = {
    "labels": '{namespace="agents",pod="toolgate-encoder-worker-a1-b2"}',
    "value": 0.0099,
}


def test_the_guards_metric_is_recorded_for_each_pod_that_is_called(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(groups())
    expected = {
        "expr": "round(toolgate_call_p99_seconds, 0.0001)",
        "eval_time": "5m",
        "exp_samples": [RECORDED, WORKER],
    }
    test = {
        "interval": "30s",
        "input_series": [{"series": name, "values": values} for name, values in CALLED.items()],
        "promql_expr_test": [expected],
    }
    whole = {"evaluation_interval": "30s", "rule_files": ["rules.yaml"], "tests": [test]}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(whole))
    code, said = tools.run(tools.PROMTOOL, "test", "rules", str(tmp_path / "test.yaml"))
    assert code == 0, said


WORKERS = "toolgate-encoder-worker-a1-b"


def busy(namespace: str, pod: str) -> str:
    labels = f'namespace="{namespace}",pod="{pod}"'
    return f"toolgate_embed_device_busy_seconds_total{{{labels}}}"


def test_the_share_of_busy_time_is_recorded_for_each_worker(tmp_path: Path) -> None:
    values = yaml.safe_load(chart.example("ha").read_text())
    scaled = {"encoderWorker": {"autoscaling": {"deviceBusyPercent": 70}}}
    rule = chart.find(chart.render(chart.merged(values, scaled)), "PrometheusRule")
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rule["spec"]))
    spent = {
        busy("agents", f"{WORKERS}1"): "0+24x20",
        busy("agents", f"{WORKERS}2"): "0+0x20",
        # Another namespace's, and a server's own.
        busy("other", f"{WORKERS}1"): "0+24x20",
        busy("agents", "toolgate-a1-b1"): "0+24x20",
    }
    recorded = [
        {"labels": f'{{namespace="agents",pod="{WORKERS}{number}"}}', "value": share}
        for number, share in ((1, 0.8), (2, 0))
    ]
    expected = {
        "expr": "round(toolgate_embed_device_busy_ratio, 0.01)",
        "eval_time": "5m",
        "exp_samples": recorded,
    }
    test = {
        "interval": "30s",
        "input_series": [{"series": name, "values": values} for name, values in spent.items()],
        "promql_expr_test": [expected],
    }
    whole = {"evaluation_interval": "30s", "rule_files": ["rules.yaml"], "tests": [test]}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(whole))
    code, said = tools.run(tools.PROMTOOL, "test", "rules", str(tmp_path / "test.yaml"))
    assert code == 0, said


def test_the_dashboard_comes_through_as_it_was_written() -> None:
    text = chart.find(chart.render(chart.example("ha")), "ConfigMap", "toolgate-dashboard")
    dashboard = json.loads(text["data"]["toolgate.json"])
    assert dashboard == json.loads((chart.CHART / "files" / "dashboard.json").read_text())
    assert dashboard["panels"]
