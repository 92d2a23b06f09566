/** The Agents SDK's tools and the catalog: registering them, and giving them their model-facing names. */
import type { FunctionTool } from "@openai/agents";

import { type CatalogTools, type McpDefinition, modelNames } from "../catalog.js";
import type { RemoteClient } from "../client.js";
import { ServedServers, type ServingOptions } from "../serving.js";

/** A function tool of any context. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- The SDK's types of tools are invariant.
export type AnyTool = FunctionTool<any, any, any>;

/**
 * Tools as the body of a `tools/list`, for `registerServer`; for tools that come from no MCP server. Those that do are
 * best registered as their server lists them.
 *
 * @param tools function tools, such as `tool()` makes.
 */
export function mcpDefinitions(tools: Iterable<AnyTool>): McpDefinition[] {
  return Array.from(tools, ({ name, description, parameters }) => ({
    name,
    description,
    inputSchema: parameters as unknown,
  }));
}

/**
 * Copies of the tools of one MCP server, under the names that the model is to see.
 *
 * @param tools function tools, under the names that MCP gives them.
 * @param catalog the MCP server's tools in the catalog: `client.listTools({ server })`.
 * @throws TypeError a tool that the catalog does not have.
 */
export async function modelFacing(tools: Iterable<AnyTool>, catalog: CatalogTools): Promise<AnyTool[]> {
  const all = [...tools];
  const nameOf = await modelNames(
    all.map(({ name }) => name),
    catalog,
  );
  return all.map((tool) => ({ ...tool, name: nameOf(tool.name) }));
}

/**
 * Tools that come from no MCP server, registered with their schemas; any number of conversations share them.
 *
 *     const registered = await RegisteredTools.load(client, { notes: [find, erase] });
 *     const toolgate = new ToolgateConversation(client, registered);
 */
export class RegisteredTools {
  /** The servers in the catalog. */
  readonly served: ServedServers;
  /** The tools under the names that the model is to see. */
  readonly tools: readonly AnyTool[];

  private constructor(served: ServedServers, tools: readonly AnyTool[]) {
    this.served = served;
    this.tools = tools;
  }

  /**
   * Registers tools. Those that are rejected or wait for approval are left out with a warning.
   *
   * @param sets the tools, by the names of the servers that they are to be in the catalog.
   * @throws TypeError settings for a server that is not among them.
   * @throws ToolgateError a registration failed.
   */
  static async load(
    client: RemoteClient,
    sets: Readonly<Record<string, readonly AnyTool[]>>,
    options: ServingOptions = {},
  ): Promise<RegisteredTools> {
    const served = new ServedServers(client, Object.keys(sets), options);
    const tools: AnyTool[] = [];
    for (const [server, set] of Object.entries(sets)) {
      const names = await served.register(server, mcpDefinitions(set));
      for (const tool of set) {
        const name = names.get(tool.name);
        if (name !== undefined) tools.push({ ...tool, name });
      }
    }
    return new RegisteredTools(served, tools);
  }
}
