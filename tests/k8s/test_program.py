"""Tells the program itself what the chart tells it: the one that TOOLGATE_BIN names."""

import os
import re
import shutil
import subprocess
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import chart
import pytest
import table
import yaml
from ports import free_port

BINARY = os.environ["TOOLGATE_BIN"]


def variables(**more: str) -> dict[str, str]:
    """This process's environment without settings of ours."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith("TOOLGATE_")}
    return {**mine, **more}


def without_keys_to_come(text: str) -> str:
    """A configuration without the keys, and so the sections, that the server does not know yet."""
    known = {key.section for key in table.known_keys()}
    section, kept = "", []
    for line in text.splitlines():
        if match := re.match(r"\[(\w+)\]", line):
            section = match[1]
        if section in known and f"{section}.{line.split(' = ')[0]}" not in table.TO_COME:
            kept.append(line)
    return "\n".join(kept)


@pytest.mark.parametrize("example", chart.EXAMPLES, ids=lambda path: path.stem)
def test_the_program_takes_the_configuration(example: Path, tmp_path: Path) -> None:
    text = chart.find(chart.render(example), "ConfigMap")["data"]["toolgate.toml"]
    path = tmp_path / "toolgate.toml"
    path.write_text(without_keys_to_come(text))
    command = [BINARY, "config", "check", str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30, env=variables())
    assert ran.returncode == 0, ran.stderr


def test_the_image_has_models_and_data_where_the_chart_has_them() -> None:
    stage = (chart.ROOT / "k8s" / "images" / "Dockerfile").read_text().split(" AS server\n")[1]
    places = dict(re.findall(r"(XDG_\w+)=(\S+)", stage.split("\nUSER")[0]))
    command = [BINARY, "model", "path"]
    env = variables(**places, HOME="/tmp")
    said = subprocess.run(command, capture_output=True, text=True, timeout=30, env=env, check=True)
    container = chart.main_container(chart.render())
    assert said.stdout.strip() == chart.env(container)["TOOLGATE_MODEL_DIR"]
    assert places["XDG_DATA_HOME"] + "/toolgate" in str(container["volumeMounts"])


def page(port: int, path: str) -> int:
    """The status of an admin page; 0 when nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
            status: int = answer.status
            return status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


@contextmanager
def running(command: list[str], env: dict[str, str], admin: int, log: Path) -> Iterator[None]:
    """A process of ours, from when it is ready until it has drained."""
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=env)
        try:
            deadline = time.monotonic() + 120
            while page(admin, "/readyz") != 200:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
            yield
        finally:
            process.terminate()
            assert process.wait(120) == 0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """A server with the chart's configuration, at free ports: its address and admin port."""
    text = chart.find(chart.render(chart.example("minimal")), "ConfigMap")["data"]["toolgate.toml"]
    grpc, admin = free_port(), free_port()
    text = text.replace("0.0.0.0:7070", f"127.0.0.1:{grpc}")
    text = text.replace("0.0.0.0:7071", f"127.0.0.1:{admin}")
    text = text.replace("/var/lib/toolgate/store", str(tmp_path / "store"))
    assert tomllib.loads(text)["server"]["listen"] == f"127.0.0.1:{grpc}"
    config = tmp_path / "toolgate.toml"
    config.write_text(text)
    command = [BINARY, "serve", "--config", str(config)]
    with running(command, variables(), admin, tmp_path / "log"):
        yield f"http://127.0.0.1:{grpc}", admin


def test_a_worker_takes_its_variables_and_serves_its_pages(tmp_path: Path) -> None:
    values = {
        "encoderWorker": {"enabled": True, "maxBatchTokens": 512, "queueCapacity": 64},
        "config": {"log": {"level": "debug"}, "encoder": {"adapter": "auto"}},
    }
    container = chart.main_container(chart.render(values), "toolgate-encoder-worker")
    told = chart.env(container)
    # A field of the pod's, which Kubernetes would put here.
    told["TOOLGATE_WORKER_THREADS"] = "2"
    # The model is where this machine has it.
    del told["TOOLGATE_MODEL_DIR"]
    admin = free_port()
    told["TOOLGATE_WORKER_LISTEN"] = told["TOOLGATE_WORKER_LISTEN"].replace("7072", "0")
    told["TOOLGATE_WORKER_ADMIN_LISTEN"] = f"127.0.0.1:{admin}"
    told["HOME"] = os.environ["HOME"]
    env = variables(**told)
    with running([BINARY, *container["args"]], env, admin, tmp_path / "log"):
        assert page(admin, "/healthz") == 200
    records = (tmp_path / "log").read_text().splitlines()
    assert all(line.startswith("{") for line in records)
    assert "0.0.0.0:" in records[0] + records[1]


def test_the_test_of_the_release_passes_against_a_server(
    server: tuple[str, int], tmp_path: Path
) -> None:
    address, admin = server
    assert page(admin, "/livez") == 200
    data = chart.find(chart.render(), "ConfigMap", "toolgate-test")["data"]
    for name, text in data.items():
        (tmp_path / name).write_text(text.replace("/test/", f"{tmp_path}/"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "toolgate").symlink_to(Path(BINARY).resolve())
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    env = variables(PATH=path, TOOLGATE_ENDPOINT=address, TOOLGATE_TENANT="helm-test")
    shell = shutil.which("sh") or "/bin/sh"
    command = [shell, str(tmp_path / "test.sh")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.endswith("passed\n")
    for place in ("true", "false"):
        # A test that can't fail would say nothing.
        broken = data["test.sh"].replace('"zone": "Asia/Tokyo"', f'"zone": {place}')
        (tmp_path / "test.sh").write_text(broken.replace("/test/", f"{tmp_path}/"))
        assert subprocess.run(command, capture_output=True, timeout=60, env=env).returncode != 0


def test_the_page_that_compose_asks_is_there(server: tuple[str, int]) -> None:
    compose = yaml.safe_load((chart.ROOT / "k8s" / "compose.yaml").read_text())
    _, shell, flag, script = compose["services"]["toolgate"]["healthcheck"]["test"]
    asked = script.replace("7071", str(server[1]))
    assert subprocess.run([shell, flag, asked], timeout=60).returncode == 0
    nowhere = script.replace("7071", str(free_port()))
    assert subprocess.run([shell, flag, nowhere], capture_output=True, timeout=60).returncode != 0
