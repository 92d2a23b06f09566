/** The client over `fetch` against a service, by both of its protocols. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";

import { calls, Client, ToolgateError } from "@toolgate/client/web";

import { repository } from "../folders.js";
import { freshTenant, Service } from "./service.js";

const POST = "mcp__slack__slack_post_message";

for (const protocol of ["grpc-web", "connect"] as const) {
  test(`routes and gates over ${protocol}`, async () => {
    await using service = await Service.get();
    const toolsListJson = await readFile(join(repository, "tests", "data", "servers", "slack.json"));
    await using client = new Client(service.target, { tenant: freshTenant(), protocol, timeoutMs: 60_000 });
    await client.registerServer({ server: "slack", toolsListJson });
    const turn = await client.route({
      intents: [{ text: "post in the team's channel" }],
      state: { scopes: ["a"] },
    });
    assert.equal(turn.activeTools[0]?.modelName, POST);
    const asked = { activeSetHandle: turn.activeSetHandle, calls: [calls.of(POST, {})] };
    const { verdicts } = await client.gate(asked);
    assert.equal(verdicts[0]?.allowed, false);
    await assert.rejects(client.getServer({ server: "none" }), (error: unknown) => {
      assert.ok(error instanceof ToolgateError);
      assert.deepEqual(
        [error.code, error.reason, error.metadata],
        ["NOT_FOUND", "SERVER_NOT_FOUND", { server: "none" }],
      );
      return true;
    });
  });
}

test("watches over gRPC-Web; Connect with JSON says that it can't", async () => {
  await using service = await Service.get();
  const tenant = freshTenant();
  await using client = new Client(service.target, { tenant });
  const changes = client.watchCatalog();
  assert.equal((await changes.next()).value?.catalogRevision, 0n);
  await client.registerServer({ server: "new", toolsListJson: { tools: [] } });
  assert.deepEqual((await changes.next()).value?.servers, ["new"]);
  await changes.return();
  await using plain = new Client(service.target, { tenant, protocol: "connect" });
  await assert.rejects(plain.watchCatalog().next(), {
    name: "TypeError",
    message: /over "grpc-web" and gRPC/,
  });
});
