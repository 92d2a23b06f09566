"""A small client of a Kubernetes API server."""

import functools
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from chart import Object

REQUEST_SECONDS = 30
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True)
class Answer:
    """Answer of the server to one request."""

    status: int
    warnings: list[str]
    body: Object

    @property
    def good(self) -> bool:
        """True if it did what was asked."""
        return 200 <= self.status < 300

    @property
    def said(self) -> str:
        """Reason why it did not."""
        return str(self.body.get("message", ""))


class Api:
    """An API server, asked as the owner of a token."""

    def __init__(self, url: str, token: str, certificate: Path) -> None:
        self._url = url
        self._token = token
        tls = ssl.create_default_context(cafile=str(certificate))
        # Never through a proxy that the environment names.
        ways = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls))
        self._open = urllib.request.build_opener(*ways).open
        self._resources = functools.cache(self._discover)

    def ask(
        self, method: str, path: str, body: Object | None = None, kind: str = "application/json"
    ) -> Answer:
        """One request."""
        asked = urllib.request.Request(
            self._url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._token}", "Content-Type": kind},
        )
        try:
            got = self._open(asked, timeout=REQUEST_SECONDS)
        except urllib.error.HTTPError as refused:
            got = refused
        with got:
            text = got.read().decode()
            warnings = got.headers.get_all("Warning", [])
            is_json = got.headers.get_content_type() == "application/json"
            return Answer(got.status, warnings, json.loads(text) if is_json else {"message": text})

    def ready(self) -> bool:
        """Returns True if it takes requests."""
        try:
            return self.ask("GET", "/readyz").good
        except OSError:
            return False

    def version(self) -> str:
        """Its version, as `1.36.3`."""
        return str(self.ask("GET", "/version").body["gitVersion"]).removeprefix("v")

    def apply(self, one: Object, namespace: str = "") -> Answer:
        """Applies an object on the server, as helm and `kubectl apply --server-side` do."""
        path = f"{self._folder(one, namespace)}/{one['metadata']['name']}"
        return self.ask("PATCH", f"{path}?fieldManager=helm&fieldValidation=Strict", one, APPLY)

    def create(self, one: Object, namespace: str = "") -> Answer:
        """Creates an object."""
        return self.ask("POST", f"{self._folder(one, namespace)}?fieldValidation=Strict", one)

    def delete(self, one: Object, namespace: str = "") -> Answer:
        """Deletes an object at once."""
        path = f"{self._folder(one, namespace)}/{one['metadata']['name']}"
        return self.ask("DELETE", f"{path}?gracePeriodSeconds=0")

    def _folder(self, one: Object, namespace: str) -> str:
        """Where objects of that kind are, in the namespace if they are in one."""
        group = one["apiVersion"]
        root = f"/api/{group}" if "/" not in group else f"/apis/{group}"
        plural, namespaced = self._resources(root)[one["kind"]]
        return f"{root}/namespaces/{namespace}/{plural}" if namespaced else f"{root}/{plural}"

    def _discover(self, root: str) -> dict[str, tuple[str, bool]]:
        """The plural of each kind of a group, and whether its objects are in namespaces."""
        answer = self.ask("GET", root)
        if not answer.good:
            raise AssertionError(f"{root}: {answer.status} {answer.said}")
        whole = [one for one in answer.body["resources"] if "/" not in one["name"]]
        return {one["kind"]: (one["name"], one["namespaced"]) for one in whole}
