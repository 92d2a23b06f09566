/** Lists of MCP servers, in pages. */
import assert from "node:assert/strict";
import { test } from "node:test";

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
