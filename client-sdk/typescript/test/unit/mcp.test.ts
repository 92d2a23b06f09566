/** Lists of MCP servers, in pages. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { type McpClient, McpTools } from "../../src/ai/mcp.js";
import type { RemoteClient } from "../../src/client.js";
import { inTime, pagesOf } from "../../src/mcp.js";

test("pages are listed up to the hundredth", async () => {
  const book = (pages: number) => (cursor?: string) => {
    const at = Number(cursor ?? "1");
    return Promise.resolve({ tools: [at], ...(at < pages ? { nextCursor: String(at + 1) } : {}) });
  };
  assert.deepEqual(await pagesOf("git", book(3)), [1, 2, 3]);
  assert.equal((await pagesOf("git", book(100))).length, 100);
  await assert.rejects(pagesOf("git", book(101)), /git has more than 100 pages of tools/);
});

test("a server that repeats its cursor is given up", async () => {
  const list = () => Promise.resolve({ tools: [1], nextCursor: "again" });
  await assert.rejects(pagesOf("git", list), /git has more than 100 pages of tools/);
});

test("a server that hangs is given up after 30 s, and asked for no further page", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let asked = 0;
  let answer = (): void => undefined;
  const list = () => {
    asked += 1;
    return new Promise<{ tools: number[]; nextCursor: string }>((resolve) => {
      answer = () => {
        resolve({ tools: [1], nextCursor: "2" });
      };
    });
  };
  const listing = pagesOf("git", list);
  t.mock.timers.tick(30_000);
  await assert.rejects(listing, /git has not listed its tools within 30 s/);
  answer();
  await Promise.resolve();
  assert.equal(asked, 1);
  const hung = inTime("git", () => new Promise(() => undefined));
  t.mock.timers.tick(30_000);
  await assert.rejects(hung, /within 30 s/);
});

/** A client of Toolgate that keeps which servers are announced. */
function announcing(servers: string[]): RemoteClient {
  const registerServer = ({ server }: { server: string }) => Promise.resolve(servers.push(server));
  return { registerServer } as unknown as RemoteClient;
}

/** An MCP client whose server never answers, and does not let it close. */
function hanging(): McpClient & { isClosed: boolean } {
  return {
    isClosed: false,
    listTools: () => new Promise(() => undefined),
    toolsFromDefinitions: () => ({}),
    close() {
      this.isClosed = true;
      return new Promise(() => undefined);
    },
  };
}

for (const kind of ["client", "function"] as const) {
  test(`the AI SDK's ${kind} of a server that hangs is left out after 30 s`, async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const announced: string[] = [];
    const warnings: string[] = [];
    const git = hanging();
    const source = kind === "client" ? git : () => Promise.resolve(git);
    const onWarning = (warning: string) => void warnings.push(warning);
    const loading = McpTools.load(announcing(announced), { git: source }, { onWarning });
    await Promise.resolve();
    t.mock.timers.tick(30_000);
    assert.deepEqual((await loading).tools, {});
    assert.deepEqual(announced, ["git"]);
    assert.deepEqual(warnings, [
      "MCP server git can't be listed: Error: git has not listed its tools within 30 s",
    ]);
    assert.equal(git.isClosed, kind === "function", "the caller closes a client of its own");
  });
}

test("a server that does not connect within 30 s is left out, and closed when it does", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const git = hanging();
  let connect = (): void => undefined;
  const connecting = new Promise<McpClient>((resolve) => {
    connect = () => {
      resolve(git);
    };
  });
  const warnings: string[] = [];
  const onWarning = (warning: string) => void warnings.push(warning);
  const loading = McpTools.load(announcing([]), { git: () => connecting }, { onWarning });
  t.mock.timers.tick(30_000);
  await loading;
  assert.match(warnings.join(), /git has not listed its tools within 30 s/);
  assert.equal(git.isClosed, false);
  connect();
  await connecting;
  await Promise.resolve();
  assert.equal(git.isClosed, true);
});
