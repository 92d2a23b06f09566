/** Tools of MCP servers for LangChain, registered as the servers list them. */
import { DynamicStructuredTool, type StructuredToolInterface } from "@langchain/core/tools";

import type { RemoteClient } from "../client.js";
import { Following, Listener } from "../following.js";
import { type McpClient, type McpTool, textOf, toolsOf } from "../mcp.js";
import { ServedServers, type ServingOptions } from "../serving.js";

/** MCP servers in the catalog, and their tools under the names that the model is to see. */
export class ListedMcp {
  /** The servers in the catalog. */
  readonly served: ServedServers;
  readonly #clients: Readonly<Record<string, McpClient>>;
  readonly #known = new Map<string, DynamicStructuredTool>();
  readonly #listener = new Listener();
  readonly #following: Following<StructuredToolInterface>;
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
    this.#following = new Following(this.served.names, (name) => this.#load(name));
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
    await this.#following.load();
    this.#tools = this.#following.loaded;
  }

  /**
   * Lists the servers again that said since that their tools changed.
   *
   * @throws ToolgateError a registration failed.
   */
  async follow(): Promise<void> {
    if (await this.#following.follow()) this.#tools = this.#following.loaded;
  }

  async #load(server: string): Promise<DynamicStructuredTool[] | undefined> {
    const mcp = this.#clients[server];
    if (mcp === undefined) return [];
    this.#listener.listen(
      mcp,
      () => {
        this.#following.markChanged(server);
      },
      true,
    );
    let listed: McpTool[];
    try {
      listed = await toolsOf(server, mcp);
    } catch (error) {
      return this.served.leaveOut(server, error);
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
