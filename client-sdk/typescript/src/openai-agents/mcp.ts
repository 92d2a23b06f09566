/** Tools of MCP servers for the Agents SDK, registered as the servers list them. */
import { type MCPServer, mcpToFunctionTool } from "@openai/agents";

import type { RemoteClient } from "../client.js";
import { Following, Listener } from "../following.js";
import { inTime } from "../mcp.js";
import { textOf } from "../mcp.js";
import { ServedServers, type ServingOptions } from "../serving.js";
import type { AnyTool } from "./tools.js";

/** A server of the SDK's own, as it keeps the MCP client that it connected; nothing of it is promised. */
interface Connected {
  readonly underlying?: Connected;
  readonly session?: object | null;
}

/** A result's content, which the SDK marks. */
type Content = Awaited<ReturnType<MCPServer["callTool"]>>;

/**
 * The tools of MCP servers, which any number of conversations share.
 *
 *     const mcp = await McpTools.load(client, { git: server });
 *     const toolgate = new ToolgateConversation(client, mcp);
 */
export class McpTools {
  /** The servers in the catalog. */
  readonly served: ServedServers;
  readonly #servers: Readonly<Record<string, MCPServer>>;
  readonly #listener = new Listener();
  readonly #following: Following<AnyTool>;
  #tools: readonly AnyTool[] = [];

  private constructor(served: ServedServers, servers: Readonly<Record<string, MCPServer>>) {
    this.served = served;
    this.#servers = servers;
    this.#following = new Following(served.names, (name) => this.#load(name));
  }

  /**
   * Lists and registers servers. One that can't be listed is left out with a warning.
   *
   * @param servers connected servers, by their names in the catalog. Don't give them to the agent too. A `toolFilter` of theirs
   *     is not asked.
   * @throws TypeError settings for a server that is not among them.
   * @throws ToolgateError a registration failed.
   */
  static async load(
    client: RemoteClient,
    servers: Readonly<Record<string, MCPServer>>,
    options: ServingOptions = {},
  ): Promise<McpTools> {
    const mcp = new McpTools(new ServedServers(client, Object.keys(servers), options), servers);
    await mcp.refresh();
    return mcp;
  }

  /** The tools under the names that the model is to see; another list after each change. */
  get tools(): readonly AnyTool[] {
    return this.#tools;
  }

  /**
   * Lists the servers again: their tools are registered and shown anew. What a server says of itself
   * (`notifications/tools/list_changed`) is followed without it. One that can't be listed is warned of and keeps its tools; a
   * request tries again once 30 s have passed.
   *
   * @throws ToolgateError a registration failed.
   */
  async refresh(): Promise<void> {
    await this.#following.load();
    this.#tools = this.#following.loaded;
  }

  /**
   * Lists the servers again that said since that their tools changed; conversations do so before each request.
   *
   * @throws ToolgateError a registration failed.
   */
  async follow(): Promise<void> {
    if (await this.#following.follow()) this.#tools = this.#following.loaded;
  }

  async #load(name: string): Promise<AnyTool[] | undefined> {
    const server = this.#servers[name];
    if (server === undefined) return [];
    let listed: Awaited<ReturnType<MCPServer["listTools"]>>;
    try {
      this.#listen(name, server);
      // Not when a server says that its tools changed: the SDK fails a listing whose cache is dropped meanwhile.
      if (server.cacheToolsList) await server.invalidateToolsCache();
      listed = await inTime(name, () => server.listTools());
    } catch (error) {
      return this.served.leaveOut(name, error);
    }
    const names = await this.served.register(name, listed);
    const marking = marked(server);
    return listed.flatMap((tool) => {
      const modelName = names.get(tool.name);
      if (modelName === undefined) return [];
      // The SDK writes another name, without hyphens, into what it makes.
      return [{ ...mcpToFunctionTool(tool, marking, false), name: modelName }];
    });
  }

  #listen(name: string, server: MCPServer): void {
    const { underlying, session = underlying?.session } = server as unknown as Connected;
    if (session === undefined || session === null) return;
    const changed = (): void => {
      this.#following.markChanged(name);
    };
    this.#listener.listen(session, changed, true);
  }
}

/** An MCP server whose failed results say so: the SDK's items have no flag for them. */
function marked(server: MCPServer): MCPServer {
  const callTool: MCPServer["callTool"] = async (...asked) => {
    const content = await server.callTool(...asked);
    return isError(content) ? [errorOf(content)] : content;
  };
  const callToolResult: MCPServer["callToolResult"] = async (...asked) => {
    const result = await server.callToolResult?.(...asked);
    if (result === undefined) throw new TypeError("the server gives no whole results");
    return result.isError === true ? { ...result, content: [errorOf(result.content)] } : result;
  };
  return new Proxy(server, {
    get(target, key): unknown {
      if (key === "callTool") return callTool;
      if (key === "callToolResult" && target.callToolResult !== undefined) return callToolResult;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

function isError(content: Content): boolean {
  return (content as { readonly isError?: unknown }).isError === true;
}

function errorOf(content: Content) {
  const text = JSON.stringify({ error: textOf(content) || "the tool failed" });
  return { type: "text" as const, text };
}
