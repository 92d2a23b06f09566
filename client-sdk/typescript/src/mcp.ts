/** Connected MCP clients, as far as they are used, and texts of their results. Knows no framework. */

/** Pages of one list; a server that repeats a cursor would have no last one. */
const MOST_PAGES = 100;
/** Milliseconds that a list may take, all its pages together. */
const LISTING_MS = 30_000;

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

/** Gives a page of a list: the first one without a cursor. */
type ListPage<T> = (
  cursor?: string,
) => Promise<{ readonly tools: readonly T[]; readonly nextCursor?: string | undefined }>;

interface Block {
  readonly type?: unknown;
  readonly text?: unknown;
}

/**
 * Lists all tools of a server that lists them in pages, 100 at most, within 30 s.
 *
 * @param list gives a page: the first one without a cursor.
 * @throws Error there are more pages, or the time is over.
 */
export async function pagesOf<T>(server: string, list: ListPage<T>): Promise<T[]> {
  return inTime(server, (late) => pagesUntil(late, server, list));
}

/**
 * Lists all tools of a server that lists them in pages, 100 at most.
 *
 * @param late is rejected when the time is over; no further page is asked for then.
 * @param list gives a page: the first one without a cursor.
 * @throws Error there are more pages, or the time is over.
 */
export async function pagesUntil<T>(late: Promise<never>, server: string, list: ListPage<T>): Promise<T[]> {
  const tools: T[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const page = await Promise.race([list(cursor), late]);
    tools.push(...page.tools);
    if (!page.nextCursor) return tools;
    cursor = page.nextCursor;
  }
  throw new Error(`${server} has more than ${String(MOST_PAGES)} pages of tools`);
}

/**
 * Gives a server 30 s to list its tools.
 *
 * @param list lists them; it is given a promise that is rejected when the time is over.
 */
export async function inTime<T>(server: string, list: (late: Promise<never>) => Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`${server} has not listed its tools within ${String(LISTING_MS / 1000)} s`));
    }, LISTING_MS);
  });
  try {
    return await Promise.race([list(late), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** All tools of a server, as it defines them; see `pagesOf`. */
export async function toolsOf(server: string, mcp: McpClient): Promise<McpTool[]> {
  return pagesOf(server, (cursor) => (cursor === undefined ? mcp.listTools() : mcp.listTools({ cursor })));
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
