"""Compares an answer with what a case expects."""

import json
from typing import Any


def mismatch(expected: Any, actual: Any, where: str = "") -> str:
    """Returns the first difference, or "".

    Objects may have more keys than are expected; a key at its default may be left out. Lists have
    the same length. An object with one key that begins with `$` is a condition: `$contains` of a
    text, `$length` of a list or text, `$fewer` items than that, `$only` some
    keys, `$least` of a number, `$any` value but an empty one, `$set`
    of values in any order, `$oneof` some values, `$is` exactly
    this value. Whole numbers may come as texts, as 64-bit integers do in JSON.
    """
    here = where or "the answer"
    if isinstance(expected, dict) and len(expected) == 1:
        (name, operand), *_ = expected.items()
        if name.startswith("$"):
            return "" if _holds(name, operand, actual) else f"{here}: {actual!r} is not {expected}"
    if isinstance(expected, dict):
        if not isinstance(actual, dict):
            return f"{here}: {actual!r} is no object" if expected else ""
        for key, value in expected.items():
            if problem := mismatch(value, actual.get(key), f"{where}.{key}"):
                return problem
        return ""
    if isinstance(expected, list):
        found = actual or []
        if not isinstance(found, list) or len(found) != len(expected):
            return f"{here}: {found!r} has not the {len(expected)} items of {expected!r}"
        pairs = enumerate(zip(expected, found, strict=True))
        problems = (mismatch(e, a, f"{where}[{n}]") for n, (e, a) in pairs)
        return next(filter(None, problems), "")
    return "" if _equal(expected, actual) else f"{here}: {actual!r}, not {expected!r}"


def _holds(name: str, operand: Any, actual: Any) -> bool:
    match name:
        case "$is":
            return _same(operand, actual)
        case "$contains":
            return isinstance(actual, str) and operand in actual
        case "$length":
            return bool(len(actual or ()) == operand)
        case "$fewer":
            return bool(len(actual or ()) < operand)
        case "$only":
            return set(actual or ()) <= set(operand)
        case "$least":
            return actual is not None and float(actual) >= float(operand)
        case "$any":
            return bool(actual) is bool(operand)
        case "$set":
            return sorted(map(_key, actual or ())) == sorted(map(_key, operand))
        case "$oneof":
            return bool(actual in operand)
        case _:
            raise ValueError(f"no condition {name}")


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _same(expected: Any, actual: Any) -> bool:
    """JSON values are the same, the kinds of their numbers aside."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        keys = expected.keys() == actual.keys()
        return keys and all(_same(expected[key], actual[key]) for key in expected)
    if isinstance(expected, list) and isinstance(actual, list):
        same = len(expected) == len(actual)
        return same and all(_same(e, a) for e, a in zip(expected, actual, strict=True))
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    return bool(expected == actual)


def _equal(expected: Any, actual: Any) -> bool:
    if not expected and not actual:
        return True
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, int) and isinstance(actual, str):
        return str(expected) == actual
    return bool(expected == actual)
