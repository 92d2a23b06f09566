"""An API server for all tests, and each example of the chart applied to it."""

import time
from collections.abc import Iterator
from pathlib import Path

import chart
import pytest
import tools
from api import Api
from control_plane import control_plane
from releases import Release, define, make_namespace, make_what_pods_name


@pytest.fixture(scope="session")
def api() -> Iterator[Api]:
    """An API server that knows the custom objects that the chart makes."""
    with control_plane() as server:
        definitions = sorted(tools.DEFINITIONS.glob("*.yaml"))
        assert len(definitions) == 4, definitions
        for path in definitions:
            define(server, path)
        yield server


@pytest.fixture
def namespace(api: Api) -> str:
    """A namespace for one test."""
    name = f"test-{time.monotonic_ns()}"
    make_namespace(api, name)
    return name


@pytest.fixture(scope="module", params=chart.EXAMPLES, ids=lambda path: path.stem)
def release(request: pytest.FixtureRequest, api: Api) -> Iterator[Release]:
    """An example of the chart, deleted at the end."""
    example: Path = request.param
    make_namespace(api, example.stem)
    objects = chart.render(example, version=api.version(), namespace=example.stem)
    make_what_pods_name(api, objects, example.stem)
    answers = [api.apply(one, example.stem) for one in objects]
    yield Release(example.stem, objects, answers)
    for one in objects:
        gone = api.delete(one, example.stem)
        assert gone.good, gone.said
