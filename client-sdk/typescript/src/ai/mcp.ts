/** Tools of MCP servers for the AI SDK, registered as the servers list them. */
import type { ToolSet } from "ai";

import type { RemoteClient } from "../client.js";
import { Following, Listener } from "../following.js";
import { inTime, pagesUntil } from "../mcp.js";
import { ServedServers, type ServingOptions } from "../serving.js";

/** A page of a server's `tools/list`. */
export interface McpPage {
  readonly tools: readonly object[];
  readonly nextCursor?: string | undefined;
}

/** The AI SDK's MCP client as far as it is used, which `createMCPClient` of `@ai-sdk/mcp` gives. */
export interface McpClient {
  listTools(options?: { params?: { cursor?: string } }): Promise<McpPage>;
  toolsFromDefinitions(definitions: { tools: object[] }): object;
  close(): Promise<void>;
}

/**
 * An MCP server: a client that is connected and that the caller closes, or a function that connects one, which is asked
 * again while the server can't be reached. Connecting and listing have 30 s together; a client that comes later is closed.
 */
export type McpSource = McpClient | (() => Promise<McpClient>);

type AnyTool = ToolSet[string];

/** A connected client, and the tools that its server lists. */
interface Listed {
  readonly client: McpClient;
  readonly definitions: object[];
}

interface Described {
  readonly isError?: boolean;
  readonly content?: readonly { readonly text?: unknown }[];
}

/**
 * The tools of MCP servers, which any number of conversations share.
 *
 *     const mcp = await McpTools.load(client, { git: () => createMCPClient({ transport }) });
 *     const toolgate = new ToolgateConversation(client, mcp);
 */
export class McpTools implements AsyncDisposable {
  readonly #served: ServedServers;
  readonly #sources: Readonly<Record<string, McpSource>>;
  readonly #connected = new Map<string, McpClient>();
  readonly #listener = new Listener();
  readonly #following: Following<[string, AnyTool]>;
  #tools: ToolSet = {};

  private constructor(served: ServedServers, sources: Readonly<Record<string, McpSource>>) {
    this.#served = served;
    this.#sources = sources;
    this.#following = new Following(served.names, (name) => this.#load(name));
  }

  /**
   * Lists and registers servers.
   *
   * @param sources the MCP servers, by their names in the catalog.
   * @throws TypeError settings for a server that is not among them.
   * @throws ToolgateError a registration failed.
   */
  static async load(
    client: RemoteClient,
    sources: Readonly<Record<string, McpSource>>,
    options: ServingOptions = {},
  ): Promise<McpTools> {
    const mcp = new McpTools(new ServedServers(client, Object.keys(sources), options), sources);
    try {
      await mcp.refresh();
    } catch (error) {
      await mcp.close();
      throw error;
    }
    return mcp;
  }

  /** The tools under the names that the model is to see; another object after each `refresh`. */
  get tools(): ToolSet {
    return this.#tools;
  }

  /** The servers in the catalog. */
  get served(): ServedServers {
    return this.#served;
  }

  /**
   * Lists the servers again: their tools are registered and shown anew. What a server says of itself
   * (`notifications/tools/list_changed`) is followed without it; call it for servers that don't, and for those that could not be
   * reached at first, which are left out with a warning until then. One that can't be listed later is warned of and keeps its
   * tools; a step tries again once 30 s have passed.
   *
   * @throws ToolgateError a registration failed.
   */
  async refresh(): Promise<void> {
    await this.#following.load();
    this.#takeOver();
  }

  /**
   * Lists the servers again that said since that their tools changed; conversations do so before each step.
   *
   * @throws ToolgateError a registration failed.
   */
  async follow(): Promise<void> {
    if (await this.#following.follow()) this.#takeOver();
  }

  /** Closes the clients that functions connected. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#connected.keys(), (name) => this.#disconnect(name)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #takeOver(): void {
    this.#tools = Object.fromEntries(this.#following.loaded);
  }

  async #load(name: string): Promise<[string, AnyTool][] | undefined> {
    let listed: Listed;
    try {
      listed = await inTime(name, (late) => this.#list(name, late));
    } catch (error) {
      // Not waited for: a server that does not answer may not close either.
      void this.#disconnect(name);
      return this.#served.leaveOut(name, error);
    }
    const { client, definitions } = listed;
    const names = await this.#served.register(name, definitions);
    const tools = Object.entries(client.toolsFromDefinitions({ tools: definitions }) as ToolSet);
    return tools.flatMap(([own, tool]) => {
      const modelName = names.get(own);
      return modelName === undefined ? [] : [[modelName, failing(tool)]];
    });
  }

  async #list(name: string, late: Promise<never>): Promise<Listed> {
    const client = await this.#connect(name, late);
    this.#listener.listen(
      client,
      () => {
        this.#following.markChanged(name);
      },
      false,
    );
    const definitions = await pagesUntil(late, name, (cursor) =>
      client.listTools(cursor === undefined ? {} : { params: { cursor } }),
    );
    return { client, definitions };
  }

  async #connect(name: string, late: Promise<never>): Promise<McpClient> {
    const source = this.#sources[name];
    if (source === undefined) {
      throw new TypeError(`no MCP server ${name}`);
    }
    if (typeof source !== "function") {
      return source;
    }
    const known = this.#connected.get(name);
    if (known !== undefined) {
      return known;
    }
    const connecting = source();
    try {
      const client = await Promise.race([connecting, late]);
      this.#connected.set(name, client);
      return client;
    } catch (error) {
      // Nobody else has a client that comes too late.
      void connecting.then((client) => client.close()).catch(() => undefined);
      throw error;
    }
  }

  async #disconnect(name: string): Promise<void> {
    const client = this.#connected.get(name);
    this.#connected.delete(name);
    // One whose server is gone may not close; nothing is to be done about it.
    await client?.close().catch(() => undefined);
  }
}

/** A tool whose results with `isError` are failed calls, which unlock nothing. The AI SDK takes them for answers. */
function failing(tool: AnyTool): AnyTool {
  const run = tool.execute as ((input: unknown, options: unknown) => unknown) | undefined;
  if (run === undefined) {
    return tool;
  }
  const execute = async (input: unknown, options: unknown): Promise<unknown> => {
    const result = await run(input, options);
    const { isError = false, content = [] } = (result ?? {}) as Described;
    if (isError) {
      throw new Error(content.map(({ text }) => (typeof text === "string" ? text : "")).join("\n"));
    }
    return result;
  };
  return { ...tool, execute } as AnyTool;
}
