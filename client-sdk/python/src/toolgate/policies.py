"""A tenant's policy as stored, how far its rules reach, and what it decides of each tool."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from toolgate._gen.v1 import error_pb2, policy_pb2
from toolgate.enums import RefusalCode, from_wire


@dataclass(frozen=True, slots=True)
class RuleCoverage:
    """Reach of a rule of a policy."""

    rule: str
    """The rule's name."""
    tools: int
    """Tools of the catalog that it matches."""
    hint: str
    """The likely mistake in a rule that matches no tool, or that says nothing of its tools;
    "" without one."""


def _coverages(messages: Iterable[policy_pb2.RuleCoverage]) -> tuple[RuleCoverage, ...]:
    return tuple(RuleCoverage(rule.rule, rule.tools, rule.hint) for rule in messages)


@dataclass(frozen=True, slots=True)
class Policy:
    """A tenant's policy as stored."""

    document: str
    """YAML or JSON, as it was set; "" when none was ever set."""
    etag: str
    """Changes with every change of the document; "" when none was ever set."""
    revision: int
    """The catalog revision of the last change; 0 when none was ever set."""
    update_time: datetime | None
    """When the last change was committed (UTC); None when none was ever set."""
    rules: tuple[RuleCoverage, ...] = field(default=(), compare=False)
    """From `set_policy`: each rule, in the document's order, with how far it reaches in the catalog
    of that moment. Empty from `get_policy`."""

    @classmethod
    def from_proto(
        cls, message: policy_pb2.Policy, rules: Iterable[policy_pb2.RuleCoverage] = ()
    ) -> "Policy":
        """Reads the wire's form."""
        time = message.update_time.ToDatetime(UTC) if message.HasField("update_time") else None
        return cls(message.document, message.etag, message.revision, time, _coverages(rules))


@dataclass(frozen=True, slots=True)
class PolicyVerdict:
    """Decision of a policy on one tool."""

    server: str
    """The MCP server's name."""
    name: str
    """The MCP name."""
    allowed: bool
    """True when the tool may be shown and called."""
    code: RefusalCode
    """The reason; `UNSPECIFIED` when allowed. `UNKNOWN_TOOL`: denied to all; `SCOPE_MISSING`: the
    state may not see it; `PRECONDITION_UNMET`: the state may see it and not call it."""
    rule: str
    """The rule that decided; "" when none did."""
    unlock: tuple[str, ...]
    """Conditions that would unlock it: each of them is needed. Empty: nothing would."""

    @classmethod
    def from_proto(cls, message: policy_pb2.PolicyVerdict) -> "PolicyVerdict":
        """Reads the wire's form."""
        return cls(
            server=message.server,
            name=message.name,
            allowed=message.allowed,
            code=from_wire(RefusalCode, error_pb2.RefusalCode, "REFUSAL_CODE_", message.code),
            rule=message.rule,
            unlock=tuple(message.unlock),
        )


class PolicyCheck(Iterator[PolicyVerdict]):
    """Lists a policy's decision on each tool, by MCP server and name, fetched page by page."""

    def __init__(self, fetch: Callable[[str], policy_pb2.CheckPolicyResponse]) -> None:
        self._fetch = fetch
        self._first: policy_pb2.CheckPolicyResponse | None = None
        self._verdicts = self._read()

    def rules(self) -> tuple[RuleCoverage, ...]:
        """Each rule, in the document's order, with how far it reaches in the catalog.

        Asks for the first page when nothing was asked for yet; no verdict is lost by that.
        """
        return _coverages(self._first_page().rules)

    def __next__(self) -> PolicyVerdict:
        return next(self._verdicts)

    def _first_page(self) -> policy_pb2.CheckPolicyResponse:
        if self._first is None:
            self._first = self._fetch("")
        return self._first

    def _read(self) -> Iterator[PolicyVerdict]:
        page = self._first_page()
        while True:
            yield from map(PolicyVerdict.from_proto, page.verdicts)
            if not page.next_page_token:
                return
            page = self._fetch(page.next_page_token)


class AsyncPolicyCheck(AsyncIterator[PolicyVerdict]):
    """Lists a policy's decision on each tool, by MCP server and name, fetched page by page."""

    def __init__(self, fetch: Callable[[str], Awaitable[policy_pb2.CheckPolicyResponse]]) -> None:
        self._fetch = fetch
        self._first: policy_pb2.CheckPolicyResponse | None = None
        self._verdicts = self._read()

    async def rules(self) -> tuple[RuleCoverage, ...]:
        """Each rule, in the document's order, with how far it reaches in the catalog.

        Asks for the first page when nothing was asked for yet; no verdict is lost by that.
        """
        return _coverages((await self._first_page()).rules)

    async def __anext__(self) -> PolicyVerdict:
        return await anext(self._verdicts)

    async def _first_page(self) -> policy_pb2.CheckPolicyResponse:
        if self._first is None:
            self._first = await self._fetch("")
        return self._first

    async def _read(self) -> AsyncIterator[PolicyVerdict]:
        page = await self._first_page()
        while True:
            for verdict in page.verdicts:
                yield PolicyVerdict.from_proto(verdict)
            if not page.next_page_token:
                return
            page = await self._fetch(page.next_page_token)
