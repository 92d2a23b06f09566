"""The blocking client. The asyncio one (`aio.py`) has the same methods."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self, TypeVar, Unpack

import grpc

from toolgate import _requests, errors, offering, watching
from toolgate._access import Access, TokenSource
from toolgate._channel import (
    DEFAULT_TARGET,
    DEFAULT_TIMEOUT,
    PAGE_SIZE,
    ChannelOptions,
    endpoint,
    refuse_plaintext,
)
from toolgate._gen.v1 import (
    catalog_pb2,
    catalog_pb2_grpc,
    memory_pb2,
    memory_pb2_grpc,
    policy_pb2,
    policy_pb2_grpc,
    router_pb2_grpc,
    usage_pb2_grpc,
)
from toolgate._requests import (
    Intents,
    PolicyDocument,
    PoolArguments,
    RegisterArguments,
    RouteArguments,
    SearchArguments,
    ToolsList,
)
from toolgate.catalog import Approval, McpServer, Registration, Removal, Tool
from toolgate.enums import Detail, UsageGranularity
from toolgate.gating import Call, GateResult
from toolgate.memory import MemoryStats
from toolgate.offering import SearchAnswer
from toolgate.policies import Policy, PolicyCheck
from toolgate.rendering import Render
from toolgate.routing import RouteResult, SummaryPool, ToolSchemas
from toolgate.searching import SearchResult
from toolgate.state import StateLike, state_to_proto
from toolgate.tls import Tls
from toolgate.usage import Usage, usage_request
from toolgate.watching import CatalogWatch

Request = TypeVar("Request")
Answer = TypeVar("Answer")


class Client:
    """A connection to Toolgate; safe to share between threads.

        with Client("127.0.0.1:7070", tenant="demo") as client:
            turn = client.route("is anyone waiting for my review?")

    Each method takes `timeout`, in seconds (default: the client's), and raises `ToolgateError` when
    the call fails. UNAVAILABLE is retried within that time, up to twice; nothing else is.
    """

    def __init__(
        self,
        target: str = DEFAULT_TARGET,
        *,
        tenant: str = "",
        timeout: float = DEFAULT_TIMEOUT,
        api_key: str | None = None,
        token: TokenSource | None = None,
        tls: Tls | bool | None = None,
        allow_insecure_credentials: bool = False,
        credentials: grpc.ChannelCredentials | None = None,
        options: ChannelOptions = (),
    ) -> None:
        """Opens the channel; it connects with the first call.

        Args:
            target: Where Toolgate listens: `host:port`, `http://host:port`, `https://host:port`
                (encrypted), or any gRPC target.
            tenant: The tenant of every call. "": "default" while authentication is off.
            timeout: Seconds that a call may take unless it says otherwise.
            api_key: A key sent with every call, as `authorization: Bearer <key>`.
            token: A function asked for a token before each call, for tokens that are renewed; sent
                the same way. It may be asked by several threads at once.
            tls: True encrypts and trusts the system's authorities; `Tls(...)` says which to trust.
                Default: as the target's scheme says, and without one no encryption.
            allow_insecure_credentials: Send the key or token unencrypted to other machines too.
            credentials: gRPC's own channel credentials, in place of `tls`.
            options: Further gRPC channel options; they win over this client's own.

        Raises:
            OSError: a certificate's file that cannot be read.
            TypeError: an argument of another type.
            ValueError: no such target, arguments that contradict each other or the target, or a key
                or token that would leave this machine unencrypted.
        """
        self._access = Access(api_key, token)
        to = endpoint(target, tls, credentials, options)
        if self._access and not allow_insecure_credentials:
            refuse_plaintext(to)
        if to.credentials is None:
            self._channel = grpc.insecure_channel(to.address, options=to.options)
        else:
            self._channel = grpc.secure_channel(to.address, to.credentials, options=to.options)
        self._target = to.address
        self._closed = False
        self._router = router_pb2_grpc.RouterServiceStub(self._channel)
        self._catalog = catalog_pb2_grpc.CatalogServiceStub(self._channel)
        self._usage = usage_pb2_grpc.UsageServiceStub(self._channel)
        self._policies = policy_pb2_grpc.PolicyServiceStub(self._channel)
        self._memory = memory_pb2_grpc.MemoryServiceStub(self._channel)
        self._tenant = tenant
        self._timeout = timeout

    def route(
        self,
        intents: Intents,
        *,
        timeout: float | None = None,
        **arguments: Unpack[RouteArguments],
    ) -> RouteResult:
        """Before the model: the active set for this turn.

        Args:
            intents: Texts of what the agent wants: one or 1 to 16 of them, 32 KiB each.
            timeout: Seconds.
            **arguments: See `RouteArguments`.
        """
        request = _requests.route_request(self._tenant, intents, arguments)
        return RouteResult.from_proto(self._call(self._router.Route, request, timeout))

    def gate(
        self,
        handle: str,
        calls: Call | Sequence[Call],
        *,
        state: StateLike | None = None,
        min_revision: int = 0,
        timeout: float | None = None,
    ) -> GateResult:
        """After the model: may these calls run? A refusal is a verdict, not an exception.

        Args:
            handle: The handle that `route` gave for this turn.
            calls: The model's calls, 1 to 128.
            state: The agent's state now.
            min_revision: The catalog revision that the answer must at least be based on.
            timeout: Seconds.
        """
        request = _requests.gate_request(self._tenant, handle, calls, state, min_revision)
        return GateResult.from_proto(self._call(self._router.Gate, request, timeout))

    def search_tools(
        self,
        query: str,
        *,
        timeout: float | None = None,
        **arguments: Unpack[SearchArguments],
    ) -> SearchResult:
        """Explicit discovery: by name, by MCP server, by keywords, or in natural language.

        Args:
            query: `select:a,b`, a tool's or an MCP server's name, `+required words`, keywords, or a
                sentence; at most 32 KiB.
            timeout: Seconds.
            **arguments: See `SearchArguments`.
        """
        request = _requests.search_request(self._tenant, query, arguments)
        return SearchResult.from_proto(self._call(self._router.SearchTools, request, timeout))

    def answer_search(
        self,
        call: Call,
        *,
        handle: str = "",
        state: StateLike | None = None,
        detail: Detail | str = Detail.REFERENCES,
        timeout: float | None = None,
    ) -> SearchAnswer:
        """Runs a model's call of `SEARCH_TOOL`. A mistake of the model's is an answer as well.

        Args:
            call: The model's call.
            handle: The handle of this turn, to add the tools to. "": a new one.
            state: The agent's state.
            detail: Share of each tool in the text: with "references" its name, since the next
                `route` with the answer's handle brings the definition; with "signatures" or
                "schemas" that as well.
            timeout: Seconds.
        """
        try:
            query, arguments = offering.read_search(call, handle, state, detail)
            found = self.search_tools(query, timeout=timeout, **arguments)
        except (offering.MistakenSearchError, errors.ToolgateError) as error:
            return SearchAnswer.from_error(error, handle)
        return SearchAnswer.from_result(found)

    def get_summary_pool(
        self,
        *,
        since_revision: int | None = None,
        timeout: float | None = None,
        **arguments: Unpack[PoolArguments],
    ) -> SummaryPool:
        """Phase 1: the summaries of the catalog, whole or as a delta.

        Args:
            since_revision: The revision that the caller holds. None: the whole pool.
            timeout: Seconds.
            **arguments: See `PoolArguments`.
        """
        request = _requests.pool_request(self._tenant, since_revision, arguments)
        return SummaryPool.from_proto(
            self._call(self._router.GetSummaryPool, request, timeout).pool
        )

    def batch_get_tool_schemas(
        self,
        names: Iterable[str],
        *,
        state: StateLike | None = None,
        handle: str = "",
        detail: Detail | str = Detail.SCHEMAS,
        render: Render | None = None,
        timeout: float | None = None,
    ) -> ToolSchemas:
        """Phase 2 on demand: full schemas by tool name.

        Args:
            names: Model-facing names or `server/name`, 1 to 100.
            state: The agent's state.
            handle: The handle to add these tools to. "": a new one.
            detail: Share of each tool to send: "names", "signatures", "references" or "schemas".
            render: As in `RouteArguments`, for the tools found.
            timeout: Seconds.
        """
        request = _requests.schemas_request(self._tenant, names, state, handle, detail, render)
        return ToolSchemas.from_proto(
            self._call(self._router.BatchGetToolSchemas, request, timeout)
        )

    def register_server(
        self,
        server: str,
        tools: ToolsList,
        *,
        timeout: float | None = None,
        **arguments: Unpack[RegisterArguments],
    ) -> Registration:
        """Upserts one MCP server's tools, atomically. Each tool is checked alone.

        A rejected tool raises nothing: it is among the answer's `rejected`, with what was wrong,
        and the others are stored. With `all_or_nothing` it fails the call.

        Args:
            server: The MCP server's name.
            tools: The answer of its `tools/list`: JSON as bytes or text, a Path to such a file, the
                parsed object, or the bare list of tools.
            timeout: Seconds. Many new tools take a while to embed.
            **arguments: See `RegisterArguments`.
        """
        request = _requests.register_request(self._tenant, server, tools, arguments)
        return Registration.from_proto(self._call(self._catalog.RegisterServer, request, timeout))

    def announce_server(
        self,
        server: str,
        *,
        description: str = "",
        required_scopes: Iterable[str] = (),
        timeout: float | None = None,
    ) -> Registration:
        """Announces an MCP server whose tools are not known yet.

        Answers name it as pending until it is registered or unregistered. Of one that is registered
        already nothing else changes.

        Args:
            server: The MCP server's name.
            description: Its purpose.
            required_scopes: Scopes that a caller needs to be told of it.
            timeout: Seconds.
        """
        request = _requests.announce_request(self._tenant, server, description, required_scopes)
        return Registration.from_proto(self._call(self._catalog.RegisterServer, request, timeout))

    def unregister_server(
        self, server: str, *, etag: str = "", timeout: float | None = None
    ) -> Removal:
        """Removes one MCP server and its tools.

        Args:
            server: The MCP server's name.
            etag: The etag of the version to remove; "" skips the check.
            timeout: Seconds.
        """
        request = catalog_pb2.UnregisterServerRequest(tenant=self._tenant, server=server, etag=etag)
        return Removal.from_proto(self._call(self._catalog.UnregisterServer, request, timeout))

    def approve_tools(
        self, server: str, hashes: Mapping[str, str], *, timeout: float | None = None
    ) -> Approval:
        """Accepts tools that wait for approval, each as it was reviewed.

        A tool that has another hash by now is not accepted, and is among the answer's refusals.

        Args:
            server: The MCP server's name.
            hashes: By MCP name, the hash of the definition that was reviewed.
            timeout: Seconds.
        """
        request = _requests.approve_request(self._tenant, server, hashes)
        return Approval.from_proto(self._call(self._catalog.ApproveTools, request, timeout))

    def get_server(self, server: str, *, timeout: float | None = None) -> McpServer:
        """Reads one MCP server.

        Args:
            server: The MCP server's name.
            timeout: Seconds.
        """
        request = catalog_pb2.GetServerRequest(tenant=self._tenant, server=server)
        return McpServer.from_proto(self._call(self._catalog.GetServer, request, timeout).server)

    def list_servers(
        self, *, page_size: int = PAGE_SIZE, timeout: float | None = None
    ) -> Iterator[McpServer]:
        """The tenant's MCP servers by name, fetched page by page as they are asked for.

        Args:
            page_size: Items fetched at a time, 1 to 1,000.
            timeout: Seconds for each page.
        """
        request = catalog_pb2.ListServersRequest(tenant=self._tenant, page_size=page_size)
        while True:
            page = self._call(self._catalog.ListServers, request, timeout)
            yield from map(McpServer.from_proto, page.servers)
            request.page_token = page.next_page_token
            if not request.page_token:
                return

    def list_tools(
        self,
        server: str = "",
        *,
        as_agent: StateLike | None = None,
        page_size: int = PAGE_SIZE,
        timeout: float | None = None,
    ) -> Iterator[Tool]:
        """The tenant's tools by MCP server and name, fetched page by page as they are asked for.

        Args:
            server: Only this MCP server's tools. "": all.
            as_agent: List what an agent in this state may see. None: everything.
            page_size: Items fetched at a time, 1 to 1,000.
            timeout: Seconds for each page.
        """
        request = catalog_pb2.ListToolsRequest(
            tenant=self._tenant,
            server=server,
            page_size=page_size,
            as_agent=None if as_agent is None else state_to_proto(as_agent),
        )
        while True:
            page = self._call(self._catalog.ListTools, request, timeout)
            yield from map(Tool.from_proto, page.tools)
            request.page_token = page.next_page_token
            if not request.page_token:
                return

    def watch_catalog(
        self, *, since_revision: int | None = None, timeout: float | None = None
    ) -> CatalogWatch:
        """The changes of the catalog as they are committed, until the caller stops.

        When the connection breaks or the service restarts, the watch goes on from the last
        revision that it saw. Any other failure is raised.

        Args:
            since_revision: The last revision that the caller has seen, or 0 for nothing: what
                changed since comes first, as one change. None: the first change only says which
                revision the catalog has now.
            timeout: Seconds until the service must have accepted it for the first time; from then
                on there is no deadline.
        """
        self._refuse_closed()
        seconds = self._timeout if timeout is None else timeout
        position = watching.Position(self._tenant, since_revision, self._target, seconds)
        return CatalogWatch(lambda request: self._watch(request, seconds), position)

    def get_usage(
        self,
        *,
        start: datetime | None = None,
        end: datetime | None = None,
        granularity: UsageGranularity | str | None = None,
        timeout: float | None = None,
    ) -> Usage:
        """The tenant's token ledger, added up; it is kept by the hour.

        Args:
            start: The first moment to count, with a time zone. None: the beginning.
            end: The first moment not to count, with a time zone. None: now.
            granularity: "hour" or "day" (UTC) to get the span's buckets too. None: no buckets.
            timeout: Seconds.
        """
        request = usage_request(self._tenant, start, end, granularity)
        return Usage.from_proto(self._call(self._usage.GetUsage, request, timeout))

    def memory_stats(self, *, server: str = "", timeout: float | None = None) -> MemoryStats:
        """Counts what is remembered of the tenant's calls, tool by tool.

        Args:
            server: Only this MCP server's tools. "": all.
            timeout: Seconds.
        """
        request = memory_pb2.GetMemoryStatsRequest(tenant=self._tenant, server=server)
        return MemoryStats.from_proto(self._call(self._memory.GetMemoryStats, request, timeout))

    def clear_memory(
        self, *, server: str = "", name: str = "", timeout: float | None = None
    ) -> int:
        """Forgets what is remembered of the tenant's calls, for good; how many exemplars that were.

        Args:
            server: Only this MCP server's tools. "": all.
            name: Only this tool of the server. "": all of them.
            timeout: Seconds.
        """
        request = memory_pb2.ClearMemoryRequest(tenant=self._tenant, server=server, name=name)
        return (self._call(self._memory.ClearMemory, request, timeout)).cleared

    def set_policy(
        self, document: PolicyDocument, *, etag: str = "", timeout: float | None = None
    ) -> Policy:
        """Replaces the tenant's policy: which tools may be seen and called when.

        Args:
            document: YAML or JSON, at most 64 KiB, or a mapping, which is sent as JSON;
                `toolgate policy schema` prints its schema.
            etag: The etag of the version that this call changes; "" skips the check.
            timeout: Seconds.
        """
        request = policy_pb2.SetPolicyRequest(
            tenant=self._tenant, document=_requests.policy_text(document), etag=etag
        )
        answer = self._call(self._policies.SetPolicy, request, timeout)
        return Policy.from_proto(answer.policy, answer.rules)

    def get_policy(self, *, timeout: float | None = None) -> Policy:
        """Reads the tenant's policy; its document is empty when none was ever set.

        Args:
            timeout: Seconds.
        """
        request = policy_pb2.GetPolicyRequest(tenant=self._tenant)
        return Policy.from_proto((self._call(self._policies.GetPolicy, request, timeout)).policy)

    def check_policy(
        self,
        document: PolicyDocument = "",
        *,
        state: StateLike | None = None,
        page_size: int = PAGE_SIZE,
        timeout: float | None = None,
    ) -> PolicyCheck:
        """Lists a policy's decision on each tool, by MCP server and name, fetched page by page.

        Iterating gives the verdicts; `rules()` says how many tools each rule matches.

        Args:
            document: The policy to try, as in `set_policy`. "": the stored one.
            state: The agent's state.
            page_size: Items fetched at a time, 1 to 1,000.
            timeout: Seconds for each page.
        """
        request = policy_pb2.CheckPolicyRequest(
            tenant=self._tenant,
            document=_requests.policy_text(document),
            state=state_to_proto(state),
            page_size=page_size,
        )

        def fetch(page_token: str) -> policy_pb2.CheckPolicyResponse:
            request.page_token = page_token
            return self._call(self._policies.CheckPolicy, request, timeout)

        return PolicyCheck(fetch)

    def close(self) -> None:
        """Closes the channel; calls under way are cancelled, and later ones a ValueError."""
        self._closed = True
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _call(
        self,
        method: "grpc.UnaryUnaryMultiCallable[Request, Answer]",
        request: Request,
        timeout: float | None,
    ) -> Answer:
        self._refuse_closed()
        metadata, left = self._access.metadata(self._timeout if timeout is None else timeout)
        try:
            return method(request, timeout=left, metadata=metadata)
        except grpc.RpcError as error:
            raise errors.from_rpc_error(error, self._target) from None

    def _watch(
        self, request: catalog_pb2.WatchCatalogRequest, timeout: float
    ) -> tuple[watching.Call, float]:
        self._refuse_closed()
        metadata, left = self._access.metadata(timeout)
        return self._catalog.WatchCatalog(request, metadata=metadata), left

    def _refuse_closed(self) -> None:
        if self._closed:
            raise ValueError("this client is closed: make another one")
