/** Lists of MCP servers, followed after the servers said that they changed. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Following, Listener } from "../../src/following.js";

test("a server that can't be listed again keeps its tools, and is tried again", async () => {
  const lists: (readonly string[] | undefined)[] = [["one"], undefined, undefined, ["one", "two"]];
  const following = new Following<string>(["git"], () => Promise.resolve(lists.shift()));
  await following.load();
  following.markChanged("git");
  const seen: string[][] = [];
  while (await following.follow()) seen.push(following.loaded);
  assert.deepEqual(seen, [["one"], ["one"], ["one", "two"]]);
  assert.equal(lists.length, 0, "listed no further");
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
