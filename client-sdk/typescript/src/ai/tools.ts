/** The AI SDK's tools and the catalog: registering them, and giving them their model-facing names. */
import { asSchema, type ToolSet } from "ai";

import { type CatalogTools, type McpDefinition, modelNames } from "../catalog.js";
import type { RemoteClient } from "../client.js";
import { ServedServers, type ServingOptions } from "../serving.js";

/**
 * Tools as the body of a `tools/list`, for `registerServer`; for tools that come from no MCP server. Those that do are
 * best registered as their server lists them.
 *
 * @throws TypeError a tool whose description depends on its context, as version 7 of the AI SDK has them.
 */
export async function mcpDefinitions(tools: ToolSet): Promise<McpDefinition[]> {
  return Promise.all(
    Object.entries(tools).map(async ([name, { description, inputSchema }]) => ({
      name,
      description: textOf(name, description),
      inputSchema: await asSchema(inputSchema).jsonSchema,
    })),
  );
}

function textOf(name: string, description: unknown): string {
  if (description === undefined || typeof description === "string") {
    return description ?? "";
  }
  throw new TypeError(`${name}: its description is a function; register its definition by hand`);
}

/**
 * The tools of one MCP server under the names that the model is to see.
 *
 * @param tools the AI SDK's tools, under the names that MCP gives them.
 * @param catalog the MCP server's tools in the catalog: `client.listTools({ server })`.
 * @throws TypeError a tool that the catalog does not have.
 */
export async function modelFacing(tools: ToolSet, catalog: CatalogTools): Promise<ToolSet> {
  const nameOf = await modelNames(Object.keys(tools), catalog);
  return Object.fromEntries(Object.entries(tools).map(([name, tool]) => [nameOf(name), tool]));
}

/**
 * Tools that come from no MCP server, registered with their schemas; any number of conversations share them.
 *
 *     const registered = await RegisteredTools.load(client, { notes: { find, erase } });
 *     const toolgate = new ToolgateConversation(client, registered);
 */
export class RegisteredTools {
  /** The servers in the catalog. */
  readonly served: ServedServers;
  /** The tools under the names that the model is to see. */
  readonly tools: ToolSet;

  private constructor(served: ServedServers, tools: ToolSet) {
    this.served = served;
    this.tools = tools;
  }

  /**
   * Registers tools. Those that are rejected or wait for approval are left out with a warning.
   *
   * @param sets the tools, by the names of the servers that they are to be in the catalog.
   * @throws TypeError settings for a server that is not among them, or what `mcpDefinitions` throws.
   * @throws ToolgateError a registration failed.
   */
  static async load(
    client: RemoteClient,
    sets: Readonly<Record<string, ToolSet>>,
    options: ServingOptions = {},
  ): Promise<RegisteredTools> {
    const served = new ServedServers(client, Object.keys(sets), options);
    const tools: ToolSet = {};
    for (const [server, set] of Object.entries(sets)) {
      const names = await served.register(server, await mcpDefinitions(set));
      for (const [name, tool] of Object.entries(set)) {
        const modelName = names.get(name);
        if (modelName !== undefined) tools[modelName] = tool;
      }
    }
    return new RegisteredTools(served, tools);
  }
}
