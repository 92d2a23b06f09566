/** The client: one method for each RPC that the service answers, over whichever transport. */
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { type Client as Stub, createClient } from "@connectrpc/connect";

import type { Connection } from "./connection.js";
import { toThrown } from "./errors.js";
import {
  type ApproveToolsResponse,
  CatalogService,
  type GetServerResponse,
  type McpServer,
  type RegisterServerRequestSchema,
  type RegisterServerResponse,
  type Tool,
  type UnregisterServerResponse,
  type WatchCatalogResponse,
} from "./gen/toolgate/v1/catalog_pb.js";
import {
  type ClearMemoryResponse,
  type GetMemoryStatsResponse,
  MemoryService,
} from "./gen/toolgate/v1/memory_pb.js";
import {
  type GetPolicyResponse,
  PolicyService,
  type PolicyVerdict,
  type SetPolicyResponse,
} from "./gen/toolgate/v1/policy_pb.js";
import {
  type BatchGetToolSchemasResponse,
  type GateResponse,
  type GetSummaryPoolResponse,
  RouterService,
  type RouteResponse,
  type SearchToolsResponse,
} from "./gen/toolgate/v1/router_pb.js";
import { type GetUsageResponse, UsageService } from "./gen/toolgate/v1/usage_pb.js";
import { answerSearch, type SearchAnswer, type SearchCall, type SearchTurn } from "./offering.js";
import { type CallOptions, checkedTimeout, PAGE_SIZE, type Settings } from "./options.js";
import { pages } from "./paging.js";
import { requestId, toolsListBytes, type ToolsList } from "./registering.js";
import { refuseUnknown } from "./requests.js";
import { linked } from "./signals.js";
import { watchCatalog } from "./watch.js";

/** A method's request: its message, or a plain object with the message's fields. */
export type RequestOf<M extends { input: DescMethodUnary["input"] }> = MessageInitShape<M["input"]>;

type Router = typeof RouterService.method;
type Catalog = typeof CatalogService.method;
type Policies = typeof PolicyService.method;
type Usage = typeof UsageService.method;
type Memory = typeof MemoryService.method;

/** A registration, whose `toolsListJson` may also be text or the parsed value. */
export type RegisterRequest = Omit<
  Exclude<MessageInitShape<typeof RegisterServerRequestSchema>, { $typeName: string }>,
  "toolsListJson" | "$typeName"
> & {
  /** The MCP server's answer to `tools/list`, as bytes or text as it came, or parsed. */
  readonly toolsListJson?: ToolsList;
};

/**
 * A client of Toolgate. It is safe for concurrent use; one serves a whole process.
 *
 * Every method takes the request as the wire has it and gives the answer's message. A failed call throws
 * `ToolgateError`, a local mistake `TypeError`.
 */
export abstract class RemoteClient {
  readonly #settings: Settings;
  readonly #connection: Connection;
  readonly #router: Stub<typeof RouterService>;
  readonly #catalog: Stub<typeof CatalogService>;
  readonly #policies: Stub<typeof PolicyService>;
  readonly #usage: Stub<typeof UsageService>;
  readonly #memory: Stub<typeof MemoryService>;
  readonly #closing = new AbortController();

  protected constructor(settings: Settings, connection: Connection) {
    this.#settings = settings;
    this.#connection = connection;
    this.#router = createClient(RouterService, connection.transport);
    this.#catalog = createClient(CatalogService, connection.transport);
    this.#policies = createClient(PolicyService, connection.transport);
    this.#usage = createClient(UsageService, connection.transport);
    this.#memory = createClient(MemoryService, connection.transport);
  }

  /** Gives the service's address as it was given. */
  get target(): string {
    return this.#settings.target.given;
  }

  /** Before the model: the active set for this turn. */
  route(request: RequestOf<Router["route"]>, options?: CallOptions): Promise<RouteResponse> {
    return this.#call(
      (timed) => this.#router.route(this.#sent(RouterService.method.route.input, request), timed),
      options,
    );
  }

  /** After the model: may these calls run? A refusal is a verdict, not an error. */
  gate(request: RequestOf<Router["gate"]>, options?: CallOptions): Promise<GateResponse> {
    return this.#call(
      (timed) => this.#router.gate(this.#sent(RouterService.method.gate.input, request), timed),
      options,
    );
  }

  /** Explicit discovery: by name, by MCP server, by keywords, or in natural language. */
  searchTools(
    request: RequestOf<Router["searchTools"]>,
    options?: CallOptions,
  ): Promise<SearchToolsResponse> {
    return this.#call(
      (timed) => this.#router.searchTools(this.#sent(RouterService.method.searchTools.input, request), timed),
      options,
    );
  }

  /**
   * Runs a model's call of `SEARCH_TOOL`. A mistake of the model's is an answer as well, which says how.
   *
   * @param call the model's call.
   * @param turn the handle to add the tools to, the agent's state, and what the text says of each tool.
   */
  answerSearch(call: SearchCall, turn: SearchTurn = {}, options?: CallOptions): Promise<SearchAnswer> {
    return answerSearch((request) => this.searchTools(request, options), call, turn);
  }

  /** Phase 1: the summaries of the catalog, whole or as a delta. */
  getSummaryPool(
    request: RequestOf<Router["getSummaryPool"]> = {},
    options?: CallOptions,
  ): Promise<GetSummaryPoolResponse> {
    return this.#call(
      (timed) =>
        this.#router.getSummaryPool(this.#sent(RouterService.method.getSummaryPool.input, request), timed),
      options,
    );
  }

  /** Phase 2 on demand: full schemas by tool name. */
  batchGetToolSchemas(
    request: RequestOf<Router["batchGetToolSchemas"]>,
    options?: CallOptions,
  ): Promise<BatchGetToolSchemasResponse> {
    return this.#call(
      (timed) =>
        this.#router.batchGetToolSchemas(
          this.#sent(RouterService.method.batchGetToolSchemas.input, request),
          timed,
        ),
      options,
    );
  }

  /**
   * Upserts one MCP server's tools, atomically. Each tool is checked alone: a rejected one is among the answer's
   * `outcomes` and throws nothing. Many new tools take a while to embed: give them a minute.
   *
   * A request without `requestId` gets a fresh one, so that a retry after a lost answer changes nothing.
   */
  async registerServer(request: RegisterRequest, options?: CallOptions): Promise<RegisterServerResponse> {
    const sent = {
      ...request,
      toolsListJson: toolsListBytes(request.toolsListJson),
      requestId: request.requestId || requestId(),
    };
    return this.#call(
      (timed) =>
        this.#catalog.registerServer(this.#sent(CatalogService.method.registerServer.input, sent), timed),
      options,
    );
  }

  /** Removes one MCP server and its tools. */
  unregisterServer(
    request: RequestOf<Catalog["unregisterServer"]>,
    options?: CallOptions,
  ): Promise<UnregisterServerResponse> {
    return this.#call(
      (timed) =>
        this.#catalog.unregisterServer(
          this.#sent(CatalogService.method.unregisterServer.input, request),
          timed,
        ),
      options,
    );
  }

  /**
   * Accepts tools that wait for approval, each with the hash that was reviewed. One that has another hash by now is
   * not accepted: it is among the answer's `refusals`, and throws nothing. What is approved already stays so.
   */
  approveTools(
    request: RequestOf<Catalog["approveTools"]>,
    options?: CallOptions,
  ): Promise<ApproveToolsResponse> {
    return this.#call(
      (timed) =>
        this.#catalog.approveTools(this.#sent(CatalogService.method.approveTools.input, request), timed),
      options,
    );
  }

  /** Reads one MCP server. */
  getServer(request: RequestOf<Catalog["getServer"]>, options?: CallOptions): Promise<GetServerResponse> {
    return this.#call(
      (timed) => this.#catalog.getServer(this.#sent(CatalogService.method.getServer.input, request), timed),
      options,
    );
  }

  /** The tenant's MCP servers by name, fetched page by page as they are asked for; the deadline is each page's. */
  listServers(
    request: RequestOf<Catalog["listServers"]> = {},
    options?: CallOptions,
  ): AsyncGenerator<McpServer, void> {
    return pages(request.pageToken ?? "", async (pageToken) => {
      const asked = {
        ...this.#sent(CatalogService.method.listServers.input, request),
        ...{ pageToken, pageSize: request.pageSize || PAGE_SIZE },
      };
      const page = await this.#call((timed) => this.#catalog.listServers(asked, timed), options);
      return { items: page.servers, next: page.nextPageToken };
    });
  }

  /** The tenant's tools by MCP server and name, fetched page by page as they are asked for. */
  listTools(
    request: RequestOf<Catalog["listTools"]> = {},
    options?: CallOptions,
  ): AsyncGenerator<Tool, void> {
    return pages(request.pageToken ?? "", async (pageToken) => {
      const asked = {
        ...this.#sent(CatalogService.method.listTools.input, request),
        ...{ pageToken, pageSize: request.pageSize || PAGE_SIZE },
      };
      const page = await this.#call((timed) => this.#catalog.listTools(asked, timed), options);
      return { items: page.tools, next: page.nextPageToken };
    });
  }

  /**
   * Changes of the catalog as they are committed, until the caller stops (`break`, or the signal).
   *
   * When the connection is lost it is made again, and the stream goes on from the last revision that was seen.
   * `timeoutMs` is for opening the stream; it has no other deadline.
   *
   * @throws TypeError a client with the protocol "connect": the service streams over the others only.
   */
  async *watchCatalog(
    request: RequestOf<Catalog["watchCatalog"]> = {},
    options: CallOptions = {},
  ): AsyncGenerator<WatchCatalogResponse, void> {
    this.#refuseClosed();
    if (this.#settings.protocol === "connect") {
      throw new TypeError('watchCatalog: not over the protocol "connect", but over "grpc-web" and gRPC');
    }
    const { signal, release } = linked(options.signal, this.#closing.signal);
    const method = CatalogService.method.watchCatalog;
    const asked = create(method.input, this.#sent(method.input, request));
    try {
      yield* watchCatalog({
        open: (since, opened) => this.#catalog.watchCatalog(withSince(asked, since), opened),
        since: asked.sinceRevision,
        openingMs: checkedTimeout(options.timeoutMs ?? this.#settings.timeoutMs),
        signal,
      });
    } catch (error) {
      throw toThrown(error, this.target);
    } finally {
      release();
    }
  }

  /** Replaces the tenant's policy; `toolgate policy schema` prints the document's schema. */
  setPolicy(request: RequestOf<Policies["setPolicy"]>, options?: CallOptions): Promise<SetPolicyResponse> {
    return this.#call(
      (timed) => this.#policies.setPolicy(this.#sent(PolicyService.method.setPolicy.input, request), timed),
      options,
    );
  }

  /** Reads the tenant's policy; its document is empty when none was ever set. */
  getPolicy(
    request: RequestOf<Policies["getPolicy"]> = {},
    options?: CallOptions,
  ): Promise<GetPolicyResponse> {
    return this.#call(
      (timed) => this.#policies.getPolicy(this.#sent(PolicyService.method.getPolicy.input, request), timed),
      options,
    );
  }

  /** Tells what a policy decides of each tool, by MCP server and name, fetched page by page as it is asked for. */
  checkPolicy(
    request: RequestOf<Policies["checkPolicy"]> = {},
    options?: CallOptions,
  ): AsyncGenerator<PolicyVerdict, void> {
    return pages(request.pageToken ?? "", async (pageToken) => {
      const asked = {
        ...this.#sent(PolicyService.method.checkPolicy.input, request),
        ...{ pageToken, pageSize: request.pageSize || PAGE_SIZE },
      };
      const page = await this.#call((timed) => this.#policies.checkPolicy(asked, timed), options);
      return { items: page.verdicts, next: page.nextPageToken };
    });
  }

  /** The tenant's token ledger, added up; it is kept by the hour. */
  getUsage(request: RequestOf<Usage["getUsage"]> = {}, options?: CallOptions): Promise<GetUsageResponse> {
    return this.#call(
      (timed) => this.#usage.getUsage(this.#sent(UsageService.method.getUsage.input, request), timed),
      options,
    );
  }

  /** Tells how much is remembered of the tenant's calls, tool by tool. */
  getMemoryStats(
    request: RequestOf<Memory["getMemoryStats"]> = {},
    options?: CallOptions,
  ): Promise<GetMemoryStatsResponse> {
    return this.#call(
      (timed) =>
        this.#memory.getMemoryStats(this.#sent(MemoryService.method.getMemoryStats.input, request), timed),
      options,
    );
  }

  /** Forgets what is remembered of the tenant's calls, for good. */
  clearMemory(
    request: RequestOf<Memory["clearMemory"]> = {},
    options?: CallOptions,
  ): Promise<ClearMemoryResponse> {
    return this.#call(
      (timed) => this.#memory.clearMemory(this.#sent(MemoryService.method.clearMemory.input, request), timed),
      options,
    );
  }

  /** Ends calls under way with CANCELLED and gives the connection back. A second time it does nothing. */
  close(): void {
    this.#closing.abort();
    this.#connection.close();
  }

  /** For `await using`; as `close`. */
  [Symbol.asyncDispose](): Promise<void> {
    this.close();
    return Promise.resolve();
  }

  /** The request, checked, with the client's tenant where it has none of its own. */
  #sent<T extends { tenant?: string }>(message: DescMessage, request: T): T {
    refuseUnknown(message, request, message.name);
    return request.tenant || this.#settings.tenant === ""
      ? request
      : { ...request, tenant: this.#settings.tenant };
  }

  async #call<T>(send: (options: Timed) => Promise<T>, options: CallOptions = {}): Promise<T> {
    this.#refuseClosed();
    const timeoutMs = checkedTimeout(options.timeoutMs ?? this.#settings.timeoutMs);
    const { signal, release } = linked(options.signal, this.#closing.signal);
    try {
      return await send({ timeoutMs, signal });
    } catch (error) {
      throw toThrown(error, this.target);
    } finally {
      release();
    }
  }

  #refuseClosed(): void {
    if (this.#closing.signal.aborted) {
      throw new TypeError("this client is closed: make a new one");
    }
  }
}

interface Timed {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

type WatchRequest = MessageShape<Catalog["watchCatalog"]["input"]>;

function withSince(request: WatchRequest, sinceRevision: bigint | undefined): WatchRequest {
  return sinceRevision === undefined ? request : { ...request, sinceRevision };
}
