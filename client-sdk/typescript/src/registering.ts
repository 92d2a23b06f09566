/** Prepares registrations: the `tools/list` answer as bytes, and a name for the request. No I/O. */

/** An MCP server's answer to `tools/list`: bytes or text as it came, or the parsed object or list. */
export type ToolsList = Uint8Array | string | object;

/**
 * The bytes to register. Bytes and text are passed on as they are; a parsed value has lost the numbers that
 * JavaScript can't hold, and is written anew.
 *
 * @throws TypeError the path of a file instead of its text, or a value that JSON can't carry.
 */
export function toolsListBytes(tools: ToolsList | undefined): Uint8Array<ArrayBuffer> {
  if (tools === undefined) {
    return new Uint8Array();
  }
  if (tools instanceof Uint8Array) {
    return tools.buffer instanceof ArrayBuffer ? (tools as Uint8Array<ArrayBuffer>) : new Uint8Array(tools);
  }
  if (typeof tools === "string") {
    refusePath(tools);
    return new TextEncoder().encode(tools);
  }
  return new TextEncoder().encode(JSON.stringify(tools));
}

/** A fresh name for a request. Browsers give `randomUUID` to secure pages only. */
export function requestId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Text that would be read as JSON, but whose author meant the file. */
function refusePath(text: string): void {
  if (!/^\s*[{[]/.test(text) && text.endsWith(".json")) {
    throw new TypeError(
      `${JSON.stringify(text)} is a path, not the JSON of a tools/list: read the file first`,
    );
  }
}
