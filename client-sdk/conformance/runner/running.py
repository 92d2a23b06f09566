"""Runs one case against one driver."""

import contextlib
import itertools
import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from waiting import wait_until

from runner.cases import Case, Step
from runner.driver import Driver, DriverError
from runner.matching import mismatch
from runner.places import Places

MOMENT = 0.3
"""Seconds."""

_tenants = itertools.count(1)


def problem_with(case: Case, driver: Driver, places: Places) -> str:
    """Runs a case; returns the first problem, or ""."""
    run = _Run(driver, places, f"case-{next(_tenants)}")
    for number, step in enumerate(case.steps, 1):
        try:
            problem = run.step(step)
        except (AssertionError, DriverError, KeyError, IndexError) as error:
            problem = f"{type(error).__name__}: {error}"
        if problem:
            return f"step {number}, {step.op or step.do}: {problem}"
    return ""


class _Run:
    def __init__(self, driver: Driver, places: Places, tenant: str) -> None:
        self._driver = driver
        self._places = places
        self._tenant = tenant
        self._kept: dict[str, Any] = {}

    def step(self, step: Step) -> str:
        if step.do:
            return self._do(step)
        return self._awaited(step) if step.until else self._asked(step)

    def _awaited(self, step: Step) -> str:
        """Asks until the answer is as expected; the last problem where it never was."""
        problem = ""

        def is_settled() -> bool:
            nonlocal problem
            problem = self._asked(step)
            return not problem

        wait_until(is_settled, lambda: problem)
        return ""

    def _asked(self, step: Step) -> str:
        client = self._client(step.client) if _calls(step) else None
        time.sleep(step.pause)
        begun = time.monotonic()
        with self._beside(step):
            answer = self._driver.ask(step.op, self._filled(step.args), client)
        took = time.monotonic() - begun
        if step.within is not None and took > step.within:
            return f"took {took:.2f} s, more than {step.within}"
        return self._judge(step, answer) or self._attempts(step)

    @contextlib.contextmanager
    def _beside(self, step: Step) -> Iterator[None]:
        """Restarts the server while the block runs, where the step wants that."""
        if not step.beside:
            yield
            return
        with ThreadPoolExecutor(1) as pool:
            restart = pool.submit(self._restart_soon)
            yield
            restart.result()

    def _restart_soon(self) -> None:
        time.sleep(MOMENT)
        self._places.restart()

    def _do(self, step: Step) -> str:
        if step.do == "restart":
            self._places.restart()
        elif step.do == "configure":
            self._places.configure(step.config)
        elif step.do == "script":
            self._places.target("scripted")
            self._places.scripted.follow(self._tenant, step.script)
        else:
            raise AssertionError(f"nothing is called {step.do}")
        return ""

    def _client(self, written: dict[str, Any]) -> dict[str, Any]:
        settings = {"target": "server", "tenant": self._tenant, "timeout": 60, **written}
        name = str(settings["target"])
        scheme, _, place = name.rpartition("://")
        if place.isidentifier() and place != "localhost":
            target = self._places.target(place)
            settings["target"] = f"{scheme}://{target}" if scheme else target
        if (tls := settings.get("tls")) is not None:
            files = self._places.tls(client_certificate=tls.get("certificate", False))
            others = {key: value for key, value in tls.items() if key != "certificate"}
            settings["tls"] = {**files, **others}
        return settings

    def _filled(self, value: Any) -> Any:
        """The value with `$name`, and `${name}` in a text, replaced by what was kept."""
        if isinstance(value, str) and value.startswith("$") and value[1:] in self._kept:
            return self._kept[value[1:]]
        if isinstance(value, str) and "${" in value:
            return re.sub(r"\$\{(\w+)\}", lambda name: str(self._kept[name[1]]), value)
        if isinstance(value, dict):
            return {key: self._filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        return value

    def _judge(self, step: Step, answer: dict[str, Any]) -> str:
        if step.expect_error is not None:
            if "error" not in answer:
                return f"no error, but {_short(answer)}"
            return mismatch({"kind": "call", **step.expect_error}, answer["error"])
        if "error" in answer:
            return f"failed: {_short(answer['error'])}"
        value = answer["ok"]
        if step.text_is_json:
            value = {**value, "text": json.loads(value["text"])}
        for name, place in step.keep.items():
            self._kept[name] = _at(value, place)
        return "" if step.expect is None else mismatch(self._filled_expectation(step.expect), value)

    def _filled_expectation(self, expected: Any) -> Any:
        if isinstance(expected, str) and expected.startswith("$"):
            return self._kept.get(expected[1:], expected)
        if isinstance(expected, dict):
            if "$is" in expected:
                return expected
            return {key: self._filled_expectation(item) for key, item in expected.items()}
        if isinstance(expected, list):
            return [self._filled_expectation(item) for item in expected]
        return expected

    def _attempts(self, step: Step) -> str:
        if step.attempts is None:
            return ""
        seen = self._places.scripted.seen(self._tenant)
        return mismatch(step.attempts, seen, "the attempts")


_CALLS = frozenset(
    {
        "answer_search",
        "check_policy",
        "list_servers",
        "list_tools",
        "model_request",
        "rendered",
        "watch_start",
    }
)
_LOADS = frozenset({"soak", "open_close", "bench"})


def _calls(step: Step) -> bool:
    # RPCs are called by their own names.
    return step.op in _CALLS | _LOADS or step.op[:1].isupper()


def _at(value: Any, place: str) -> Any:
    for part in place.split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 400 else f"{text[:400]}..."
