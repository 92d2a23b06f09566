"""`python -m runner`: builds every package, installs each driver on it, runs all cases."""

import argparse
import contextlib
import os
import sys
import time
from pathlib import Path

from runner import load, table
from runner.cases import Case
from runner.cases import load as load_cases
from runner.driver import Driver, DriverError
from runner.languages import BUILD, LANGUAGES, build, install
from runner.places import Places
from runner.running import problem_with


def main() -> int:
    """Runs; 1 when any case failed."""
    asked = _arguments()
    languages = [language for language in LANGUAGES if language.name in asked.languages]
    if not asked.installed:
        for language in languages:
            _timed(f"package {language.name}", lambda of=language: build(of))
    if asked.package_only:
        return 0
    commands = {
        language.name: _timed(f"install {language.name}", lambda of=language: install(of))
        for language in languages
    }
    places = Places(Path(os.environ["TOOLGATE_BIN"]).resolve())
    try:
        return _judge(commands, places, asked)
    finally:
        places.close()


def _judge(commands: dict[str, list[str]], places: Places, asked: argparse.Namespace) -> int:
    cases = [case for case in load_cases() if asked.only in f"{case.group}: {case.name}"]
    results = table.Results(cases)
    for language, command in commands.items():
        driver = Driver(command, BUILD / f"{language}.log")
        for case in cases:
            driver = _settled(case, language, driver, command, places, results)
        if (status := driver.close()) != 0:
            results.broken(language, f"the driver ended with {status}")
    text = results.markdown()
    if asked.soak or asked.bench:
        text += load.report(commands, places, asked.soak, asked.bench, results)
    print(text)
    print(results.failures())
    if asked.write:
        _rewrite(Path(asked.write), text)
    return 1 if results.failed() else 0


def _settled(
    case: Case,
    language: str,
    driver: Driver,
    command: list[str],
    places: Places,
    results: table.Results,
) -> Driver:
    """Runs a case; a driver that broke is replaced, so that the other cases still run."""
    problem = problem_with(case, driver, places)
    results.add(language, case, problem)
    if problem.partition(": ")[2].startswith("DriverError"):
        with contextlib.suppress(DriverError):
            driver.close()
        return Driver(command, BUILD / f"{language}.log")
    return driver


def _rewrite(page: Path, text: str) -> None:
    before = page.read_text(encoding="utf-8")
    head, _, rest = before.partition("<!-- results:begin -->\n")
    _, _, tail = rest.partition("<!-- results:end -->\n")
    page.write_text(f"{head}<!-- results:begin -->\n{text}<!-- results:end -->\n{tail}")


def _timed(what: str, work):  # type: ignore[no-untyped-def]
    begun = time.monotonic()
    done = work()
    print(f"{what}: {time.monotonic() - begun:.0f} s", flush=True)
    return done


def _arguments() -> argparse.Namespace:
    names = [language.name for language in LANGUAGES]
    parser = argparse.ArgumentParser(prog="runner", description=__doc__)
    parser.add_argument("--languages", nargs="+", choices=names, default=names)
    parser.add_argument("--only", default="", help="run cases whose group and name contain this")
    parser.add_argument("--installed", action="store_true", help="packages are built already")
    parser.add_argument("--package-only", action="store_true", help="build packages, run nothing")
    parser.add_argument("--soak", type=int, default=0, help="calls of the soak; 0: none")
    parser.add_argument("--bench", type=int, default=0, help="calls of the benchmark; 0: none")
    parser.add_argument("--write", help="a Markdown page whose results are rewritten")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
