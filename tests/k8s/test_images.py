"""The images are built of what there is, and run as the chart has them run."""

import re
import tomllib

import chart
import table
import tools
import yaml

IMAGES = chart.ROOT / "k8s" / "images"
TEXT = re.sub(r"(?m)^#.*\n", "", (IMAGES / "Dockerfile").read_text())


def stages() -> dict[str, str]:
    """The text of each stage, by its name."""
    parts = re.split(r"^FROM (\S+) AS (\S+)$", TEXT, flags=re.MULTILINE)[1:]
    return {parts[at + 1]: parts[at + 2] for at in range(0, len(parts), 3)}


def test_hadolint_finds_nothing() -> None:
    config = str(IMAGES / ".hadolint.yaml")
    code, said = tools.run(tools.HADOLINT, "--config", config, str(IMAGES / "Dockerfile"))
    assert (code, said) == (0, "")


def test_hadolint_would_find_something() -> None:
    config = str(IMAGES / ".hadolint.yaml")
    code, said = tools.run(
        tools.HADOLINT, "--config", config, "-", stdin="FROM debian\nRUN cd /x\n"
    )
    assert code == 1
    assert "DL3006" in said


def test_both_images_run_as_the_chart_has_them_run() -> None:
    container = chart.main_container(chart.render())
    folder = chart.env(container)["TOOLGATE_MODEL_DIR"].rsplit("/", 1)[0]
    user = container["securityContext"]["runAsUser"]
    for name in ("server", "cuda"):
        stage = stages()[name]
        assert f"USER {user}:{user}\n" in stage
        assert f"COPY --from=model /models {folder}\n" in stage
        assert f"{folder.removesuffix('/toolgate/models')} " in stage.split("XDG_CACHE_HOME=")[1]
        assert 'ENTRYPOINT ["toolgate"]' in stage
        assert "EXPOSE 7070 7071 7072 7073" in stage
        # A variable of ours would win over the chart's configuration file.
        assert "TOOLGATE_" not in stage
        assert "HEALTHCHECK" not in stage


def test_every_base_has_a_version() -> None:
    versions = dict(re.findall(r"^ARG ([A-Z_]+)=(\S+)$", TEXT, flags=re.MULTILINE))
    bases = re.findall(r"^FROM (\S+) AS", TEXT, flags=re.MULTILINE)
    outside = [base for base in bases if base not in stages()]
    assert len(outside) == 4
    for base in outside:
        whole = re.sub(r"\$\{(\w+)\}", lambda match: versions[match[1]], base)
        assert re.fullmatch(r"[a-z/]+:[a-z0-9.-]+", whole), whole
        assert "latest" not in whole


def test_the_compiler_is_new_enough() -> None:
    cargo = tomllib.loads((chart.ROOT / "Cargo.toml").read_text())
    wanted = cargo["workspace"]["package"]["rust-version"]
    found = re.search(r"^ARG RUST_VERSION=(\S+)$", TEXT, flags=re.MULTILINE)
    assert found
    assert [int(part) for part in found[1].split(".")] >= [int(part) for part in wanted.split(".")]


def test_both_images_have_the_same_program() -> None:
    for name in ("server", "cuda"):
        assert "COPY --from=build /built/toolgate /usr/local/bin/toolgate\n" in stages()[name]
    assert TEXT.count("cargo build") == 1


def test_the_cuda_image_has_a_cublas_that_the_program_looks_for() -> None:
    cargo = tomllib.loads((chart.ROOT / "Cargo.toml").read_text())
    features = cargo["workspace"]["dependencies"]["cudarc"]["features"]
    # It looks for the version of its own names, and for 12.
    named = [match[1] for name in features if (match := re.fullmatch(r"cuda-(\d+)0\d0", name))]
    image = re.search(r"^ARG CUDA_VERSION=(\d+)\.", TEXT, flags=re.MULTILINE)
    assert len(named) == 1
    assert image
    assert image[1] in {"12", *named}


def context() -> list[str]:
    """The paths that the build context lets in."""
    lines = (IMAGES / "Dockerfile.dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    return [rule.removeprefix("!") for rule in rules if rule.startswith("!")]


def test_the_context_has_what_is_copied_and_compiled() -> None:
    inside = context()
    cargo = tomllib.loads((chart.ROOT / "Cargo.toml").read_text())
    members = cargo["workspace"]["members"]
    needed = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", *members]
    needed += re.findall(r"^COPY (?!--from)(\S+) /", TEXT, flags=re.MULTILINE)
    for path in needed:
        assert any(path == one or path.startswith(f"{one}/") for one in inside), path
    for path in inside:
        assert (chart.ROOT / path).exists(), path


def test_what_sources_include_is_in_the_context() -> None:
    inside = [chart.ROOT / path for path in context()]
    included = 0
    for member in ("proto", "serving", "encoder-worker", "gateway", "server", "client-sdk/rust"):
        for source in sorted((chart.ROOT / member).rglob("*.rs")):
            if "src" not in source.parts or "tests" in source.parts or source.stem == "tests":
                continue
            for name in re.findall(r'include_(?:str|bytes)!\(\s*"([^"]+)"', source.read_text()):
                path = (source.parent / name).resolve()
                included += 1
                assert any(path.is_relative_to(one) for one in inside), f"{source}: {name}"
    assert included > 20


def test_compose_names_keys_that_the_server_knows() -> None:
    compose = yaml.safe_load((chart.ROOT / "k8s" / "compose.yaml").read_text())
    service = compose["services"]["toolgate"]
    names = {key.name for key in table.known_keys()} | table.TO_COME
    known = {f"TOOLGATE_{name.replace('.', '_').upper()}" for name in names}
    assert service["environment"].keys() <= known
    assert service["read_only"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    image = chart.main_container(chart.render())["image"]
    assert service["image"] == image
