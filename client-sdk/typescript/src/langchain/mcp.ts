/** Tools of MCP servers for LangChain, registered as the servers list them. */
import { DynamicStructuredTool, type StructuredToolInterface } from "@langchain/core/tools";

import type { RemoteClient } from "../client.js";
import { Listener } from "../following.js";
import { ServedServers, type ServingOptions } from "../serving.js";

/** A tool as a server lists it. */
export interface McpTool {
  readonly name: string;
  readonly description?: string | undefined;
  readonly inputSchema: object;
}

/** A page of a server's `tools/list`. */
export interface McpToolsPage {
  readonly tools: readonly McpTool[];
  readonly nextCursor?: string | undefined;
}

/** What is used of a connected MCP client: what `Client` of `@modelcontextprotocol/sdk` gives. */
export interface McpClient {
  listTools(params?: { cursor?: string }): Promise<McpToolsPage>;
  callTool(call: {
    name: string;
    arguments?: Record<string, unknown>;
  }): Promise<Readonly<Record<string, unknown>>>;
}

interface Block {
  readonly type?: unknown;
  readonly text?: unknown;
}

/** MCP servers in the catalog, and their tools under the names that the model is to see. */
export class ListedMcp {
  /** The servers in the catalog. */
  readonly served: ServedServers;
  readonly #clients: Readonly<Record<string, McpClient>>;
  readonly #known = new Map<string, DynamicStructuredTool>();
  readonly #listener = new Listener();
  readonly #changed = new Set<string>();
  readonly #loaded = new Map<string, readonly DynamicStructuredTool[]>();
  #following: Promise<void> | undefined;
  #tools: readonly StructuredToolInterface[] = [];

  /**
   * Lists nothing yet.
   *
   * @param clients connected clients, by the servers' names in the catalog.
   * @throws TypeError settings for a server that is not among them.
   */
  constructor(client: RemoteClient, clients: Readonly<Record<string, McpClient>>, options: ServingOptions) {
    this.served = new ServedServers(client, Object.keys(clients), options);
    this.#clients = clients;
  }

  /** The tools that the servers listed last. */
  get tools(): readonly StructuredToolInterface[] {
    return this.#tools;
  }

  /**
   * Lists and registers the servers. One that can't be listed is left out with a warning.
   *
   * @throws ToolgateError a registration failed.
   */
  async load(): Promise<void> {
    await this.#loadAll(Object.keys(this.#clients));
  }

  /**
   * Lists the servers again that said since that their tools changed.
   *
   * @throws ToolgateError a registration failed.
   */
  async follow(): Promise<void> {
    if (this.#changed.size === 0 && this.#following === undefined) {
      return;
    }
    this.#following ??= this.#loadAll([...this.#changed]).finally(() => (this.#following = undefined));
    await this.#following;
  }

  async #loadAll(names: readonly string[]): Promise<void> {
    await Promise.all(
      names.map(async (name) => {
        const mcp = this.#clients[name];
        if (mcp === undefined) return;
        this.#listener.listen(mcp, () => this.#changed.add(name), true);
        this.#changed.delete(name);
        try {
          this.#loaded.set(name, await this.#toolsOf(name, mcp));
        } catch (error) {
          // It was not registered: the next step tries again.
          this.#changed.add(name);
          throw error;
        }
      }),
    );
    this.#tools = this.served.names.flatMap((name) => this.#loaded.get(name) ?? []);
  }

  async #toolsOf(server: string, mcp: McpClient): Promise<DynamicStructuredTool[]> {
    let listed: McpTool[];
    try {
      listed = await allOf(mcp);
    } catch (error) {
      await this.served.leaveOut(server, error);
      return [];
    }
    const names = await this.served.register(server, listed);
    return listed.flatMap((tool) => {
      const modelName = names.get(tool.name);
      return modelName === undefined ? [] : [this.#kept(toolOf(mcp, tool, modelName))];
    });
  }

  /** The object that the agent has for a tool, with what the tool is now: LangChain refuses another one of its name. */
  #kept(tool: DynamicStructuredTool): DynamicStructuredTool {
    const known = this.#known.get(tool.name);
    if (known === undefined) {
      this.#known.set(tool.name, tool);
      return tool;
    }
    const { description, schema, func } = tool;
    return Object.assign(known, { description, schema, func });
  }
}

/** All tools of a server, as it defines them. */
async function allOf(mcp: McpClient): Promise<McpTool[]> {
  let page = await mcp.listTools();
  const tools = [...page.tools];
  while (page.nextCursor) {
    page = await mcp.listTools({ cursor: page.nextCursor });
    tools.push(...page.tools);
  }
  return tools;
}

/** A tool that calls the server. Results with `isError` are failed calls, which unlock nothing. */
function toolOf(mcp: McpClient, { name, description = "", inputSchema }: McpTool, modelName: string) {
  return new DynamicStructuredTool({
    name: modelName,
    description,
    schema: inputSchema,
    func: async (input: unknown) => {
      const result = await mcp.callTool({ name, arguments: input as Record<string, unknown> });
      const said = textOf(result["content"]);
      if (result["isError"] === true) throw new Error(said);
      return said;
    },
  });
}

/** The texts of a result; what is no text, as JSON. */
function textOf(content: unknown): string {
  const blocks = Array.isArray(content) ? (content as readonly Block[]) : [];
  const texts = blocks.map((block) => (typeof block.text === "string" ? block.text : JSON.stringify(block)));
  return texts.join("\n");
}
