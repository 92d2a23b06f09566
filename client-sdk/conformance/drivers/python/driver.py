"""Speaks the conformance protocol on the installed `toolgate`: a JSON object a line, in and out."""

import itertools
import json
import platform
import sys
import traceback
from typing import Any

import calls
import helpers
import wire
from google.protobuf import json_format
from wire import Json

import toolgate
from toolgate import Client, Tls, ToolgateError
from toolgate._gen.v1 import catalog_pb2


class Driver:
    """The clients and watches that the lines so far asked for."""

    def __init__(self) -> None:
        self._clients: dict[str, Client] = {}
        self._watches: dict[int, calls.Watch] = {}
        self._numbers = itertools.count(1)

    def answer(self, line: Json) -> Json:
        """The answer to one line."""
        try:
            return {"ok": self._run(line["op"], line)}
        except Exception as error:
            return {"error": _told(error)}

    def close(self) -> None:
        """Ends the watches and closes the clients."""
        for watch in self._watches.values():
            watch.stop()
        for client in self._clients.values():
            client.close()

    def _run(self, op: str, line: Json) -> Any:
        args = line.get("args", {})
        if op in helpers.OPERATIONS:
            return helpers.OPERATIONS[op](args)
        if op in calls.OPERATIONS:
            return calls.OPERATIONS[op](self._client(line), args)
        match op:
            case "watch_start":
                return self._watch(line)
            case "watch_take":
                return self._take(args)
            case "watch_stop":
                self._watches[args["watch"]].stop()
                return {}
            case "open_close":
                return _open_close(line)
            case "bench":
                return calls.bench(self._client(line), _settings(line), args)
            case "versions":
                runtime = f"python{platform.python_version()}"
                return {"sdk": toolgate.__version__, "runtime": runtime}
        raise NotImplementedError(f"no such operation: {op}")

    def _client(self, line: Json) -> Client:
        settings = _settings(line)
        key = json.dumps(settings, sort_keys=True)
        if key not in self._clients:
            self._clients[key] = _open(settings)
        return self._clients[key]

    def _watch(self, line: Json) -> Json:
        request = wire.read(line["args"]["request"], catalog_pb2.WatchCatalogRequest())
        number = next(self._numbers)
        self._watches[number] = calls.Watch(self._client(line), request)
        return {"watch": number}

    def _take(self, args: Json) -> Json:
        events, failure = self._watches[args["watch"]].take(args["count"], args["timeout"])
        return {"events": events, **({"error": _told(failure)} if failure is not None else {})}


def _settings(line: Json) -> Json:
    """The client's settings; a tenant that the request itself names goes before theirs."""
    named = line.get("args", {}).get("request", {}).get("tenant")
    return {**line["client"], **({"tenant": named} if named else {})}


def _open(settings: Json) -> Client:
    options = dict(settings)
    if "tls" in options:
        tls = dict(options["tls"])
        options["tls"] = Tls(certificate=tls.pop("cert", None), **tls)
    if "token" in options:
        token = options["token"]
        options["token"] = lambda: token
    return Client(options.pop("target"), **options)


def _open_close(line: Json) -> Json:
    for _ in range(line["args"]["times"]):
        with _open(_settings(line)) as client:
            calls.OPERATIONS["GetServer"](client, line["args"])
    return {"times": line["args"]["times"]}


def _told(error: Exception) -> Json:
    if isinstance(error, ToolgateError):
        return {
            "kind": "call",
            "code": error.code.name,
            "reason": error.reason,
            "message": error.message,
            "metadata": error.metadata,
            "field_violations": [
                {"field": one.field, "description": one.description}
                for one in error.field_violations
            ],
            "retry_after": error.retry_after,
        }
    if isinstance(error, NotImplementedError | json_format.ParseError):
        return {"kind": "driver", "message": str(error)}
    if isinstance(error, OSError | TypeError | ValueError):
        return {"kind": "usage", "message": str(error)}
    return {"kind": "crash", "message": "".join(traceback.format_exception(error))}


def main() -> None:
    """Answers every line of stdin."""
    driver = Driver()
    for line in sys.stdin.buffer:
        print(json.dumps(driver.answer(json.loads(line))), flush=True)
    driver.close()


if __name__ == "__main__":
    main()
