#!/usr/bin/env python3
"""Holds Cargo's dependencies to deny.toml: licences, banned crates, sources. No network.

Reads the part of cargo-deny's file format that deny.toml uses. Advisories are left to cargo-deny,
where it is installed.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
TOKEN = re.compile(r"\(|\)|[^\s()]+")
BAN = re.compile(r"(?P<name>[A-Za-z0-9_-]+)(@<(?P<version>\d+\.\d+\.\d+))?")


class LicenceExpression:
    """Evaluates an SPDX expression against the licences that are allowed."""

    def __init__(self, text: str, allowed: frozenset[str]) -> None:
        # Old manifests write "MIT/Apache-2.0" for "MIT OR Apache-2.0".
        self._tokens = TOKEN.findall(text.replace("/", " OR "))
        self._allowed = allowed

    def holds(self) -> bool:
        """True when some choice of the expression's alternatives is allowed."""
        result = self._alternatives()
        if self._tokens:
            raise ValueError(f"unexpected {self._tokens[0]!r}")
        return result

    def _alternatives(self) -> bool:
        result = self._conjunction()
        while self._take("OR"):
            other = self._conjunction()
            result = result or other
        return result

    def _conjunction(self) -> bool:
        result = self._licence()
        while self._take("AND"):
            other = self._licence()
            result = result and other
        return result

    def _licence(self) -> bool:
        if self._take("("):
            inner = self._alternatives()
            if not self._take(")"):
                raise ValueError("a parenthesis is not closed")
            return inner
        if not self._tokens:
            raise ValueError("ends early")
        name = self._tokens.pop(0)
        if self._take("WITH"):
            name = f"{name} WITH {self._tokens.pop(0)}"
        return name in self._allowed

    def _take(self, token: str) -> bool:
        if self._tokens and self._tokens[0] == token:
            self._tokens.pop(0)
            return True
        return False


def main() -> int:
    """Checks; returns the exit status."""
    rules = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))
    metadata = _metadata()
    packages = metadata["packages"]
    outside = [package for package in packages if package["source"] is not None]
    problems = [
        *_licence_problems(outside, frozenset(rules["licenses"]["allow"])),
        *_ban_problems(packages, rules["bans"]["deny"], _dependents(metadata)),
        *_source_problems(outside),
    ]
    for problem in sorted(problems):
        print(problem, file=sys.stderr)
    if problems:
        print("deny.toml says what is allowed and why", file=sys.stderr)
        return 1
    versions = Counter(package["name"] for package in outside)
    several = sum(1 for count in versions.values() if count > 1)
    print(f"{len(outside)} crates: licences, bans and sources hold; {several} in several versions")
    return 0


def _metadata() -> dict[str, Any]:
    # All features: what an optional part needs is held to the rules as well.
    command = ["cargo", "metadata", "--locked", "--all-features", "--format-version", "1"]
    result = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    metadata: dict[str, Any] = json.loads(result.stdout)
    return metadata


def _dependents(metadata: dict[str, Any]) -> dict[str, frozenset[str]]:
    """The names of the crates that depend on each crate directly, by its name."""
    names = {package["id"]: package["name"] for package in metadata["packages"]}
    pairs = [
        (names[dependency["pkg"]], names[node["id"]])
        for node in metadata["resolve"]["nodes"]
        for dependency in node["deps"]
    ]
    dependents: dict[str, set[str]] = {}
    for name, dependent in pairs:
        dependents.setdefault(name, set()).add(dependent)
    return {name: frozenset(found) for name, found in dependents.items()}


def _licence_problems(packages: list[dict[str, Any]], allowed: frozenset[str]) -> list[str]:
    problems = []
    for package in packages:
        text = package["license"] or ""
        try:
            if not LicenceExpression(text, allowed).holds():
                problems.append(f"{_name(package)}: licence {text!r} is not allowed")
        except ValueError as error:
            problems.append(f"{_name(package)}: licence {text!r} cannot be read: {error}")
    return problems


def _ban_problems(
    packages: list[dict[str, Any]],
    bans: list[dict[str, Any]],
    dependents: dict[str, frozenset[str]],
) -> list[str]:
    """A ban with `wrappers` is of all other crates that depend on the named one directly."""
    problems = []
    for ban in bans:
        rule = BAN.fullmatch(ban["crate"])
        if rule is None:
            raise SystemExit(f"deny.toml: {ban['crate']!r} is neither NAME nor NAME@<X.Y.Z")
        for package in packages:
            is_named = package["name"] == rule["name"]
            if not is_named or not _is_below(package["version"], rule["version"]):
                continue
            if "wrappers" not in ban:
                problems.append(f"{_name(package)}: banned: {ban['reason']}")
                continue
            others = dependents.get(package["name"], frozenset()) - set(ban["wrappers"])
            problems.extend(
                f"{other} may not depend on {_name(package)}: {ban['reason']}" for other in others
            )
    return problems


def _source_problems(packages: list[dict[str, Any]]) -> list[str]:
    """Everything comes from one registry, cargo's own; nothing from git."""
    origins = Counter(package["source"] for package in packages)
    usual = max(origins, key=lambda source: origins[source])
    return [
        f"{_name(package)}: source {package['source']} is not allowed"
        for package in packages
        if package["source"] != usual or not usual.startswith("registry+")
    ]


def _is_below(version: str, limit: str | None) -> bool:
    return limit is None or _numbers(version) < _numbers(limit)


def _numbers(version: str) -> tuple[int, ...]:
    release = re.split(r"[-+]", version)[0]
    return tuple(int(part) for part in release.split("."))


def _name(package: dict[str, Any]) -> str:
    return f"{package['name']} {package['version']}"


if __name__ == "__main__":
    sys.exit(main())
