/** Connected MCP clients, as far as they are used, and texts of their results. Knows no framework. */

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

/** A connected MCP client, as far as it is used: `Client` of `@modelcontextprotocol/sdk` is one. */
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

/**
 * All entries of a list that comes in pages.
 *
 * @param list gives a page: the first one without a cursor.
 */
export async function pagesOf<T>(
  list: (
    cursor?: string,
  ) => Promise<{ readonly tools: readonly T[]; readonly nextCursor?: string | undefined }>,
): Promise<T[]> {
  let page = await list();
  const tools = [...page.tools];
  while (page.nextCursor) {
    page = await list(page.nextCursor);
    tools.push(...page.tools);
  }
  return tools;
}

/** All tools of a server, as it defines them. */
export async function toolsOf(mcp: McpClient): Promise<McpTool[]> {
  return pagesOf((cursor) => (cursor === undefined ? mcp.listTools() : mcp.listTools({ cursor })));
}

/** The texts of a result; what is no text, as JSON. */
export function textOf(content: unknown): string {
  const blocks = Array.isArray(content) ? (content as readonly Block[]) : [];
  const texts = blocks.map((block) => (typeof block.text === "string" ? block.text : JSON.stringify(block)));
  return texts.join("\n");
}

/**
 * Calls a tool of a server: the text of its result, or its structure where it has no text.
 *
 * @throws Error the server calls the result an error.
 */
export async function callTool(
  mcp: McpClient,
  name: string,
  args: Record<string, unknown>,
): Promise<unknown> {
  const { content, isError, structuredContent } = await mcp.callTool({ name, arguments: args });
  const text = textOf(content);
  if (isError === true) throw new Error(text || "the tool failed");
  return text === "" && structuredContent !== undefined ? structuredContent : text;
}
