/** Lists of MCP servers, followed after the servers said that they changed. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Following, Listener } from "../../src/following.js";

test("a server that can't be listed again keeps its tools, and is tried again after a pause", async () => {
  const lists: (readonly string[] | undefined)[] = [["one"], undefined, undefined, ["one", "two"], ["two"]];
  let now = 0;
  const following = new Following<string>(
    ["git"],
    () => Promise.resolve(lists.shift()),
    () => now,
  );
  await following.load();
  following.markChanged("git");
  const seen: (readonly [boolean, string[]])[] = [];
  for (now of [0, 1, 29_999, 30_000, 59_999, 60_000, 90_000]) {
    seen.push([await following.follow(), following.loaded]);
  }
  assert.deepEqual(seen, [
    [true, ["one"]],
    [false, ["one"]],
    [false, ["one"]],
    [true, ["one"]],
    [false, ["one"]],
    [true, ["one", "two"]],
    [false, ["one", "two"]],
  ]);
  following.markChanged("git");
  assert.ok(await following.follow(), "one that was listed since is not waited for");
  assert.deepEqual(following.loaded, ["two"]);
});

test("a server whose registration fails is tried again after a pause too", async () => {
  let [now, tries] = [0, 0];
  const fail = () => Promise.reject(new Error(`try ${String(++tries)}`));
  const following = new Following<string>(["git"], fail, () => now);
  await assert.rejects(following.load(), /try 1/);
  assert.ok(!(await following.follow()));
  now = 30_000;
  await assert.rejects(following.follow(), /try 2/);
});

test("a transport is wrapped once, however many listen to it", () => {
  const heard: string[] = [];
  const own = () => void heard.push("client");
  const transport = { onmessage: own as (message: unknown) => void };
  const [first, second] = [new Listener(), new Listener()];
  first.listen({ transport }, () => heard.push("first"), true);
  const wrapped = transport.onmessage;
  assert.notEqual(wrapped, own);
  second.listen({ transport }, () => heard.push("second"), true);
  second.listen({ transport }, () => heard.push("second again"), true);
  assert.equal(transport.onmessage, wrapped);
  transport.onmessage({ method: "notifications/tools/list_changed" });
  assert.deepEqual(heard, ["first", "second", "client"]);
  transport.onmessage({ method: "notifications/message" });
  assert.deepEqual(heard, ["first", "second", "client", "client"]);
});
