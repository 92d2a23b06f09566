/** MCP servers that an integration registers as they list their tools, and registers again after a loss. Knows no framework. */
import type { RegisterRequest, RemoteClient } from "./client.js";
import { ToolgateError } from "./errors.js";
import { OutcomeKind } from "./gen/toolgate/v1/catalog_pb.js";
import type { RouteResponse } from "./gen/toolgate/v1/router_pb.js";

/** Further fields of an MCP server's registration, such as `{ requiredScopes: ["repo"] }`. */
export type RegisterSettings = Omit<RegisterRequest, "tenant" | "server" | "toolsListJson" | "pending">;

/** Settings of MCP servers whose tools are registered as they are listed. */
export interface ServingOptions {
  /** Further fields of registrations, by the servers' names in the catalog. Default: none. */
  readonly register?: Readonly<Record<string, RegisterSettings>>;
  /** The tenant. Default: the client's. */
  readonly tenant?: string;
  /**
   * Told of servers that can't be listed, of tools that are withheld, and of a catalog that was lost. Default: a line by
   * `console.warn`.
   */
  readonly onWarning?: (warning: string) => void;
}

interface Listed {
  readonly definitions: readonly object[];
  /** The catalog revision that holds them. */
  readonly revision: bigint;
}

/** Hundreds of new tools are embedded meanwhile. */
const REGISTER_MS = 120_000;
const LOST: readonly string[] = ["TENANT_NOT_FOUND", "SERVER_NOT_FOUND"];
const WITHHELD: ReadonlyMap<OutcomeKind, string> = new Map([
  [OutcomeKind.REJECTED, "is rejected"],
  [OutcomeKind.QUARANTINED, "waits for approval"],
]);

/** Tells whether an error says that the service no longer has what was registered. */
export function isLost(error: unknown): boolean {
  return error instanceof ToolgateError && LOST.includes(error.reason);
}

/** MCP servers in the catalog. */
export class ServedServers {
  /** The servers' names in the catalog. */
  readonly names: readonly string[];
  readonly #client: RemoteClient;
  readonly #options: ServingOptions;
  readonly #listed = new Map<string, Listed>();
  #again: Promise<void> | undefined;

  /**
   * Registers nothing yet.
   *
   * @throws TypeError settings for a server that is not among them.
   */
  constructor(client: RemoteClient, names: readonly string[], options: ServingOptions) {
    this.#client = client;
    this.names = names;
    this.#options = options;
    const unknown = Object.keys(options.register ?? {}).filter((name) => !names.includes(name));
    if (unknown.length > 0) {
      throw new TypeError(`no MCP server ${unknown.join(", ")}: there is ${names.join(", ") || "none"}`);
    }
  }

  /**
   * Registers a server as it lists its tools, and gives the names that the model is to see, by the tools' own. Tools that
   * are rejected or wait for approval have none; each is warned of.
   *
   * @throws ToolgateError the registration failed.
   */
  async register(name: string, definitions: readonly object[]): Promise<ReadonlyMap<string, string>> {
    const { outcomes } = await this.#register(name, definitions);
    for (const outcome of outcomes) {
      const why = WITHHELD.get(outcome.kind);
      if (why !== undefined) this.#warn(`${outcome.name} of ${name} ${why}`);
    }
    const names = new Map<string, string>();
    for await (const tool of this.#client.listTools({ ...this.#tenant(), server: name })) {
      names.set(tool.name, tool.modelName);
    }
    return names;
  }

  /**
   * Warns of a server that can't be listed. One that was never registered is announced to the service, so that an empty
   * search names it.
   *
   * @returns its tools: none, or undefined where it keeps those that are registered.
   * @throws ToolgateError the service can't be told.
   */
  async leaveOut(name: string, error: unknown): Promise<[] | undefined> {
    this.#warn(`MCP server ${name} can't be listed: ${String(error)}`);
    if (this.#listed.has(name)) return undefined;
    const { requiredScopes = [] } = this.#settings(name);
    await this.#client.registerServer({ ...this.#tenant(), server: name, requiredScopes, pending: true });
    return [];
  }

  /** Tells whether the catalog is older than what was registered: it began anew. */
  hasLost({ catalogRevision }: RouteResponse): boolean {
    return [...this.#listed.values()].some(({ revision }) => catalogRevision < revision);
  }

  /**
   * Registers what the service has lost; once, however many conversations see the loss at a time.
   *
   * @throws ToolgateError a registration failed.
   */
  async registerAgain(): Promise<void> {
    this.#again ??= this.#registerAll().finally(() => (this.#again = undefined));
    await this.#again;
  }

  async #registerAll(): Promise<void> {
    this.#warn("the service has lost the catalog: MCP servers are registered again");
    for (const [name, { definitions }] of [...this.#listed]) await this.#register(name, definitions);
  }

  async #register(name: string, definitions: readonly object[]) {
    const sent = { ...this.#settings(name), server: name, toolsListJson: definitions };
    const done = await this.#client.registerServer(sent, { timeoutMs: REGISTER_MS });
    this.#listed.set(name, { definitions, revision: done.catalogRevision });
    return done;
  }

  #settings(name: string): RegisterSettings & { tenant?: string } {
    return { ...this.#options.register?.[name], ...this.#tenant() };
  }

  #tenant(): { tenant?: string } {
    const { tenant } = this.#options;
    return tenant === undefined ? {} : { tenant };
  }

  #warn(warning: string): void {
    const { onWarning = toConsole } = this.#options;
    onWarning(warning);
  }
}

function toConsole(warning: string): void {
  console.warn(`toolgate: ${warning}`);
}
