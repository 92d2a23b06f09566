/** Texts that calls returned, as intents of each integration's next request by default (A16), against a service. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { type Api, Client } from "@toolgate/client";

import type { Reply } from "./anthropic-api.js";
import { freshTenant, Service } from "./service.js";
import { APIS, enveloped, LARGE, type Talk, TALKS } from "./talks.js";

const [READ, POST] = ["mcp__filesystem__read_text_file", "mcp__slack__slack_post_message"];
const NEXT_STEP = "1. Post a message to the Slack channel that the release is ready.";

/** Tells which requests of a talk describe the tool that a file asks for. */
async function described(talk: Talk, api: Api, returns: string): Promise<boolean[]> {
  await using service = await Service.get();
  await using client = new Client(service.target, { tenant: freshTenant(), timeoutMs: 30_000 });
  const sent: string[] = [];
  const kept =
    (reply: Reply): Reply =>
    (body) => {
      sent.push(JSON.stringify(body));
      return reply(body);
    };
  const script = [enveloped([READ, { path: "/TODO.txt" }]), enveloped("It is read.")].map(kept);
  await talk(client, api, ["read the file TODO.txt"], {}, APIS[api](...script).fetch, { ...LARGE, returns });
  assert.equal(sent.length, 2);
  assert.ok(sent[1]?.includes(returns), "the tool ran");
  return sent.map((text) => text.replaceAll("\\", "").includes(`"name":"${POST}"`));
}

for (const [name, talk, apis] of TALKS) {
  for (const api of apis) {
    test(`by default what a call returned brings its tool into the next request of ${name} for ${api}`, async () => {
      assert.deepEqual(await described(talk, api, NEXT_STEP), [false, true]);
      assert.deepEqual(await described(talk, api, "Nothing is left to do."), [false, false]);
    });
  }
}
